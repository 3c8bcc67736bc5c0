/* SPDX-License-Identifier: MIT */
/* tests/interleave/drain_interleave.c - the bins of a processor are emptied, or get other slots,
 * while threads use them: no block is served twice or lost. */
#include "../check.h"
#include "heap/cache.h"
#include "heap/cache_list.h"
#include "heap/heaps.h"
#include "heap/rooms.h"
#include "process/start.h"
#include "region/meta.h"
#include "sequences.h"
#include "slabs.h"

#define BLOCKS 2u

static struct rseq_area areas[] = {{.cpu_id = 0, .mm_cid = 0}, {.cpu_id = 1, .mm_cid = 1}};
static struct slab *slab;
static uint32_t class_index, held_count;
static struct cache *cache;
static void *spare_block; /* in use, and not in the bin */

/* A processor whose bin has a few blocks, of a slab that has more in use. */
static void make(void)
{
    void *blocks[BLOCKS + 1];
    uint32_t word_count;
    CHECK(hak_process_start());
    if (hak_caches_reason() != RSEQ_PROCESSOR)
        exit(CHECK_SKIPPED);
    class_index = hak_class_of(64);
    hak_here = &areas[0];
    cache = hak_cache_of_processor();
    CHECK(cache != NULL && hak_cache_is_processors(cache));
    struct heap *heap = hak_heap_enter();
    CHECK(heap != NULL);
    slab = make_slab(class_index, &heap->owner, &heap->stats);
    CHECK(slab != NULL && hak_slab_take(slab, blocks, BLOCKS + 1) == BLOCKS + 1);
    CHECK(hak_heap_receive(heap, slab));
    hak_heap_leave(heap);
    spare_block = blocks[BLOCKS];
    CHECK(hak_rooms_try_lock());
    CHECK(hak_room_resize(cache, class_index, BLOCKS + 1));
    hak_rooms_unlock();
    for (uint32_t i = 0; i < BLOCKS; i++)
        CHECK(hak_bin_push(class_index, blocks[i]));
    struct bins *spare = hak_rooms_create(&word_count, true); /* no memory is asked for later */
    CHECK(spare != NULL);
    hak_rooms_destroy(spare, word_count, true);
    hak_meta_prewarm(64 * 1024);
}

static void *pop(void)
{
    hak_here = &areas[0];
    uint64_t *block = hak_bin_pop(class_index);
    if (block != NULL) {
        *block = interleave_self(); /* a race, if somebody else has it */
        held_count++;
    }
    return block;
}

static void push(void *block)
{
    if (block == NULL)
        return;
    *(uint64_t *)block = 0;
    if (hak_bin_push(class_index, block))
        held_count--;
}

static void pop_once(void)
{
    pop();
}

static void pop_twice(void)
{
    pop();
    pop();
}

static void pop_and_push(void)
{
    push(pop());
}

/* Returns the blocks, and uses one that is free then. */
static void drain(void)
{
    void *block;
    hak_here = &areas[1];
    hak_caches_drain_idle(UINT64_MAX);
    struct heap *heap = hak_heap_enter();
    if (slab->summary[0] != 0 && hak_slab_take(slab, &block, 1) == 1) {
        *(uint64_t *)block = 7;
        hak_slab_give(slab, block);
    }
    hak_heap_leave(heap);
}

static void push_spare(void)
{
    hak_here = &areas[0];
    push(spare_block);
}

static bool resize_to(uint32_t capacity)
{
    hak_here = &areas[0];
    if (!hak_rooms_try_lock())
        return false;
    bool is_done = hak_room_resize(cache, class_index, capacity);
    hak_rooms_unlock();
    return is_done;
}

static void resize(void)
{
    resize_to(HAK_BIN_SLOTS_LEAST);
}

/* To a room of its own, by a thread that is moved in the middle of it. */
static void resize_and_move(void)
{
    moves_to = &areas[1];
    resize();
}

