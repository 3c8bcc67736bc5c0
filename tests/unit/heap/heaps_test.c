/* SPDX-License-Identifier: MIT */
/* tests/unit/heap/heaps_test.c - which heap a slow path enters, and what becomes of one that
 * nobody leaves. */
#define _GNU_SOURCE
#include "api/api.h"
#include "asleep.h"
#include "check.h"
#include "heap/flush.h"
#include "heap/heaps.h"
#include "heap/refill.h"
#include "heap/remote_recount.h"
#include "heap/supply.h"
#include "os/os.h"
#include "process/start.h"
#include "slabs.h"
#include "stay.h"
#include "threads.h"

#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <unistd.h>

#define CLASS hak_class_of(64)

static struct heap *entered(void)
{
    CHECK(hak_process_start());
    struct heap *heap = hak_heap_enter();
    CHECK(heap != NULL);
    return heap;
}

TEST(a_process_of_one_thread_has_one_heap)
{
    struct heap *heap = entered();
    hak_heap_leave(heap);
    uint64_t before = hak_load_relaxed(&heap->enter_count);
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(hak_heap_enter(), heap);
        hak_heap_leave(heap);
    }
    CHECK_EQ(hak_load_relaxed(&heap->enter_count) - before, 100);
    CHECK_EQ(hak_heap_count(), 1);
    CHECK_EQ(hak_heap_near(), heap);
    CHECK_EQ(hak_held_heaps.note, 0);
}

TEST(a_heap_that_is_held_is_not_entered_again)
{
    struct heap *heap = entered();
    CHECK(hak_heap_is_held());
    CHECK(!hak_heap_try_enter(heap));
    CHECK(!hak_heap_enter_within(heap, 1000)); /* a holder of one waits for none */
    CHECK_EQ(hak_held_heaps.note & HAK_HELD_HEAPS_COUNT, 1);
    hak_heap_leave(heap);
    CHECK(hak_heap_enter_within(heap, 0));
    hak_heap_leave(heap);
}

TEST(a_handler_that_finds_all_heaps_busy_makes_one_more)
{
    struct heap *heap = entered(), *others[HAK_HELD_HEAPS_MOST];
    for (uint32_t i = 1; i < HAK_HELD_HEAPS_MOST; i++) {
        others[i] = hak_heap_enter();
        CHECK(others[i] != NULL && others[i] != heap);
    }
    CHECK_EQ(hak_heap_enter(), NULL); /* so many handlers do not interrupt each other */
    for (uint32_t i = HAK_HELD_HEAPS_MOST - 1; i > 0; i--)
        hak_heap_leave(others[i]);
    hak_heap_leave(heap);
    CHECK_EQ(hak_heap_count(), HAK_HELD_HEAPS_MOST);
}

static void *enter_and_leave(void *wanted)
{
    struct heap *heap = hak_heap_enter();
    CHECK(heap != NULL && heap != wanted);
    hak_heap_leave(heap);
    return heap;
}

TEST(a_thread_that_waited_for_a_heap_makes_one_more)
{
    struct heap *heap = entered();
    uint64_t start_ms = hak_os_clock_ms();
    struct heap *other = in_thread(enter_and_leave, heap);
    CHECK(hak_os_clock_ms() - start_ms >= 10); /* the clock is coarse */
    CHECK_EQ(in_thread(enter_and_leave, heap), other);
    CHECK_EQ(hak_heap_count(), 2);
    hak_heap_leave(heap);
}

static void *enter_on_processor_1(void *unused)
{
    (void)unused;
    if (!stay_on(1))
        SKIP("there is no processor 1");
    struct heap *heap = hak_heap_enter();
    hak_heap_leave(heap);
    return heap;
}

