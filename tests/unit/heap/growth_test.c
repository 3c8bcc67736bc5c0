/* SPDX-License-Identifier: MIT */
/* tests/unit/heap/growth_test.c - bins grow within what a thread and a limit allow. */
#include "heap/growth.h"

#include "api/api.h"
#include "check.h"
#include "heap/cache_list.h"
#include "policy/policy_table.h"
#include "process/start.h"
#include "slab/superslab_pool.h"

__attribute__((constructor(101))) static void choose(void)
{
    setenv("HAKMEM_CACHES", "thread", 1);
}

#define BLOCKS 100u

/* Frees and takes blocks of many classes, so that their bins miss. */
static void miss_often(void)
{
    void *blocks[BLOCKS];
    for (uint32_t round = 0; round < 30; round++)
        for (uint32_t bytes = 64; bytes <= 4096; bytes *= 2) {
            for (uint32_t i = 0; i < BLOCKS; i++)
                CHECK((blocks[i] = hak_malloc(bytes)) != NULL);
            for (uint32_t i = 0; i < BLOCKS; i++)
                hak_free(blocks[i]);
        }
}

/* What the bins may hold beyond the first slots of each class, which are free of charge. */
static size_t charged_bytes(const struct cache *cache)
{
    size_t free_bytes = 0;
    for (uint32_t bytes = 64; bytes <= 4096; bytes *= 2)
        free_bytes += (HAK_BIN_SLOTS_LEAST - 1) * bytes;
    return hak_excess(cache->capacity_bytes, free_bytes);
}

/* The same, after the bins of this thread have missed. */
static size_t grow(void)
{
    struct cache *cache = hak_thread_cache();
    CHECK(cache != NULL && !hak_cache_is_processors(cache));
    miss_often();
    CHECK(hak_cache_is_sound(cache));
    return charged_bytes(cache);
}

TEST(the_bins_of_a_thread_stay_within_its_bound)
{
    CHECK(hak_thread_cache() != NULL);
    hak_store_relaxed(&hak_policy.thread_cache_bytes, 64 * HAK_KIB);
    CHECK(grow() <= 64 * HAK_KIB);
}

TEST(a_bin_that_cannot_grow_takes_no_lock)
{
    struct cache *cache = hak_thread_cache();
    CHECK(cache != NULL);
    hak_store_relaxed(&hak_policy.thread_cache_bytes, 64 * HAK_KIB);
    CHECK(grow() <= 64 * HAK_KIB);
    uint32_t class_index = hak_class_of(4096);
    if (cache->rooms[class_index].is_grown)
        SKIP("tiny bins have all that they may have");
    hak_lock_frame = 0; /* each section sets it */
    for (uint32_t i = 0; i < 100; i++)
        CHECK(!hak_growth_note_miss(cache, class_index));
    CHECK_EQ(hak_lock_frame, 0);
    hak_store_relaxed(&hak_policy.thread_cache_bytes, 64 * HAK_MIB);
    hak_growth_note_miss(cache, class_index);
    CHECK(hak_growth_note_miss(cache, class_index) || hak_growth_note_miss(cache, class_index));
    CHECK(hak_lock_frame != 0);
}

TEST(the_bins_of_a_thread_stay_within_its_share_of_what_all_may_hold)
{
    CHECK(hak_thread_cache() != NULL);
    hak_store_relaxed(&hak_policy.process_cache_bytes, 64 * HAK_KIB);
    CHECK(grow() <= 64 * HAK_KIB);
}

TEST(bins_stay_within_an_eighth_of_a_limit)
{
    CHECK(hak_thread_cache() != NULL);
    hak_store_relaxed(&hak_policy.soft_limit_bytes, 800 * HAK_KIB);
    hak_store_relaxed(&hak_policy.limit_bytes, HAK_GIB);
    size_t bytes = grow();
    CHECK(bytes <= 100 * HAK_KIB);
    hak_store_relaxed(&hak_policy.limit_bytes, 0);
    hak_store_relaxed(&hak_policy.soft_limit_bytes, 0);
    if (!HAK_TINY) /* whose bins cannot grow */
        CHECK(grow() > bytes);
}

/* Lets the bins of some classes miss in turn until none grows. */
static void grow_between(struct cache *cache, uint32_t from, uint32_t to)
{
    for (size_t before = SIZE_MAX; before != cache->capacity_bytes;) {
        before = cache->capacity_bytes;
        for (uint32_t turn = 0; turn < 8; turn++)
            for (uint32_t i = from; i < to; i++)
                hak_growth_note_miss(cache, i);
    }
}

/* One cache more, as for a thread that comes now; its bins miss until none grows. The calling
 * thread uses it from now on. */
