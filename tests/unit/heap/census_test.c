/* SPDX-License-Identifier: MIT */
/* tests/unit/heap/census_test.c - the census agrees with what the program counts itself, and with
 * a walk over all slabs. */
#include "api/api.h"
#include "check.h"
#include "conf/conf.h"
#include "hakmem/hakmem.h"
#include "heap/census.h"
#include "heap/flush.h"
#include "heap/heaps.h"
#include "heap/private_heap.h"
#include "heap/refill.h"
#include "process/start.h"
#include "slabs.h"
#include "threads.h"

#include <stdlib.h>
#include <string.h>

#define COUNT 6000
#define SLEEPERS 6

static struct census census;

/* Nothing moves between a census and what it is compared with. */
__attribute__((constructor(101))) static void keep_alone(void)
{
    setenv("HAKMEM_CACHES", "thread", 1); /* what processors hold, others may use meanwhile */
    setenv("HAKMEM_MAINTENANCE", "off", 1);
}

TEST(nobody_else_moves_what_is_counted)
{
    CHECK(hak_thread_cache() != NULL && !hak_cache_is_processors(hak_thread_cache()));
    CHECK_EQ(hak_conf_number(maintenance), MAINTENANCE_OFF);
}

/* Used blocks and slabs of a class, by the slabs' own records. */
static uint64_t walk(uint32_t class_index, uint64_t *slabs)
{
    uint64_t used = 0;
    size_t limit = hak_load_relaxed(&hak_region.committed_bytes) >> HAK_GRANULE_SHIFT;
    *slabs = 0;
    for (size_t granule = 0; granule < limit; granule++) {
        if (!hak_tag_is_slab(hak_tag_read(granule)))
            continue;
        const struct slab *slab = hak_owner_read(granule);
        if (slab->class_index != class_index ||
            slab->start != hak_region.base + (granule << HAK_GRANULE_SHIFT))
            continue;
        used += slab->used;
        ++*slabs;
    }
    return used;
}

static void check_walk(void)
{
    for (uint32_t i = 0; i < HAK_CLASS_COUNT; i++) {
        uint64_t slabs, used = walk(i, &slabs);
        CHECK_EQ(census.classes[i].used, used);
        CHECK_EQ(census.classes[i].slabs, slabs);
    }
}

struct own_count {
    int64_t live[HAK_CLASS_COUNT];
    int64_t large;
};
static struct own_count own;

static void *taken(size_t bytes)
{
    void *block = hak_malloc(bytes);
    CHECK(block != NULL);
    struct slab *slab = hak_slab_at(block);
    __atomic_fetch_add(slab == NULL ? &own.large : &own.live[slab->class_index], 1,
                       __ATOMIC_RELAXED);
    return block;
}

static void given(void *block)
{
    struct slab *slab = hak_slab_at(block);
    __atomic_fetch_sub(slab == NULL ? &own.large : &own.live[slab->class_index], 1,
                       __ATOMIC_RELAXED);
    hak_free(block);
}

static void check_live(void)
{
    hak_census_take(&census);
    CHECK_EQ(census.closed_heaps, 0);
    for (uint32_t i = 0; i < HAK_CLASS_COUNT; i++) {
        const struct class_census *class = &census.classes[i];
        CHECK_EQ(class->used - class->cached - class->withheld - class->homeward, own.live[i]);
    }
    check_walk();
}

static uint64_t sum_of(size_t offset)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < HAK_CLASS_COUNT; i++)
        sum += *(uint64_t *)(void *)((char *)&census.classes[i] + offset);
    return sum;
}
#define SUM(member) sum_of(offsetof(struct class_census, member))

static uint32_t seed = 7;
static size_t some_bytes(void)
{
    seed = seed * 1664525u + 1013904223u;
    uint32_t dice = (seed >> 8) % 100;
    return 1 + (seed >> 12) % (dice < 90 ? 600 : dice < 98 ? 30000 : 200000);
}

TEST(one_thread_is_counted_to_the_block)
{
    static void *blocks[COUNT];
    hak_census_take(&census);
    CHECK_EQ(SUM(used), 0);
    for (int round = 0; round < 20 * COUNT; round++) {
        void **slot = &blocks[(uint32_t)round * 7919u % COUNT];
        if (*slot == NULL) {
            *slot = taken(some_bytes());
        } else {
            given(*slot);
            *slot = NULL;
        }
        if (round % 5000 == 0)
            check_live();
    }
    check_live();
    CHECK(SUM(cached) > 0);
    for (int i = 0; i < COUNT; i++)
        if (blocks[i] != NULL)
            given(blocks[i]);
    check_live();
    CHECK_EQ(SUM(used), SUM(cached));
}

TEST(zeroed_and_aligned_blocks_are_counted_too)
{
    void *blocks[200];
    for (int i = 0; i < 200; i++) {
        blocks[i] = i % 2 ? hak_calloc(1, 1500 + (size_t)i * 300) : hak_aligned_alloc(256, 700);
        own.live[hak_slab_at(blocks[i])->class_index]++;
    }
    check_live();
    for (int i = 0; i < 200; i++)
        given(blocks[i]);
    check_live();
}

/* Blocks wander from thread to thread. */
static pthread_barrier_t step;
static void *shared[SLEEPERS][COUNT];
enum { STEPS = 5 };

static void *sleeper(void *argument)
{
    uint32_t self = (uint32_t)(uintptr_t)argument - 1;
    uint32_t state = self * 77u + 1u;
    for (int i = 0; i < COUNT; i++) {
        state = state * 1664525u + 1013904223u;
        shared[self][i] = taken(1 + (state >> 10) % (i % 50 ? 900 : 150000));
    }
    for (int k = 0; k < STEPS; k++) {
        pthread_barrier_wait(&step);
        pthread_barrier_wait(&step); /* the census was taken */
        uint32_t from = (self + 1u + (uint32_t)k) % SLEEPERS;
        for (int i = k; i < COUNT; i += STEPS)
            given(shared[from][i]);
    }
    pthread_barrier_wait(&step);
    pthread_barrier_wait(&step);
    return NULL;
}