/* Else the thread would wait for ever. */
TEST(while_another_thread_makes_a_heap_one_that_is_free_serves)
{
    struct heap *heap = entered();
    hak_heap_leave(heap);
    hak_heaps_note_threads(2); /* so processor 1 may have a heap of its own */
    alarm(30);
    hak_heaps_stop(0); /* nobody can make one from here on */
    hak_lock_give_among(&heap->lock);
    heap->is_claimed = false;
    CHECK_EQ(in_thread(enter_on_processor_1, NULL), heap);
    hak_heaps_go_on();
    CHECK_EQ(hak_heap_count(), 1);
}

/* It was made when threads ran already: it is no heap of processor 0. */
TEST(a_processor_without_a_heap_has_the_first_one_near)
{
    CHECK(hak_process_start());
    CHECK(hak_heap_near() == NULL);
    hak_heaps_note_threads(2);
    struct heap *heap = in_thread(enter_on_processor_1, NULL);
    if (!stay_on(0))
        SKIP("there is no processor 0");
    CHECK_EQ(hak_heap_near(), heap);
    void *block = hak_malloc(20000);
    CHECK(block != NULL);
    hak_free(block);
}

static atomic_int waiter; /* its id */

static void *take_all_present(void *unused)
{
    (void)unused;
    atomic_store(&waiter, thread_id());
    /* All that is there, and one that memory has to be added for. */
    for (uint32_t count = hak_pool_superslab_count(); hak_pool_superslab_count() == count;)
        CHECK(hak_take_one(hak_class_of(32768), NULL) != NULL);
    return NULL;
}

TEST(a_thread_that_waits_for_memory_to_be_added_is_inside_no_heap)
{
    struct heap *heap = entered();
    hak_heap_leave(heap);
    void *present = hak_take_one(CLASS, NULL);
    CHECK(present != NULL);
    alarm(30);
    hak_lock_take(&hak_region.growth_lock);
    pthread_t thread = start_thread(take_all_present, NULL);
    await_sleep(&waiter);
    CHECK(hak_heap_try_enter(heap));
    CHECK(take_block(heap, CLASS) != NULL);
    hak_heap_leave(heap);
    hak_lock_give(&hak_region.growth_lock);
    join_thread(thread);
    CHECK_EQ(hak_heap_count(), 1);
    /* What is brought serves, and not other granules of the superslab. */
    CHECK_EQ(hak_load_relaxed(&heap->stats.counters[HAK_STAT_fresh_slabs]),
             hak_pool_superslab_count());
    CHECK(hak_heap_is_sound(heap));
}

/* Nobody has been inside the heap since: what was out waits at its door. */
TEST(a_slab_that_was_brought_back_to_another_heap_serves_before_a_new_one)
{
    struct heap *heap = entered(), *other = hak_heap_enter();
    void *block = take_block(other, CLASS);
    struct slab *slab = hak_slab_at(block);
    hak_heap_take_out(other, slab);
    hak_heap_leave(other);
    hak_heap_leave(heap);
    hak_heap_bring_back(slab);
    void *more = hak_take_one(CLASS, NULL);
    CHECK(more != NULL);
    CHECK_EQ(hak_slab_at(more), slab);
    CHECK_EQ(hak_slab_record_count(), 1);
}

static atomic_bool is_inside, may_leave;
static atomic_int awaiter; /* the id of the thread that waits for the heap, or 0 */

/* A thread that is inside the heap until it may leave, or the other thread sleeps. */
static void *stay_inside(void *heap)
{
    CHECK(hak_heap_enter_within(heap, 30000));
    atomic_store(&is_inside, true);
    while (!atomic_load(&may_leave) && !(atomic_load(&awaiter) && is_asleep(atomic_load(&awaiter))))
        sched_yield();
    hak_heap_leave(heap);
    return NULL;
}

static pthread_t start_inside(struct heap *heap)
{
    pthread_t thread = start_thread(stay_inside, heap);
    while (!atomic_load(&is_inside))
        sched_yield();
    return thread;
}