static struct cache *grown_cache(void)
{
    struct cache *cache = hak_cache_take();
    CHECK(cache != NULL);
    hak_here = &cache->here;
    grow_between(cache, 0, HAK_ALL_CLASS_COUNT);
    return cache;
}

/* Of each class, with those of the long partition. */
#define FIRST_SLOTS_BYTES (1359 * HAK_KIB)

/* However little memory is held, all bins may hold so much, but for those with few slots, which may
 * grow as far as a cache may. */
#define ALL_BYTES (4 * HAK_MIB)
#define CACHE_BYTES (8 * HAK_MIB)
#define FEW_SLOTS 15u
#define FEW_BYTES (32 * HAK_KIB)

static size_t bin_bytes(const struct cache *cache, uint32_t class_index)
{
    return (size_t)hak_cache_capacity(cache, class_index) *
           hak_size_classes[class_index].block_bytes;
}

/* What the bins with more than a few slots may hold. */
static size_t many_bytes(const struct cache *cache)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < HAK_ALL_CLASS_COUNT; i++)
        if (hak_cache_capacity(cache, i) > FEW_SLOTS && bin_bytes(cache, i) > FEW_BYTES)
            bytes += bin_bytes(cache, i);
    return bytes;
}

TEST(bins_may_hold_more_when_more_memory_is_held)
{
    CHECK(hak_thread_cache() != NULL);
    struct rseq_area *own = hak_here;
    const struct cache *cache = grown_cache();
    CHECK(cache->capacity_bytes <= CACHE_BYTES + FIRST_SLOTS_BYTES);
    size_t before = many_bytes(cache);
    CHECK(before <= ALL_BYTES / 2);
    hak_here = own;
    void *block = hak_malloc(64 * HAK_MIB);
    CHECK(block != NULL);
    cache = grown_cache();
    if (!HAK_TINY) /* whose bins cannot grow */
        CHECK(many_bytes(cache) > before + HAK_MIB / 2);
    hak_here = own;
    hak_free(block);
}

TEST(large_blocks_leave_small_ones_a_few_slots)
{
    struct cache *cache = hak_thread_cache();
    CHECK(cache != NULL);
    uint32_t large = hak_class_of(HAK_LARGE_BIN_BLOCK_BYTES);
    grow_between(cache, large, HAK_CLASS_COUNT);
    if (!HAK_TINY) /* whose bins cannot grow */
        CHECK(cache->capacity_bytes > ALL_BYTES / 2);
    grow_between(cache, 0, large);
    for (uint32_t i = 0; i < large && !HAK_TINY; i++)
        CHECK(bin_bytes(cache, i) > FEW_BYTES / 2 || hak_cache_capacity(cache, i) >= 511);
    CHECK(cache->capacity_bytes <= CACHE_BYTES + FIRST_SLOTS_BYTES);
}

TEST(bins_of_one_to_four_kib_may_have_as_many_blocks)
{
    struct cache *cache = hak_thread_cache();
    CHECK(cache != NULL);
    uint32_t first = hak_class_of(HAK_KIB), end = hak_class_of(HAK_LARGE_BIN_BLOCK_BYTES);
    grow_between(cache, first, first + 1);
    grow_between(cache, end - 1, end);
    if (HAK_TINY) /* whose bins cannot grow */
        return;
    CHECK_EQ(bin_bytes(cache, first), 96 * HAK_KIB);
    CHECK_EQ(hak_cache_capacity(cache, end - 1), 96);
}

TEST(bins_of_the_largest_blocks_may_have_a_few_slots_too)
{
    struct cache *cache = hak_thread_cache();
    CHECK(cache != NULL);
    uint32_t middling = hak_class_of(64 * HAK_KIB), largest = HAK_CLASS_COUNT - 1;
    grow_between(cache, middling, middling + 1);
    grow_between(cache, largest, largest + 1);
    if (HAK_TINY) /* whose bins cannot grow */
        return;
    CHECK_EQ(hak_cache_capacity(cache, middling), FEW_SLOTS);
    CHECK_EQ(bin_bytes(cache, largest), HAK_MIB);
}

TEST(bins_of_many_slots_share_half_of_a_cache)
{
    struct cache *cache = hak_thread_cache();
    CHECK(cache != NULL);
    hak_store_relaxed(&hak_policy.thread_cache_bytes, 2 * HAK_MIB);
    grow_between(cache, 0, HAK_CLASS_COUNT);
    CHECK(many_bytes(cache) <= HAK_MIB);
    CHECK(cache->capacity_bytes <= 2 * HAK_MIB + FIRST_SLOTS_BYTES);
    if (!HAK_TINY) /* whose bins cannot grow */
        CHECK(cache->capacity_bytes > HAK_MIB);
}

