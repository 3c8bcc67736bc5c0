/* SPDX-License-Identifier: MIT */
/* tests/unit/heap/sweep_test.c - sparse slabs lose their dead pages, busy and dense ones lose
 * nothing. */
#include "heap/heaps.h"
#include "heap/refill.h"
#include "heap/sweep.h"

#include "check.h"
#include "os/os.h"
#include "process/start.h"
#include "slab/pages.h"
#include "slabs.h"

#include <string.h>

#define CLASS hak_class_of(64)
#define SLABS 200u
#define DECAY_MS 100u

static void *blocks[SLABS * HAK_SLAB_BLOCKS_MAX];
static uint64_t now_ms = 1000000;

static struct heap *enter(void)
{
    CHECK(hak_process_start());
    struct heap *heap = hak_heap_enter();
    CHECK(heap != NULL);
    return heap;
}

/* Fills SLABS slabs, then frees all blocks but each `keep`-th; returns how many were taken. */
static uint32_t fill(struct heap *heap, uint32_t keep)
{
    uint32_t count = SLABS * hak_size_classes[CLASS].block_count;
    for (uint32_t i = 0; i < count; i++) {
        bool is_zero;
        blocks[i] = take_block_zero(heap, CLASS, &is_zero);
        CHECK(blocks[i] != NULL);
        memset(blocks[i], (int)(i % 250) + 1, 64);
    }
    for (uint32_t i = 0; i < count; i++)
        if (i % keep != 0)
            hak_heap_give(heap, hak_slab_at(blocks[i]), blocks[i]);
    return count;
}

/* One go. */
static size_t go(struct heap *heap, uint32_t *looked)
{
    struct swept swept;
    hak_heap_sweep(heap, now_ms, DECAY_MS, &swept);
    CHECK(swept.count <= swept.looked && swept.looked <= HAK_SWEEP_SLABS);
    *looked = swept.looked;
    size_t bytes = hak_heap_purge_swept(heap, &swept);
    hak_heap_collect(heap);
    return bytes;
}

/* One whole pass, begun a decay time after the last one. */
static size_t pass(struct heap *heap)
{
    size_t bytes = 0;
    uint32_t looked;
    now_ms += DECAY_MS;
    do
        bytes += go(heap, &looked);
    while (!hak_heap_is_swept(heap));
    return bytes;
}

static void check_kept(uint32_t count, uint32_t keep)
{
    for (uint32_t i = 0; i < count; i += keep)
        CHECK_BYTES(blocks[i], 64, i % 250 + 1);
}

TEST(a_slab_is_purged_by_the_second_pass_that_finds_it_untouched)
{
    struct heap *heap = enter();
    uint32_t count = fill(heap, 8 * 64);
    CHECK_EQ(pass(heap), 0);
    size_t bytes = pass(heap);
    bool has_dead_pages = hak_os_page_bytes() < HAK_GRANULE_BYTES; /* else a page is a slab */
    CHECK(bytes > 0 || !has_dead_pages || HAK_TINY);
    CHECK_EQ(pass(heap), 0);
    check_kept(count, 8 * 64);
    CHECK(hak_heap_is_sound(heap));
}

TEST(a_slab_in_use_is_left_alone)
{
    struct heap *heap = enter();
    fill(heap, 64 * 4);
    pass(heap);
    void *again[64];
    for (uint32_t i = 0; i < 64; i++) {
        bool is_zero;
        again[i] = take_block_zero(heap, CLASS, &is_zero);
        hak_slab_at(again[i])->heat = SLAB_HOT;
    }
    pass(heap);
    for (uint32_t i = 0; i < 64; i++)
        CHECK_EQ(hak_slab_at(again[i])->purged, 0);
}

TEST(a_pass_that_comes_by_again_leaves_a_slab_alone_that_it_has_seen_in_use)
{
    struct heap *heap = enter();
    fill(heap, 8 * 64);
    pass(heap);
    for (uint32_t i = 0; i < SLABS * hak_size_classes[CLASS].block_count; i += 8 * 64)
        hak_slab_at(blocks[i])->heat = SLAB_HOT;
    CHECK_EQ(pass(heap), 0);
    bool has_dead_pages = hak_os_page_bytes() < HAK_GRANULE_BYTES; /* else a page is a slab */
    CHECK(pass(heap) > 0 || !has_dead_pages || HAK_TINY);
}

