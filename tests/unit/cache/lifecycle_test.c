/* SPDX-License-Identifier: MIT */
/* tests/unit/cache/lifecycle_test.c - threads and children begin and end. */
#include "api/api.h"
#include "cache/lifecycle.h"
#include "cache/registry.h"
#include "check.h"

#include <pthread.h>

static struct heap *seen_heap;
static void *seen_block;

static void run(void *(*body)(void *))
{
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, body, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

static uint32_t heap_count(void)
{
    uint32_t count = 0;
    for (struct heap *heap = hak_registry_first(); heap != NULL; heap = heap->next)
        count++;
    return count;
}

static void *take_a_block(void *argument)
{
    (void)argument;
    CHECK_EQ(hak_thread, &hak_thread_unstarted);
    seen_block = hak_malloc(100);
    seen_heap = hak_thread_heap();
    CHECK_EQ((void *)hak_thread, (void *)seen_heap);
    return NULL;
}

TEST(a_thread_has_a_heap_from_its_first_call_on)
{
    CHECK_EQ(hak_thread, &hak_thread_unstarted);
    CHECK(hak_malloc(1) != NULL);
    CHECK_EQ(hak_thread->is_heap, 1);
    CHECK_EQ((void *)hak_thread_heap(), (void *)hak_thread);
    CHECK_EQ(heap_count(), 1);
}

TEST(a_free_alone_starts_a_thread_too)
{
    hak_free(NULL);
    CHECK_EQ(hak_thread, &hak_thread_unstarted);
    run(take_a_block);
    hak_free(seen_block);
    CHECK_EQ(hak_thread->is_heap, 1);
}

TEST(the_heap_of_a_thread_that_ended_is_parked_and_empty_and_the_next_thread_takes_it)
{
    run(take_a_block);
    struct heap *first = seen_heap;
    CHECK_EQ(hak_load_relaxed(&first->state), HEAP_PARKED);
    CHECK_EQ(first->capacity_bytes, 0);
    CHECK_EQ(hak_registry_active_count(), 0);
    run(take_a_block);
    CHECK_EQ(seen_heap, first);
    CHECK_EQ(heap_count(), 1);
}

static pthread_key_t late_key;
static bool was_exited;

/* Runs after hakmem's own destructor of the third round. */
static void use_late(void *value)
{
    static _Thread_local int rounds;
    if (++rounds < 4) {
        pthread_setspecific(late_key, value);
        return;
    }
    was_exited = hak_thread == &hak_thread_exited;
    void *block = hak_malloc(50);
    CHECK(block != NULL);
    memset(block, 1, 50);
    hak_free(block);
    hak_free(seen_block);
    seen_block = hak_calloc(1, 5000);
    CHECK(seen_block != NULL);
}

static void *end_with_late_use(void *argument)
{
    take_a_block(argument);
    CHECK_EQ(pthread_setspecific(late_key, seen_block), 0);
    return NULL;
}

TEST(a_thread_past_its_end_is_lent_a_heap_for_each_call)
{
    CHECK(hak_process_start());
    CHECK_EQ(pthread_key_create(&late_key, use_late), 0);
    run(end_with_late_use);
    CHECK(was_exited);
    CHECK_EQ(hak_registry_active_count(), 0);
    CHECK_EQ(heap_count(), 1);
    CHECK(hak_malloc_usable_size(seen_block) >= 5000);
    hak_free(seen_block);
}

TEST(a_borrowed_heap_is_returned_empty)
{
    struct heap *heap = hak_heap_borrow();
    CHECK(heap != NULL);
    CHECK_EQ(hak_thread, &hak_thread_unstarted);
    hak_gate_enter(&heap->gate);
    void *block = hak_heap_refill(heap, 3);
    hak_gate_leave(&heap->gate);
    hak_heap_return(heap);
    CHECK(block != NULL);
    CHECK_EQ(hak_load_relaxed(&heap->state), HEAP_PARKED);
    CHECK_EQ(hak_slab_at(block)->used, 1);
}

TEST(a_call_from_within_a_slow_path_uses_another_heap)
{
    struct heap *own = hak_thread_heap();
    hak_gate_enter(&own->gate); /* as a signal handler finds it */
    void *block = hak_malloc(3000);
    CHECK(block != NULL);
    CHECK(hak_tag_heap(hak_tag_read(hak_granule_of(block))) != own->id);
    hak_free(block);
    CHECK(hak_gate_is_nested(&own->gate));
    CHECK_EQ(hak_load_relaxed(&own->stats.counters[HAK_STAT_refills]), 0);
    hak_gate_leave(&own->gate);
    CHECK(hak_heap_is_sound(own));
}

static void *leave_inside(void *argument)
{
    take_a_block(argument);
    hak_gate_enter(&seen_heap->gate); /* and never leave: a longjmp out of a handler */
    return NULL;
}

TEST(the_heap_of_a_thread_that_left_a_slow_path_by_a_jump_is_never_used_again)
{
    run(leave_inside);
    struct heap *broken = seen_heap;
    CHECK_EQ(hak_load_relaxed(&broken->state), HEAP_FROZEN);
    run(take_a_block);
    CHECK(seen_heap != broken);
}

static void child_allocates(void)
{
    for (size_t bytes = 1; bytes < HAK_MIB; bytes *= 2) {
        void *block = hak_malloc(bytes);
        CHECK(block != NULL);
        hak_free(block);
    }
    hak_free(seen_block);
}

static void *keep_alive(void *argument)
{
    take_a_block(argument);
    for (;;)
        pause();
    return NULL;
}

TEST(the_child_of_a_fork_allocates_and_adopts_what_its_threads_left)
{
    CHECK(hak_malloc(10) != NULL);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, keep_alive, NULL), 0);
    while (__atomic_load_n(&seen_heap, __ATOMIC_ACQUIRE) == NULL)
        usleep(1000);
    CHECK_EXITS(child_allocates(), 0);
    CHECK_EXITS(CHECK_EQ(hak_load_relaxed(&seen_heap->state), HEAP_PARKED), 0);
    CHECK_EQ(hak_load_relaxed(&seen_heap->state), HEAP_ACTIVE);
    CHECK_EQ(hak_load_relaxed(&seen_heap->gate.claimed), 0);
    child_allocates();
}

static void *hold_the_gate(void *argument)
{
    (void)argument;
    struct heap *heap = hak_thread_heap();
    hak_gate_enter(&heap->gate);
    __atomic_store_n(&seen_heap, heap, __ATOMIC_RELEASE);
    for (;;)
        pause();
    return NULL;
}

TEST(a_heap_whose_gate_does_not_open_is_frozen_in_the_child_only)
{
    CHECK(hak_malloc(10) != NULL);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, hold_the_gate, NULL), 0);
    while (__atomic_load_n(&seen_heap, __ATOMIC_ACQUIRE) == NULL)
        usleep(1000);
    CHECK_EXITS(CHECK_EQ(hak_load_relaxed(&seen_heap->state), HEAP_FROZEN), 0);
    CHECK_EXITS(child_allocates(), 0);
    CHECK_EQ(hak_load_relaxed(&seen_heap->state), HEAP_ACTIVE);
}

TEST(the_process_starts_once)
{
    CHECK(hak_process_start());
    uintptr_t base = hak_region.base;
    CHECK(hak_process_start());
    CHECK_EQ(hak_region.base, base);
}