/* Caches that come one after the other, each grown as far as it may, hold the most: their
 * shares, as they came, and the first slots. */
static void check_bound(uint32_t caches, size_t most_bytes)
{
    struct rseq_area *own = hak_here;
    size_t bytes = 0;
    for (uint32_t i = 0; i < caches; i++)
        bytes += grown_cache()->capacity_bytes;
    hak_here = own;
    CHECK(bytes <= most_bytes);
}

TEST(the_caches_of_64_processors_stay_within_their_bound)
{
    CHECK(hak_thread_cache() != NULL);
    check_bound(64, 179 * HAK_MIB);
}

TEST(the_caches_of_1024_processors_stay_within_their_bound)
{
    CHECK(hak_thread_cache() != NULL);
    check_bound(1024, 1551 * HAK_MIB);
}

TEST(each_growth_and_each_shrinking_of_a_bin_is_counted)
{
    struct cache *cache = hak_thread_cache();
    CHECK(cache != NULL);
    const _Atomic uint64_t *grown = &cache->stats.counters[HAK_STAT_magazines_grown];
    const _Atomic uint64_t *shrunk = &cache->stats.counters[HAK_STAT_magazines_shrunk];
    uint64_t grown_before = hak_load_relaxed(grown), shrunk_before = hak_load_relaxed(shrunk);
    uint32_t class_index = hak_class_of(1000);
    CHECK_EQ(hak_cache_capacity(cache, class_index), 0);
    CHECK(hak_growth_note_miss(cache, class_index));
    CHECK_EQ(hak_load_relaxed(grown), grown_before + 1);
    hak_growth_shrink(cache, class_index, 1);
    CHECK_EQ(hak_cache_capacity(cache, class_index), 1);
    CHECK_EQ(hak_load_relaxed(shrunk), shrunk_before + 1);
    hak_growth_shrink(cache, class_index, 1); /* which it is */
    CHECK_EQ(hak_load_relaxed(shrunk), shrunk_before + 1);
}

#define PHASE_BYTES (8 * HAK_SUPERSLAB_BYTES)
#define PHASE_BLOCKS_MOST (PHASE_BYTES / 64)
static void *phase[PHASE_BLOCKS_MOST];

/* As many blocks as fit, freed in no order: the last ones of them lie all over their slabs. Returns
 * how many superslabs there were with all of them. */
static uint32_t run_phase(void *(*take)(size_t bytes), size_t block_bytes)
{
    size_t count = PHASE_BYTES / block_bytes;
    for (size_t i = 0; i < count; i++)
        CHECK((phase[i] = take(block_bytes)) != NULL);
    uint32_t superslabs = hak_pool_superslab_count(), random = 42;
    for (size_t i = count; i > 0; i--) {
        random = random * 1664525u + 1013904223u;
        size_t other = (random >> 8) % i;
        hak_free(phase[other]);
        phase[other] = phase[i - 1];
    }
    return superslabs;
}

static void *take_zero(size_t bytes)
{
    return hak_calloc(1, bytes);
}

TEST(what_bins_keep_of_a_phase_that_is_over_pins_no_memory_that_the_next_one_needs)
{
    uint32_t superslabs = run_phase(hak_malloc, 64);
    for (size_t bytes = 128; bytes <= 1024; bytes *= 2)
        CHECK(run_phase(hak_malloc, bytes) <= superslabs + 2);
}

TEST(nor_that_calloc_needs)
{
    uint32_t superslabs = run_phase(hak_malloc, 64);
    for (size_t bytes = 128; bytes <= 2048; bytes *= 2)
        CHECK(run_phase(hak_malloc, bytes) <= superslabs + 2);
    for (size_t bytes = 4096; bytes <= 24000; bytes += bytes / 2)
        CHECK(run_phase(take_zero, bytes) <= superslabs + 2);
}

TEST(nor_that_large_blocks_need)
{
    enum { LARGE_BYTES = 3 * HAK_GRANULE_BYTES - 1000 };
    for (size_t bytes = 64; bytes <= 2048; bytes *= 2)
        run_phase(hak_malloc, bytes);
    size_t bytes = hak_load_relaxed(&hak_region.committed_bytes);
    for (size_t i = 0; i < PHASE_BYTES / LARGE_BYTES; i++)
        CHECK(hak_malloc(LARGE_BYTES) != NULL);
    CHECK(hak_load_relaxed(&hak_region.committed_bytes) - bytes < PHASE_BYTES / 2);
}