TEST(when_all_else_has_failed_a_heap_is_awaited_that_has_a_block)
{
    struct heap *heap = entered(), *other = hak_heap_enter();
    CHECK(take_block(other, CLASS) != NULL);
    hak_heap_leave(other);
    hak_heap_leave(heap);
    pthread_t thread = start_inside(other);
    CHECK_EQ(hak_take_larger(NULL, CLASS, hak_class_end(CLASS), 16), NULL);
    CHECK_EQ(hak_take_last(NULL, CLASS, 16, 0), NULL);
    atomic_store(&awaiter, thread_id());
    void *block = hak_take_last(NULL, CLASS, 16, 60000);
    CHECK(block != NULL);
    CHECK_EQ(hak_load_relaxed(&hak_slab_at(block)->owner), &other->owner);
    join_thread(thread);
}

static __attribute__((noinline)) void enter_and_jump(jmp_buf where)
{
    volatile char frame[4096] = {0};
    frame[0] = 1;
    CHECK(hak_heap_try_enter(hak_heap_at(0)));
    longjmp(where, frame[0]);
}

TEST(a_heap_that_was_left_by_a_jump_is_lost_and_another_takes_its_place)
{
    jmp_buf where;
    struct heap *lost = entered();
    hak_heap_leave(lost);
    if (setjmp(where) == 0)
        enter_and_jump(where);
    CHECK(hak_heaps_mend(false));
    CHECK_EQ(hak_held_heaps.note, 0);
    CHECK(!hak_heap_try_enter(lost));
    CHECK(!hak_heap_enter_within(lost, 1000));
    struct heap *heap = hak_heap_enter();
    CHECK(heap != NULL && heap != lost);
    hak_heap_leave(heap);
    CHECK_EQ(hak_heap_near(), heap);
    CHECK_EQ(hak_heap_count(), 2);
}

static void mend_in_handler(int number)
{
    (void)number;
    CHECK(!hak_heaps_mend(false));
    CHECK(hak_heap_is_held());
}

TEST(a_heap_that_a_handler_interrupted_its_thread_in_is_not_taken_for_left)
{
    struct heap *heap = entered();
    signal(SIGUSR1, mend_in_handler);
    raise(SIGUSR1);
    CHECK_EQ(hak_load_relaxed(&heap->state), HEAP_OPEN);
    hak_heap_leave(heap);
}

static void note_access(struct heap *heap, enum heap_access access, void *context)
{
    ((enum heap_access *)context)[heap->owner.heap_id - 1] = access;
}

TEST(a_visit_sees_all_heaps_and_enters_those_that_it_can)
{
    struct heap *heap = entered(), *other = hak_heap_enter();
    hak_heap_leave(other);
    enum heap_access seen[2];
    hak_heaps_visit(note_access, seen);
    CHECK_EQ(seen[0], HEAP_CLOSED); /* this thread's own */
    CHECK_EQ(seen[1], HEAP_ENTERED);
    hak_heap_leave(heap);
    hak_heaps_visit(note_access, seen);
    CHECK_EQ(seen[0], HEAP_ENTERED);
}

TEST(a_fork_stops_all_heaps_and_lets_them_go_on)
{
    struct heap *heap = entered();
    hak_heap_leave(heap);
    hak_heaps_stop(1000);
    CHECK(heap->is_claimed);
    hak_heaps_go_on();
    CHECK(!heap->is_claimed);
    CHECK(hak_heap_try_enter(heap));
    hak_heap_leave(heap);
}

static void (*fork_handler)(void);

static void call_fork_handler(void)
{
    if (fork_handler != NULL)
        fork_handler();
}

/* Before hakmem's constructor registers its own: so it is called behind that. */
__attribute__((constructor(101))) static void register_fork_handler(void)
{
    if (pthread_atfork(call_fork_handler, NULL, NULL) != 0)
        _exit(1);
}

static struct heap *of_handler;
static bool was_entered;