TEST(dense_slabs_are_never_searched)
{
    struct heap *heap = enter();
    uint32_t count = SLABS * hak_size_classes[CLASS].block_count;
    fill(heap, 1);
    for (uint32_t i = 0; i < count; i += 8)
        hak_heap_give(heap, hak_slab_at(blocks[i]), blocks[i]);
    pass(heap);
    pass(heap);
    CHECK_EQ(hak_load_relaxed(&heap->stats.counters[HAK_STAT_swept_slabs]), 0);
}

TEST(a_pass_does_no_more_at_a_time_than_it_may)
{
    struct heap *heap = enter();
    fill(heap, 64 * 4);
    pass(heap);
    now_ms += DECAY_MS;
    uint32_t visits = 0, looked = 0, sum = 0;
    do {
        go(heap, &looked);
        sum += looked;
        visits++;
    } while (!hak_heap_is_swept(heap));
    CHECK(visits > 1 || HAK_TINY);
    CHECK_EQ(hak_load_relaxed(&heap->stats.counters[HAK_STAT_swept_slabs]), sum);
    now_ms += DECAY_MS - 1;
    CHECK_EQ(go(heap, &looked), 0);
    CHECK_EQ(looked, 0);
    CHECK(hak_heap_is_swept(heap));
}

/* The first sparse slab that a sweep of everything takes out. */
static struct slab *take_out(struct heap *heap, struct swept *swept)
{
    struct whole_sweep whole = {0};
    fill(heap, 8 * 64);
    hak_heap_sweep_whole(heap, &whole, swept);
    return swept->count > 0 ? swept->out[0].slab : NULL;
}

static void give_rest(struct heap *heap, struct slab *slab)
{
    uint32_t count = SLABS * hak_size_classes[CLASS].block_count;
    for (uint32_t i = 0; i < count; i += 8 * 64)
        if (hak_slab_at(blocks[i]) == slab)
            hak_heap_give(heap, slab, blocks[i]);
}

TEST(blocks_return_to_a_slab_that_is_out_and_none_is_taken)
{
    struct heap *heap = enter();
    struct swept swept;
    struct slab *slab = take_out(heap, &swept);
    if (slab == NULL)
        return; /* a page is a slab */
    CHECK_EQ(slab->place, SLAB_OUT);
    give_rest(heap, slab);
    CHECK_EQ(slab->used, 0);
    CHECK_EQ(slab->place, SLAB_OUT); /* neither spare nor retired */
    size_t slabs = hak_slab_record_count();
    for (uint32_t i = 0; i < 2 * SLABS * hak_size_classes[CLASS].block_count; i++)
        CHECK(hak_slab_at(take_block(heap, CLASS)) != slab);
    CHECK(hak_heap_is_sound(heap));
    CHECK(hak_slab_record_count() >= slabs);
    CHECK(hak_heap_purge_swept(heap, &swept) > 0);
    CHECK_EQ(slab->place, SLAB_OUT);
    hak_heap_collect(heap);
    for (uint32_t i = 0; i < swept.count; i++)
        CHECK(swept.out[i].slab->place != SLAB_OUT);
    CHECK(hak_heap_is_sound(heap));
}

TEST(slabs_that_lost_pages_are_used_after_others)
{
    struct heap *heap = enter();
    struct swept swept;
    struct slab *slab = take_out(heap, &swept);
    if (slab == NULL || swept.count == HAK_SWEEP_SLABS + heap->partial_count[CLASS])
        return; /* a page is a slab, or there are no others */
    hak_heap_purge_swept(heap, &swept);
    hak_heap_collect(heap);
    for (uint32_t i = 0; i < swept.count; i++)
        CHECK(hak_heap_densest(heap, CLASS) != swept.out[i].slab);
}

static size_t sweep_whole(struct heap *heap, uint64_t *goes)
{
    size_t bytes = 0;
    struct whole_sweep progress = {0};
    struct swept swept;
    bool is_over = false;
    for (*goes = 0; !is_over; ++*goes) {
        is_over = hak_heap_sweep_whole(heap, &progress, &swept);
        CHECK(swept.looked <= HAK_SWEEP_SLABS);
        bytes += hak_heap_purge_swept(heap, &swept);
    }
    hak_heap_collect(heap);
    return bytes;
}

