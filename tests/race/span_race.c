/* SPDX-License-Identifier: MIT */
/* tests/race/span_race.c - large blocks taken, resized and given by threads, also each other's. */
#include "api/api.h"
#include "misuse/harden.h"
#include "os/os.h"
#include "os/os_fault.h"
#include "os/os_huge.h"
#include "policy/policy_table.h"
#include "process/start.h"
#include "racers.h"
#include "region/region.h"
#include "span/large.h"
#include "span/span_cache.h"
#include "span/span_free.h"
#include "span/span_heap.h"
#include "span/span_move.h"
#include "span/span_purge.h"
#include "stats/counters.h"

#define RACERS 4u
#define ROUNDS 6000u
#define SLOTS 24u
#define BYTES_LEAST ((size_t)131073) /* above the size classes */

/* What a large block begins with; its last byte repeats the mark. */
struct large {
    size_t bytes;
    uint64_t mark;
};

static _Atomic(struct large *) slots[SLOTS];

/* Every racer has a cache, as if in its heap. */
#define CACHE_BYTES (3 * HAK_MIB)
static struct span_cache caches[RACERS];

static void sign(struct large *large, size_t bytes, uint64_t mark)
{
    large->bytes = bytes;
    large->mark = mark;
    ((unsigned char *)large)[bytes - 1] = (unsigned char)mark;
    ((unsigned char *)large)[bytes / 2] = (unsigned char)(mark >> 8);
}

static void inspect(const struct large *large)
{
    const unsigned char *bytes = (const unsigned char *)large;
    CHECK_EQ(bytes[large->bytes - 1], (unsigned char)large->mark);
    CHECK_EQ(bytes[large->bytes / 2], (unsigned char)(large->mark >> 8));
    CHECK(hak_large_usable_bytes(large, "test") >= large->bytes);
}

static struct large *make(struct racer *racer)
{
    size_t bytes = BYTES_LEAST + draw(racer) % (20 * HAK_GRANULE_BYTES);
    size_t alignment = (size_t)16 << draw(racer) % 16;
    enum large_content content = draw(racer) % 4 == 0 ? LARGE_ZERO : LARGE_ANY;
    struct large_request request = {bytes, alignment, content, LARGE_ROOMY, racer->index};
    struct span *cached =
        hak_large_fits_cache(&request) ? hak_large_find(&caches[racer->index], &request) : NULL;
    unsigned char *block = hak_large_take_in(cached, &request);
    CHECK(block != NULL);
    CHECK_EQ((uintptr_t)block % alignment, 0);
    for (size_t i = 0; content == LARGE_ZERO && i < bytes; i += 1021)
        CHECK_EQ(block[i], 0);
    sign((struct large *)(void *)block, bytes, draw(racer));
    return (struct large *)(void *)block;
}

static void exchange_large_blocks(struct racer *racer)
{
    for (uint32_t i = 0; i < ROUNDS; i++) {
        struct large *large = draw(racer) % 8 < 5 ? make(racer) : NULL;
        stumble(racer);
        large = atomic_exchange(&slots[draw(racer) % SLOTS], large);
        if (large == NULL)
            continue;
        inspect(large);
        size_t bytes = BYTES_LEAST + draw(racer) % (30 * HAK_GRANULE_BYTES);
        uint64_t choice = draw(racer) % 4;
        struct large *moved = choice == 0 ? hak_large_move(large, bytes) : NULL;
        if (moved != NULL)
            inspect(large = moved);
        if (moved != NULL || (choice == 1 && hak_large_resize(large, bytes)))
            sign(large, bytes, draw(racer));
        inspect(large);
        struct span *span = hak_large_end(large);
        if (hak_large_may_keep(span))
            hak_large_keep(&caches[racer->index], span, CACHE_BYTES);
        else
            hak_large_give_up(span);
        CHECK(hak_span_cache_is_sound(&caches[racer->index]));
    }
    CHECK(hak_load_relaxed(&caches[racer->index].hits) > 0);
    hak_large_drop_cached(&caches[racer->index], UINT64_MAX, 0, 0);
}

static void purge_and_audit(struct racer *racer)
{
    for (uint32_t i = 0; i < ROUNDS / 10; i++) {
        hak_span_purge(UINT64_MAX, draw(racer) % (8 * HAK_MIB), 1 + draw(racer) % 4);
        CHECK(hak_span_heap_is_sound());
        CHECK(hak_span_oldest_ms() > 0);
        CHECK(hak_span_caches_sum().bytes <= RACERS * (CACHE_BYTES + 2 * HAK_MIB));
        sched_yield();
    }
}

