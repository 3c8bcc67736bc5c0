/* SPDX-License-Identifier: MIT */
/* tests/race/private_race.c - threads allocate from and free into each other's heaps while heaps of
 * others are made, swept and destroyed. */
#include "api/api.h"
#include "heap/private_heap.h"
#include "os/os.h"
#include "process/start.h"
#include "public.h"
#include "racers.h"
#include "span/large.h"

#define RACERS 4u
#define SHARED_HEAPS 2u
#define SLOTS 64u
#define STEPS 6000u
#define ROUNDS 400u
#define THINNED 224u
#define ENOUGH_MS 10000u /* on busy processors a thread that yields waits for the others' turns */

static hakmem_heap *shared[SHARED_HEAPS];
static _Atomic(uint64_t *) slots[SHARED_HEAPS][SLOTS];

static size_t draw_bytes(struct racer *racer)
{
    return draw(racer) % 50 == 0 ? 140000 + draw(racer) % 300000 : 8 + draw(racer) % 1500;
}

/* Frees by the heap, by free, or by realloc. */
static void give(struct racer *racer, hakmem_heap *heap, uint64_t *block)
{
    if (block == NULL)
        return;
    CHECK_EQ(*block, (uintptr_t)block);
    if (draw(racer) % 8 == 0) {
        uint64_t *moved = hak_realloc(block, draw_bytes(racer));
        CHECK(moved != NULL);
        CHECK_EQ(*moved, (uintptr_t)block);
        CHECK_EQ(hakmem_heap_of(moved), heap);
        block = moved;
    }
    if (draw(racer) % 2 == 0)
        hak_free(block);
    else
        hakmem_heap_free(heap, block);
}

static void use_shared(struct racer *racer)
{
    for (uint32_t i = 0; i < STEPS; i++) {
        uint32_t index = (uint32_t)(draw(racer) % SHARED_HEAPS);
        uint64_t *block = hakmem_heap_malloc(shared[index], draw_bytes(racer));
        CHECK(block != NULL);
        *block = (uintptr_t)block;
        stumble(racer);
        give(racer, shared[index], atomic_exchange(&slots[index][draw(racer) % SLOTS], block));
        if (draw(racer) % 256 == 0)
            hakmem_heap_trim(shared[index]);
    }
}

/* Makes a heap, fills it, frees some of it in another way, destroys it: again and again. */
static void come_and_go(struct racer *racer)
{
    for (uint32_t i = 0; i < ROUNDS; i++) {
        hakmem_heap *heap = new_heap();
        for (uint64_t count = draw(racer) % 100; count > 0; count--) {
            uint64_t *block = hakmem_heap_malloc(heap, draw_bytes(racer));
            CHECK(block != NULL);
            *block = (uintptr_t)block;
            if (draw(racer) % 3 == 0)
                give(racer, heap, block);
            stumble(racer);
        }
        if (draw(racer) % 16 == 0)
            hak_private_drain_all();
        if (draw(racer) % 16 == 0)
            hak_private_sweep_all();
        hakmem_heap_destroy(heap);
    }
}

TEST(heaps_are_shared_made_and_destroyed_by_many_threads_and_lose_no_block)
{
    void (*const bodies[RACERS])(struct racer *) = {use_shared, come_and_go, use_shared,
                                                    come_and_go};
    for (uint32_t i = 0; i < SHARED_HEAPS; i++)
        shared[i] = new_heap();
    race(RACERS, bodies);
    for (uint32_t i = 0; i < SHARED_HEAPS; i++) {
        struct private_heap *heap = hak_private_enter(shared[i], "test");
        hak_heap_collect(&heap->heap);
        CHECK(hak_private_is_sound(heap));
        hak_private_leave(heap);
        hakmem_heap_destroy(shared[i]);
    }
    CHECK_EQ(hak_slab_record_count(), 0);
    CHECK_EQ(hak_large_live_bytes(), 0);
}

static hakmem_heap *heap_to_end;
static uint64_t *blocks_to_free[256];
static pthread_barrier_t round_line;

/* Frees what the other has allocated, and meets it before it destroys the heap and after it has
 * counted: a thread that ends meanwhile has spans in hand that are nobody's for a moment. */
static void free_all(struct racer *racer)
{
    for (uint32_t i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(&round_line);
        for (uint32_t at = racer->index; at < 256; at += 2)
            hak_free(blocks_to_free[at]);
        pthread_barrier_wait(&round_line);
        pthread_barrier_wait(&round_line);
    }
}