/* The bin moves twice, the second time to where it was or behind it. */
static void resize_twice(void)
{
    resize_and_move();
    resize_to(2 * HAK_BIN_SLOTS_LEAST);
}

static void lower(void)
{
    resize_to(1);
}

/* What others had in their hands is not to be lost in the child. */
static void fork_and_use(void)
{
    hak_here = &areas[1];
    interleave_fork();
    struct heap *heap = hak_heap_enter();
    hak_heap_collect(heap); /* what was freed while fork had the heap */
    hak_heap_leave(heap);
}

/* Another processor gets a cache. */
static void create(void)
{
    hak_here = &areas[1];
    MUST(hak_cache_of_processor() != NULL);
}

/* As statistics do. */
static void count(void)
{
    for (struct cache *i = hak_caches_first(); i != NULL; i = i->next)
        MUST(hak_cache_count(i, class_index) <= BLOCKS + 1);
}

static void each_is_somewhere(void)
{
    MUST(slab->used == 1 + held_count + hak_cache_count(cache, class_index));
    MUST(hak_slab_is_sound(slab));
    MUST(hak_load_relaxed(&cache->in_flight) == 0);
}

static const struct harness harnesses[] = {
    {"a pop", NULL, {pop_once, drain}, each_is_somewhere, 3, 2, 0},
    {"two pops", NULL, {pop_twice, drain}, each_is_somewhere, 2, 1, 0},
    {"a pop and a push", NULL, {pop_and_push, drain}, each_is_somewhere, 2, 1, 0},
    {"a new cache", NULL, {create, count}, NULL, 2, 2, 0},
    {"a room and a pop", NULL, {pop_and_push, resize}, each_is_somewhere, 3, 2, 0},
    {"a room elsewhere", NULL, {pop_and_push, resize_and_move}, each_is_somewhere, 3, 2, 0},
    {"a room elsewhere and a push",
     NULL,
     {push_spare, resize_and_move},
     each_is_somewhere,
     3,
     2,
     0},
    {"two rooms", NULL, {pop_and_push, resize_twice}, each_is_somewhere, 3, 1, 0},
    {"a lower limit", NULL, {push_spare, lower}, each_is_somewhere, 3, 2, 0},
    {"a fork and a drain", NULL, {fork_and_use, drain}, each_is_somewhere, 2, 1, 0},
    {"a fork and a room",
     NULL,
     {fork_and_use, resize_and_move, pop_and_push},
     each_is_somewhere,
     1,
     0,
     0},
    {"a room and a drain", NULL, {pop_once, resize_and_move, drain}, each_is_somewhere, 1, 1, 0},
};
#define HARNESS_COUNT (sizeof harnesses / sizeof *harnesses)

TEST(no_block_is_served_twice_or_lost_while_a_processors_bins_are_emptied)
{
    make();
    CHECK(interleave_hold(harnesses, HARNESS_COUNT));
}

TEST(every_order_of_the_bins_is_needed)
{
    static const struct kept_order kept[] = {
        {"hak_cache_bins load acquire: without acquire", "what is counted there is a hint"},
        {"swap_out_locked fetch_add acq_rel: without acquire", "the copy of fork has all stores"},
        {"swap_out_locked fetch_add acq_rel: without release", "the copy of fork has all stores"},
        {"hak_caches_drain_idle restart of sequences: left out",
         "only asks whether the kernel has them"},
        {"hak_caches_drain_idle fetch_sub acq_rel: without acquire",
         "the copy of fork has all stores"},
        {"hak_caches_drain_idle fetch_sub acq_rel: without release",
         "the copy of fork has all stores"},
        {"is_being_changed load acquire: without acquire", "the copy of fork has all stores"},
        {"publish store release: without release", "what is counted there is a hint"},
        {NULL, NULL}};
    make();
    CHECK(interleave_needs_orders("heap/bins. heap/rooms. heap/cache.h heap/cache_list.", harnesses,
                                  HARNESS_COUNT, kept));
}