TEST(a_whole_sweep_takes_busy_and_dense_slabs_too_and_once)
{
    struct heap *heap = enter();
    uint32_t count = fill(heap, 8 * 64);
    uint64_t goes = 0;
    size_t bytes = sweep_whole(heap, &goes);
    CHECK(goes > 2 || HAK_TINY);
    bool has_dead_pages = hak_os_page_bytes() < HAK_GRANULE_BYTES; /* else a page is a slab */
    CHECK(bytes > 0 || !has_dead_pages || HAK_TINY);
    for (uint32_t i = 0; i < count; i += 8 * 64)
        CHECK_EQ(hak_slab_dead_leaves(hak_slab_at(blocks[i])).touched, 0);
    CHECK_EQ(hak_load_relaxed(&heap->stats.counters[HAK_STAT_swept_bytes]), bytes);
    uint64_t looked = hak_load_relaxed(&heap->stats.counters[HAK_STAT_swept_slabs]);
    CHECK_EQ(sweep_whole(heap, &goes), 0);
    CHECK_EQ(hak_load_relaxed(&heap->stats.counters[HAK_STAT_swept_slabs]), looked);
    check_kept(count, 8 * 64);
    CHECK(hak_heap_is_sound(heap));
}

/* A sweep of everything, go by go; returns how many slabs it came by. */
static uint32_t passed_by_whole_sweep(struct heap *heap, void (*between)(struct heap *heap))
{
    struct whole_sweep progress = {0};
    struct swept swept;
    uint32_t passed = 0;
    bool is_over = false;
    while (!is_over) {
        is_over = hak_heap_sweep_whole(heap, &progress, &swept);
        passed += swept.passed;
        hak_heap_purge_swept(heap, &swept);
        between(heap);
        CHECK(hak_heap_is_sound(heap));
    }
    hak_heap_collect(heap);
    return passed;
}

static void do_nothing(struct heap *heap)
{
    (void)heap;
}

TEST(slabs_that_stay_on_their_lists_are_passed_once)
{
    struct heap *heap = enter();
    uint32_t count = fill(heap, 64); /* no page without a block */
    uint32_t slabs = heap->partial_count[CLASS];
    CHECK(slabs == SLABS || HAK_TINY || hak_os_page_bytes() == HAK_GRANULE_BYTES);
    CHECK_EQ(passed_by_whole_sweep(heap, do_nothing), slabs);
    now_ms += DECAY_MS;
    uint32_t passed = 0;
    do {
        struct swept swept;
        hak_heap_sweep(heap, now_ms, DECAY_MS, &swept);
        CHECK_EQ(swept.count, 0);
        passed += swept.passed;
    } while (!hak_heap_is_swept(heap));
    CHECK_EQ(passed, slabs);
    check_kept(count, 64);
}

/* The slab that the sweep goes on with leaves its list: full, or on another one. */
static void move_next(struct heap *heap)
{
    struct slab *slab = heap->sweeps[SWEEP_WHOLE].slab;
    void *taken[HAK_SLAB_BLOCKS_MAX];
    static uint32_t turn;
    if (slab == NULL)
        return;
    uint32_t most = turn++ % 2 == 0 ? slab->block_count : slab->block_count / 2;
    hak_use_note(heap->owner.use, CLASS, hak_slab_take(slab, taken, most));
    hak_heap_settle(heap, slab);
    CHECK(heap->sweeps[SWEEP_WHOLE].slab != slab);
}

TEST(a_sweep_goes_on_where_the_slab_it_stood_at_has_left)
{
    struct heap *heap = enter();
    uint32_t count = fill(heap, 64), slabs = heap->partial_count[CLASS];
    uint32_t passed = passed_by_whole_sweep(heap, move_next);
    CHECK(passed <= 2 * slabs);
    CHECK(passed > slabs / 2);
    check_kept(count, 64);
}

TEST(an_empty_slab_that_nobody_wants_goes_back)
{
    struct heap *heap = enter();
    bool is_zero;
    void *block = take_block_zero(heap, CLASS, &is_zero);
    hak_heap_give(heap, hak_slab_at(block), block);
    CHECK(heap->spare_count[CLASS] == 1);
    pass(heap);
    CHECK(heap->spare_count[CLASS] == 1);
    pass(heap);
    CHECK(heap->spare_count[CLASS] == 0);
    CHECK_EQ(hak_slab_record_count(), 0);
}

TEST(a_class_is_sparse_when_all_of_many_slabs_are)
{
    struct heap *heap = enter();
    CHECK(!hak_heap_class_is_sparse(heap, CLASS, HAK_SPARSE_MANY));
    uint32_t count = fill(heap, 4);
    CHECK(hak_heap_class_is_sparse(heap, CLASS, HAK_SPARSE_MANY));
    for (uint32_t i = 1; i < count; i++) {
        bool is_zero;
        if (i % 4 != 0)
            CHECK(take_block_zero(heap, CLASS, &is_zero) != NULL);
    }
    CHECK(!hak_heap_class_is_sparse(heap, CLASS, HAK_SPARSE_MANY));
}