static void fill_and_destroy(struct racer *racer)
{
    for (uint32_t i = 0; i < ROUNDS; i++) {
        heap_to_end = new_heap();
        for (uint32_t at = 0; at < 256; at++)
            CHECK((blocks_to_free[at] = hakmem_heap_malloc(heap_to_end, draw_bytes(racer))));
        pthread_barrier_wait(&round_line);
        CHECK(hakmem_heap_malloc(heap_to_end, draw_bytes(racer)) != NULL);
        pthread_barrier_wait(&round_line);
        hakmem_heap_destroy(heap_to_end);
        CHECK_EQ(hak_slab_record_count(), 0);
        CHECK_EQ(hak_large_live_bytes(), 0);
        pthread_barrier_wait(&round_line);
    }
}

TEST(frees_by_others_that_came_before_leave_nothing_behind_a_destroyed_heap)
{
    void (*const bodies[])(struct racer *) = {free_all, free_all, fill_and_destroy};
    CHECK_EQ(pthread_barrier_init(&round_line, NULL, 3), 0);
    race(3, bodies);
}

/* Asks for numbers while heaps come and go: there are never more live blocks than there may be. */
static void count_again_and_again(struct racer *racer)
{
    for (uint32_t i = 0; i < ROUNDS; i++) {
        CHECK(stats_now().small_live_block_count < RACERS * (SLOTS * SHARED_HEAPS + 100) * 2);
        stumble(racer);
    }
}

TEST(heaps_can_be_counted_while_they_are_made_used_and_destroyed)
{
    void (*const bodies[RACERS])(struct racer *) = {use_shared, come_and_go, count_again_and_again,
                                                    come_and_go};
    for (uint32_t i = 0; i < SHARED_HEAPS; i++)
        shared[i] = new_heap();
    race(RACERS, bodies);
    for (uint32_t i = 0; i < SHARED_HEAPS; i++)
        hakmem_heap_destroy(shared[i]);
    CHECK_EQ(stats_now().live_bytes, 0);
}

static _Atomic bool is_over;

static uint64_t block_count(struct private_heap *heap)
{
    return hak_private_use(heap).block_count;
}

/* All of its slabs. */
static uint64_t is_out(struct private_heap *heap)
{
    return heap->heap.partial_mask[hak_class_of(1000)] == 0 && hak_list_is_empty(&heap->heap.full);
}

static uint64_t inside(hakmem_heap *handle, uint64_t (*ask)(struct private_heap *heap))
{
    struct private_heap *heap = hak_private_enter(handle, "test");
    uint64_t answer = ask(heap);
    hak_private_leave(heap);
    return answer;
}

/* Heaps of dead pages are destroyed while their slabs are being purged, if that comes soon. */
static void thin_and_destroy(struct racer *racer)
{
    (void)racer;
    uint64_t end_ms = hak_os_clock_ms() + ENOUGH_MS;
    for (uint32_t i = 0; i < ROUNDS && hak_os_clock_ms() < end_ms; i++) {
        void *blocks[THINNED];
        hakmem_heap *heap = new_heap();
        CHECK_EQ(inside(heap, block_count), 0);
        for (uint32_t at = 0; at < THINNED; at++)
            CHECK((blocks[at] = hakmem_heap_calloc(heap, 1, 1000)) != NULL);
        for (uint32_t at = 0; at < THINNED; at++)
            if (at % 8 != 0)
                hakmem_heap_free(heap, blocks[at]);
        for (uint32_t tries = 0; tries < 1000 && !inside(heap, is_out); tries++) {
            sched_yield();
            if (hak_os_clock_ms() >= end_ms)
                break;
        }
        hakmem_heap_destroy(heap);
    }
    atomic_store(&is_over, true);
}

static void sweep_again_and_again(struct racer *racer)
{
    while (!atomic_load(&is_over)) {
        hak_private_sweep_all();
        stumble(racer);
    }
}

TEST(a_heap_that_is_destroyed_while_it_is_purged_leaves_no_block_to_the_next_one)
{
    void (*const bodies[])(struct racer *) = {thin_and_destroy, sweep_again_and_again};
    race(2, bodies);
    CHECK_EQ(hak_slab_record_count(), 0);
}