/* Enters some heap when hakmem has stopped for the fork. */
static void enter_in_fork(void)
{
    CHECK(hak_lock_held & HAK_LOCK_ALL);
    of_handler = hak_heap_enter();
    CHECK(of_handler != NULL);
    was_entered = hak_load_relaxed(&of_handler->lock.state) != 0;
    hak_heap_leave(of_handler);
}

static struct heap *entered_with_handler(void (*handler)(void))
{
    fork_handler = handler;
    return entered();
}

static void check_free(struct heap *heap)
{
    CHECK_EQ(hak_load_relaxed(&heap->state), HEAP_OPEN);
    CHECK_EQ(hak_load_relaxed(&heap->lock.state), 0);
    CHECK_EQ(hak_held_heaps.note, 0);
    CHECK(hak_heap_try_enter(heap));
    hak_heap_leave(heap);
}

/* The handler's heap is one that all can enter afterwards, in parent and child. */
static void fork_with_handler(void)
{
    int status;
    pid_t pid = fork();
    CHECK(was_entered);
    check_free(of_handler);
    if (pid == 0)
        _exit(0);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
}

TEST(a_handler_of_fork_does_not_enter_a_lost_heap)
{
    jmp_buf where;
    struct heap *lost = entered_with_handler(enter_in_fork);
    hak_heap_leave(lost);
    if (setjmp(where) == 0)
        enter_and_jump(where);
    CHECK(hak_heaps_mend(false));
    fork_with_handler();
    CHECK(of_handler != lost);
    CHECK_EQ(hak_load_relaxed(&lost->state), HEAP_LOST);
}

TEST(a_heap_that_a_handler_of_fork_makes_is_entered_by_nobody_else)
{
    struct heap *busy = entered_with_handler(enter_in_fork);
    hak_heap_leave(busy);
    pthread_t thread = start_inside(busy);
    fork_with_handler();
    CHECK(of_handler != busy);
    atomic_store(&may_leave, true);
    join_thread(thread);
    check_free(busy);
}

static void await_in_fork(void)
{
    struct heap *heap = hak_heap_at(0);
    CHECK(hak_lock_held & HAK_LOCK_ALL);
    CHECK(!hak_heap_try_enter(heap));
    atomic_store(&may_leave, true);
    CHECK(hak_heap_enter_within(heap, 30000));
    was_entered = hak_load_relaxed(&heap->lock.state) != 0;
    hak_heap_leave(heap);
    of_handler = heap;
}

TEST(a_heap_that_its_thread_leaves_while_a_handler_of_fork_waits_goes_on_afterwards)
{
    struct heap *late = entered_with_handler(await_in_fork);
    hak_heap_leave(late);
    pthread_t thread = start_inside(late);
    fork_with_handler();
    CHECK_EQ(of_handler, late);
    join_thread(thread);
}

/* What a thread that stayed behind had in its hands. */
TEST(in_a_copy_frees_that_were_under_way_are_collected)
{
    struct heap *heap = entered();
    void *counted = take_block(heap, CLASS), *pushed = take_block(heap, CLASS);
    struct slab *slab = hak_slab_at(counted);
    hak_flush_one(slab, pushed);                        /* the heap is busy: published */
    CHECK_EQ(hak_pending_take_all(&heap->owner), slab); /* in a collector's hand */
    uint32_t index = hak_slab_index_of(slab, counted, "test");
    hak_fetch_add_relaxed(&slab->remote_count, 1);
    hak_fetch_or_release(&hak_slab_remote_words(slab)[index / 64], 1ull << (index % 64));
    hak_heap_leave(heap);
    hak_remote_recount();
    CHECK_EQ(hak_load_relaxed(&slab->remote_count), 2);
    CHECK(hak_heap_try_enter(heap));
    hak_heap_collect(heap);
    CHECK_EQ(slab->used, 0);
    hak_heap_leave(heap);
}
