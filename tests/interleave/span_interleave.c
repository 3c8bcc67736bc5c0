/* SPDX-License-Identifier: MIT */
/* tests/interleave/span_interleave.c - free spans under their lock, and the caches of spans that
 * heaps keep: no granule has two owners, none is lost. */
#include "../check.h"
#include "interleave.h"
#include "process/start.h"
#include "region/meta.h"
#include "span/big_cache.h"
#include "span/large.h"
#include "span/span_cache.h"
#include "span/span_heap.h"

static size_t free_bytes;
static struct span_cache caches[2];
enum { UNFIT = 1, DISPLACED };

/* Free memory that has been used, in two pieces. */
static void make(void)
{
    bool is_zero;
    CHECK(hak_process_start());
    struct span *first = hak_span_take(6, 1, &is_zero), *between = hak_span_take(1, 1, &is_zero);
    struct span *second = hak_span_take(6, 1, &is_zero);
    CHECK(first != NULL && between != NULL && second != NULL);
    hak_span_give(first);
    hak_span_give(second);
    hak_meta_prewarm(64 * 1024);
    hak_big_cache_note_given_up(1, false); /* it is needed: spans may be kept */
    free_bytes = hak_span_warm_bytes() + hak_span_clean_bytes();
}

static struct span *take(uint32_t count)
{
    bool is_zero;
    struct span *span = hak_span_take(count, 1, &is_zero);
    MUST(span != NULL && span->count == count);
    for (uint32_t i = 0; i < count; i++) /* a race, if a granule has two owners */
        *(uint64_t *)hak_granule_address(span->first + i) = interleave_self();
    return span;
}

static void take_and_give(void)
{
    hak_span_give(take(3));
}

static void take_more_and_give(void)
{
    hak_span_give(take(5));
}

static void take_and_cut(void)
{
    struct span *span = take(4);
    hak_span_cut(span, 2);
    hak_span_give(span);
}

static void keep_in(struct span_cache *cache)
{
    hak_span_cache_put(cache, take(2));
    struct span *span = hak_span_cache_take(cache, 2, 1);
    MUST(span != NULL);
    hak_span_cache_put(cache, span);
}

static void keep_in_first(void)
{
    keep_in(&caches[0]);
}

static void keep_in_second(void)
{
    keep_in(&caches[1]);
}

/* Where a place was found, another thread may be faster. */
static void put_recent(struct span *span)
{
    struct span *left = hak_recent_keep(&caches[0].recent, span);
    if (left != NULL)
        hak_span_give(left);
}

/* As a visit does it. */
static void gather(void)
{
    struct span *span = hak_recent_pop(&caches[0].recent);
    if (span == NULL)
        return;
    *(uint64_t *)hak_granule_address(span->first) = interleave_self();
    hak_span_give(span);
}

/* A buffer that comes and goes, without a lock; what is displaced, or does not fit, goes back. */
static void pass_recent(uint32_t count)
{
    for (int i = 0; i < 2; i++) {
        struct span *unfit, *span = hak_span_cache_take_recent(&caches[0], count, 1, &unfit);
        if (unfit != NULL) {
            MUST(span == NULL && unfit->count != count);
            interleave_note(UNFIT);
            hak_span_give(unfit);
        }
        if (span == NULL)
            span = take(count);
        MUST(span->count == count);
        *(uint64_t *)hak_granule_address(span->first) = interleave_self();
        span->lean_count = i == 0 ? 0 : span->count; /* so is its record the taker's alone */
        put_recent(span);
    }
}

static void pass_two(void)
{
    pass_recent(2);
}

static void pass_three(void)
{
    pass_recent(3);
}

