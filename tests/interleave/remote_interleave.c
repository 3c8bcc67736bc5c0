/* SPDX-License-Identifier: MIT */
/* tests/interleave/remote_interleave.c - blocks that others free while their heap is busy: each
 * comes back once, with what was written to it, whichever heap the slab belongs to by then. */
#include "../check.h"
#include "heap/heap.h"
#include "interleave.h"
#include "process/start.h"
#include "slabs.h"

#define FAR 65u /* a block of another word */

static struct heap heaps_here[2] = {{.owner = {.heap_id = 5}}, {.owner = {.heap_id = 6}}};
static struct slab *slab, *other;
static uint32_t reused;

/* A slab of the first heap with all blocks of the first word, and more, in use. */
static void make(void)
{
    static void *blocks[FAR + 2];
    uint32_t class_index = hak_class_of(64);
    CHECK(hak_process_start());
    for (int i = 0; i < 2; i++)
        hak_heap_start(&heaps_here[i]);
    slab = make_slab(class_index, &heaps_here[0].owner, &heaps_here[0].stats);
    CHECK(slab != NULL && slab->block_count > FAR + 2);
    CHECK_EQ(hak_slab_take(slab, blocks, FAR + 2), FAR + 2);
    CHECK(hak_heap_receive(&heaps_here[0], slab));
    other = make_slab(class_index, &heaps_here[0].owner, &heaps_here[0].stats);
    CHECK(other != NULL && hak_slab_take(other, blocks, FAR) == FAR);
    CHECK(hak_heap_receive(&heaps_here[0], other));
}

static void free_block(uint32_t index)
{
    *(uint64_t *)hak_slab_block_at(slab, index) = index;
    hak_remote_publish(slab, index / 64, 1ull << (index % 64));
}

static void free_other(void)
{
    hak_remote_publish(other, 0, 1);
}

static void free_both(void)
{
    free_other();
    free_block(0);
}

static void free_first(void)
{
    free_block(0);
}

static void free_second(void)
{
    free_block(1);
}

static void free_far(void)
{
    free_block(FAR);
}

static void free_two(void)
{
    free_block(1);
    free_block(FAR);
}

static bool try_enter(struct heap *heap)
{
    return hak_lock_try_among(&heap->lock);
}

static void leave(struct heap *heap)
{
    hak_lock_give_among(&heap->lock);
}

/* Collects, and uses what came. */
static void collect(void)
{
    void *block;
    for (int i = 0; i < 2; i++) {
        if (!try_enter(&heaps_here[i]))
            continue;
        hak_heap_collect(&heaps_here[i]);
        if (hak_load_relaxed(&slab->owner) == &heaps_here[i].owner && slab->summary[0] != 0 &&
            hak_slab_take(slab, &block, 1) == 1) {
            *(uint64_t *)block = 1000;
            reused++;
        }
        leave(&heaps_here[i]);
    }
}

static void collect_twice(void)
{
    collect();
    collect();
}

static void steal(void)
{
    if (!try_enter(&heaps_here[1]))
        return;
    if (try_enter(&heaps_here[0])) {
        struct slab *taken = hak_heap_surrender(&heaps_here[0], slab->class_index);
        if (taken != NULL)
            MUST(hak_heap_receive(&heaps_here[1], taken));
        leave(&heaps_here[0]);
    }
    leave(&heaps_here[1]);
}

/* Away from the heap's lists a slab's pages are its purger's. */
static void purge(void)
{
    if (!try_enter(&heaps_here[0]))
        return;
    hak_heap_take_out(&heaps_here[0], other);
    leave(&heaps_here[0]);
    other->purged |= 1;
    hak_heap_bring_back(other);
}

static void purge_first(void)
{
    if (!try_enter(&heaps_here[0]))
        return;
    if (hak_load_relaxed(&slab->owner) == &heaps_here[0].owner && slab->place == SLAB_PARTIAL) {
        hak_heap_take_out(&heaps_here[0], slab);
        leave(&heaps_here[0]);
        slab->purged |= 2;
        hak_heap_bring_back(slab);
    } else {
        leave(&heaps_here[0]);
    }
}