static _Atomic uint32_t fillers_left = RACERS - 1;
static bool can_be_huge;

/* There is more to do, or no block was huge yet: what is purged in between is up to the machine. */
static bool goes_on(uint32_t rounds)
{
    return rounds < ROUNDS / 40 ||
           (can_be_huge && rounds < ROUNDS && hak_load_relaxed(&hak_stat_globals.huge_blocks) == 0);
}

static void fill_large_blocks(struct racer *racer)
{
    for (uint32_t i = 0; goes_on(i); i++) {
        size_t bytes = 4 * HAK_MIB + draw(racer) % (3 * HAK_MIB);
        struct large_request request = {bytes, 16, LARGE_ANY, LARGE_ROOMY, 0};
        unsigned char *block = hak_large_take_in(NULL, &request);
        CHECK(block != NULL);
        memset(block, (int)racer->index, draw(racer) % 32 == 0 ? bytes / 2 : bytes);
        stumble(racer);
        CHECK_EQ(block[bytes / 2 - 1], racer->index);
        hak_large_give(block);
    }
    atomic_fetch_sub(&fillers_left, 1);
}

static void purge_while_others_fill(struct racer *racer)
{
    while (atomic_load(&fillers_left) > 0) {
        stumble(racer);
        hak_span_purge(UINT64_MAX, 0, UINT32_MAX);
    }
}

TEST(threads_watch_each_others_large_blocks)
{
    hak_store_relaxed(&hak_os_fault.huge_pages, HUGE_ON_REQUEST + 1);
    CHECK(hak_process_start());
    hak_store_relaxed(&hak_policy.huge_slow_us, 60000000);
    void (*const bodies[])(struct racer *) = {fill_large_blocks, fill_large_blocks,
                                              fill_large_blocks, purge_while_others_fill};
    struct large_request request = {HAK_SUPERSLAB_BYTES, HAK_SUPERSLAB_BYTES, LARGE_ANY,
                                    LARGE_ROOMY, 0};
    void *probe = hak_large_take_in(NULL, &request);
    CHECK(probe != NULL);
    hak_os_touch(probe, HAK_SUPERSLAB_BYTES);
    can_be_huge = HAK_CHECK_LEVEL >= 2 && !hak_harden_has(HARDEN_EXACT) &&
                  hak_os_is_resident(probe, HAK_SUPERSLAB_BYTES) &&
                  hak_os_wish_huge_pages(probe, HAK_SUPERSLAB_BYTES);
    hak_large_give(probe);
    race(RACERS, bodies);
    CHECK(!can_be_huge || hak_load_relaxed(&hak_stat_globals.huge_blocks) > 0);
    CHECK_EQ(hak_large_held_bytes(), 0);
    CHECK(hak_span_heap_is_sound());
}

static void exchange_among_racers(void)
{
    void (*const bodies[])(struct racer *) = {exchange_large_blocks, exchange_large_blocks,
                                              exchange_large_blocks, purge_and_audit};
    race(RACERS, bodies);
    for (uint32_t i = 0; i < SLOTS; i++) {
        struct large *large = atomic_exchange(&slots[i], NULL);
        if (large == NULL)
            continue;
        inspect(large);
        hak_large_give(large);
    }
    CHECK_EQ(hak_large_held_bytes(), 0);
    hak_span_purge(UINT64_MAX, 0, UINT32_MAX);
    CHECK(hak_span_heap_is_sound());
    CHECK_EQ(hak_span_clean_bytes(), hak_load_relaxed(&hak_region.committed_bytes));
    CHECK_EQ(hak_span_piece_count(), 0);
}

TEST(large_blocks_of_many_threads_are_disjoint_and_all_returned)
{
    CHECK(hak_process_start());
    exchange_among_racers();
}

/* Each racer is a heap's, but for the first. */
TEST(so_are_those_of_threads_whose_heaps_have_sets_of_spans)
{
    CHECK(hak_process_start());
    hak_store_relaxed(&hak_lock_waits[HAK_LOCK_SPAN].count, HAK_SPAN_SET_WAITS);
    exchange_among_racers();
    CHECK_EQ(hak_span_set_count(), RACERS - 1); /* the last one purges */
}