/* The same with blocks, as malloc and free do it. */
static void pass_block(size_t bytes)
{
    const struct large_request request = {bytes, HAK_ORDINARY_ALIGNMENT, LARGE_ANY, LARGE_PACKED,
                                          0};
    for (int i = 0; i < 2; i++) {
        char *block = hak_large_take_recent(&caches[0], bytes);
        if (block == NULL)
            block = hak_large_take_in(NULL, &request);
        MUST(block != NULL && hak_large_usable_bytes(block, "test") >= bytes);
        for (size_t at = 0; at < bytes; at += HAK_GRANULE_BYTES)
            *(uint64_t *)(block + at) = interleave_self();
        struct span *displaced = NULL;
        if (!hak_large_give_recent(&caches[0], block, &displaced))
            hak_large_give(block);
        if (displaced != NULL) {
            interleave_note(DISPLACED);
            hak_large_release(displaced);
        }
    }
}

static void pass_block_of_two(void)
{
    pass_block(2 * HAK_GRANULE_BYTES);
}

static void pass_block_of_three(void)
{
    pass_block(3 * HAK_GRANULE_BYTES);
}

static void sum(void)
{
    struct span_cache_sums sums = hak_span_caches_sum();
    MUST(sums.count <= 2 && sums.bytes <= 4 * HAK_GRANULE_BYTES);
}

static void drop_all(void)
{
    for (int i = 0; i < 2; i++) {
        hak_span_cache_gather_recent(&caches[i]);
        hak_span_cache_drop(&caches[i], UINT64_MAX, 0, 0);
    }
}

static void all_is_free(void)
{
    drop_all();
    MUST(hak_span_caches_sum().count == 0);
    MUST(hak_span_warm_bytes() + hak_span_clean_bytes() == free_bytes);
    MUST(hak_span_heap_is_sound());
}

/* Only a cache that was used has recent ones: it begins with a span that is kept. */
static const struct harness harnesses[] = {
    {"two take and give", NULL, {take_and_give, take_more_and_give}, all_is_free, 2, 1, 0},
    {"one cuts", NULL, {take_and_give, take_and_cut}, all_is_free, 2, 0, 0},
    {"three take and give",
     NULL,
     {take_and_give, take_more_and_give, take_and_cut},
     all_is_free,
     1,
     0,
     0},
    {"recent ones", keep_in_first, {pass_two, pass_two}, all_is_free, 2, 1, 0},
    {"two caches begin", NULL, {keep_in_first, keep_in_second, sum}, all_is_free, 1, 1, 0},
    {"recent ones that are gathered", keep_in_first, {pass_two, gather}, all_is_free, 2, 1, 0},
    {"recent ones of two sizes", keep_in_first, {pass_two, pass_three}, all_is_free, 2, 0, 0},
    {"a block", keep_in_first, {pass_block_of_two, pass_block_of_two}, all_is_free, 1, 1, 0},
    {"blocks of two sizes",
     keep_in_first,
     {pass_block_of_two, pass_block_of_three},
     all_is_free,
     2,
     0,
     0},
};
#define HARNESS_COUNT (sizeof harnesses / sizeof *harnesses)
/* The outcomes of the last harness of a call are asked for: two of spans, then two of blocks. */
#define WITHOUT_BLOCKS (HARNESS_COUNT - 2)

TEST(no_granule_has_two_owners_and_none_is_lost)
{
    make();
    CHECK(interleave_hold(harnesses, WITHOUT_BLOCKS));
    CHECK(interleave_saw(UNFIT));
    CHECK(interleave_hold(harnesses + WITHOUT_BLOCKS, HARNESS_COUNT - WITHOUT_BLOCKS));
    CHECK(interleave_saw(DISPLACED));
}

TEST(every_order_of_spans_is_needed)
{
    static const struct kept_order kept[] = {
        {"hak_large_withdraw cas acquire: without acquire",
         "orders a free behind a competing one, which is a mistake of the program; what a correct "
         "one hands over is ordered by hak_recent_exchange"},
        {"hak_span_clean_bytes load acquire: without acquire",
         "what is known is read behind it (heap/limit.c), and becomes more only where the window "
         "grows, which asks the kernel"},
        {NULL, NULL}};
    make();
    CHECK(interleave_needs_orders("src/span/", harnesses, HARNESS_COUNT, kept));
}