/* What `freed` threads freed is all there is, no more. */
static void check_home(uint32_t freed)
{
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 2; i++)
            hak_heap_collect(&heaps_here[i]);
    MUST(hak_load_relaxed(&heaps_here[0].owner.pending) == NULL);
    MUST(hak_load_relaxed(&heaps_here[1].owner.pending) == NULL);
    MUST(hak_load_relaxed(&slab->remote_count) == 0);
    MUST(slab->used == FAR + 2 - freed + reused);
    MUST(hak_slab_is_sound(slab));
}

static void one_is_home(void)
{
    check_home(1);
}

static void two_are_home(void)
{
    check_home(2);
}

static void both_are_home(void)
{
    check_home(1);
    MUST(hak_load_relaxed(&other->remote_count) == 0 && other->used == FAR - 1);
}

static void none_is_out(void)
{
    check_home(0);
    MUST(slab->place == SLAB_PARTIAL && other->place == SLAB_PARTIAL);
}

static void three_are_home(void)
{
    check_home(3);
}

static const struct harness harnesses[] = {
    {"one frees, one collects", NULL, {free_first, collect_twice}, one_is_home, 3, 2, 0},
    {"two free, one collects",
     NULL,
     {free_first, free_second, collect_twice},
     two_are_home,
     2,
     1,
     0},
    {"two free in two words", NULL, {free_first, free_far, collect}, two_are_home, 2, 1, 0},
    {"one frees three blocks", NULL, {free_first, free_two, collect}, three_are_home, 2, 1, 0},
    {"two collect", NULL, {free_two, collect, collect}, two_are_home, 2, 1, 0},
    {"two slabs", NULL, {free_first, free_other, collect}, both_are_home, 2, 2, 0},
    {"two slabs of one thread", NULL, {free_both, collect}, both_are_home, 2, 2, 0},
    {"two slabs are purged", NULL, {purge, purge_first, collect_twice}, none_is_out, 2, 2, 0},
    {"the slab moves", NULL, {free_first, steal, collect}, one_is_home, 2, 1, 0},
    {"the slab moves while two free",
     NULL,
     {free_first, free_second, steal},
     two_are_home,
     2,
     1,
     0},
};
#define HARNESS_COUNT (sizeof harnesses / sizeof *harnesses)

TEST(every_block_comes_home_once_with_what_was_written_to_it)
{
    make();
    CHECK(interleave_hold(harnesses, HARNESS_COUNT));
}

TEST(every_order_of_published_frees_is_needed)
{
    static const struct kept_order kept[] = {
        {"hak_remote_publish fetch_add acq_rel: without acquire",
         "bits before the count, or a link written before it was read: load buffering"},
        {"hak_remote_publish fetch_add acq_rel: without release",
         "the bits hand over what was written before"},
        {"hak_remote_publish fetch_sub acq_rel: without acquire", "for copies of the process"},
        {"hak_remote_publish fetch_sub acq_rel: without release", "for copies of the process"},
        {"hak_pending_push load acquire: without acquire",
         "the stack of a heap that is new to the thread is 0 from the start"},
        {"hak_remote_collect fetch_sub acq_rel: without acquire",
         "the bits hand over what was written before"},
        {"hak_remote_collect fetch_sub acq_rel: without release",
         "a link written before it was read: load buffering"},
        {NULL, NULL}};
    make();
    CHECK(interleave_needs_orders("src/slab/remote.", harnesses, HARNESS_COUNT, kept));
}

TEST(every_order_of_a_moving_slab_is_needed)
{
    static const struct kept_order kept[] = {
        {"hak_heap_collect load acquire: without acquire",
         "only compared, and what is behind it was made before the threads were"},
        {"hak_heap_receive store release: without release",
         "for a heap that is new to a reader; here both were made before the threads"},
        {NULL, NULL}};
    make();
    CHECK(interleave_needs_orders("src/heap/heap.", harnesses, HARNESS_COUNT, kept));
}