TEST(several_quiet_threads_are_counted_to_the_block)
{
    pthread_t threads[SLEEPERS];
    pthread_barrier_init(&step, NULL, SLEEPERS + 1);
    start_threads(threads, SLEEPERS, sleeper);
    for (int k = 0; k <= STEPS; k++) {
        pthread_barrier_wait(&step);
        check_live();
        pthread_barrier_wait(&step);
    }
    join_threads(threads, SLEEPERS);
    check_live(); /* now their caches are free */
    CHECK_EQ(SUM(used), SUM(homeward) + SUM(cached));
}

static void *allocate_and_end(void *argument)
{
    for (int i = 0; i < COUNT; i++)
        shared[0][i] = taken(1 + (size_t)i % 900);
    for (int i = 0; i < COUNT; i += 2)
        given(shared[0][i]);
    return argument;
}

TEST(slabs_that_move_to_another_heap_take_their_blocks_along)
{
    in_thread(allocate_and_end, NULL);
    check_live();
    struct heap *first = hak_heap_at(0);
    given(taken(1)); /* this thread has a cache */
    hak_thread_flush();
    CHECK(hak_heap_try_enter(first));
    struct heap *other = hak_heap_enter();
    CHECK(other != NULL && other != first);
    hak_heap_leave(other);
    hak_heap_leave(first);
    CHECK(hak_heap_try_enter(other));
    uint32_t class_index = hak_class_of(400);
    void *block = take_block(other, class_index);
    hak_heap_leave(other);
    CHECK(block != NULL);
    own.live[class_index]++;
    CHECK(hak_census_counter(HAK_STAT_stolen_slabs) > 0);
    check_live();
    given(block);
    for (int i = 1; i < COUNT; i += 2)
        given(shared[0][i]);
    check_live();
}

TEST(blocks_published_to_a_busy_heap_are_not_collected_yet)
{
    void *block = taken(100);
    struct heap *heap = hak_heap_at(0);
    CHECK(hak_heap_try_enter(heap));
    own.live[hak_slab_at(block)->class_index]--;
    hak_flush_one(hak_slab_at(block), block);
    hak_heap_leave(heap);
    check_live();
    CHECK_EQ(SUM(homeward), 1);
}

static void counted(void *block)
{
    CHECK(block != NULL);
    struct slab *slab = hak_slab_at(block);
    if (slab != NULL)
        own.live[slab->class_index]++;
}

static int64_t live_before[HAK_CLASS_COUNT];

TEST(the_blocks_of_private_heaps_are_counted_however_they_end)
{
    static void *blocks[COUNT];
    check_live();
    memcpy(live_before, own.live, sizeof own.live);
    hakmem_heap *heap = hakmem_heap_new();
    for (int i = 0; i < COUNT; i++) {
        blocks[i] = i % 3 ? hakmem_heap_malloc(heap, some_bytes())
                          : hakmem_heap_calloc(heap, 1, some_bytes());
        counted(blocks[i]);
    }
    check_live();
    for (int i = 0; i < COUNT; i += 4)
        given(blocks[i]); /* as a stranger: on their way home */
    check_live();
    CHECK(SUM(homeward) > 0);
    for (int i = 1; i < COUNT; i += 4) {
        struct slab *slab = hak_slab_at(blocks[i]);
        if (slab != NULL)
            own.live[slab->class_index]--;
        hakmem_heap_free(heap, blocks[i]);
    }
    check_live();
    hakmem_heap_destroy(heap);
    memcpy(own.live, live_before, sizeof own.live);
    check_live();
}

static void *stay_in_the_heap(void *heap)
{
    struct private_heap *entered = hak_private_enter(heap, "test");
    pthread_barrier_wait(&step);
    pthread_barrier_wait(&step);
    hak_private_leave(entered);
    return NULL;
}

/* The census of this moment, in which a thread is in the heap. */
static void check_from_outside(void *(*stay)(void *heap), void *heap)
{
    pthread_barrier_init(&step, NULL, 2);
    pthread_t thread = start_thread(stay, heap);
    pthread_barrier_wait(&step);
    hak_census_take(&census);
    pthread_barrier_wait(&step);
    join_thread(thread);
    CHECK_EQ(census.closed_heaps, 1);
    check_walk();
    check_live();
}

TEST(a_private_heap_that_somebody_is_in_is_counted_from_outside)
{
    hakmem_heap *heap = hakmem_heap_new();
    counted(hakmem_heap_malloc(heap, 100));
    check_from_outside(stay_in_the_heap, heap);
}

static void *stay_in_a_shared_heap(void *heap)
{
    CHECK(hak_heap_try_enter(heap));
    pthread_barrier_wait(&step);
    pthread_barrier_wait(&step);
    hak_heap_leave(heap);
    return NULL;
}

TEST(a_heap_that_another_thread_does_not_leave_is_counted_from_outside)
{
    void *block = taken(100);
    check_from_outside(stay_in_a_shared_heap, hak_heap_at(0));
    given(block);
}

TEST(a_heap_that_this_thread_was_interrupted_in_is_counted_from_outside)
{
    void *block = taken(100);
    struct heap *heap = hak_heap_at(0);
    CHECK(hak_heap_try_enter(heap));
    hak_census_take(&census);
    CHECK_EQ(census.closed_heaps, 1);
    check_walk();
    hak_heap_leave(heap);
    check_live();
    given(block);
}
