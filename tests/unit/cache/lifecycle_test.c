/* SPDX-License-Identifier: MIT */
/* tests/unit/cache/lifecycle_test.c - threads and children begin and end. */
#include "api/api.h"
#include "cache/lifecycle.h"
#include "cache/private_heap.h"
#include "cache/refill.h"
#include "cache/registry.h"
#include "cache/stranger.h"
#include "check.h"
#include "policy/policy_table.h"
#include "region/meta.h"
#include "slab/depot.h"
#include "span/span_heap.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

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
    CHECK_EQ((void *)hak_thread, (void *)hak_cache_of(seen_heap));
    return NULL;
}

TEST(a_thread_has_a_heap_from_its_first_call_on)
{
    CHECK_EQ(hak_thread, &hak_thread_unstarted);
    CHECK(hak_malloc(1) != NULL);
    CHECK_EQ(hak_thread->is_heap, 1);
    CHECK_EQ((void *)hak_cache_of(hak_thread_heap()), (void *)hak_thread);
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

TEST(the_heap_of_a_thread_that_ended_is_parked_and_the_next_thread_takes_it)
{
    run(take_a_block);
    struct heap *first = seen_heap;
    CHECK_EQ(hak_load_relaxed(&first->state), HEAP_PARKED);
    CHECK_EQ(hak_load_relaxed(&hak_active_caches), 0);
    run(take_a_block);
    CHECK_EQ(seen_heap, first);
    CHECK_EQ(heap_count(), 1);
}

TEST(the_next_thread_finds_the_bins_as_the_last_one_left_them)
{
    run(take_a_block);
    size_t capacity_bytes = hak_cache_of(seen_heap)->capacity_bytes;
    CHECK(capacity_bytes > 0);
    hak_registry_drain_parked(hak_load_relaxed(&seen_heap->parked_ms) - 1); /* too young */
    CHECK_EQ(hak_cache_of(seen_heap)->capacity_bytes, capacity_bytes);
    uint64_t refills = hak_load_relaxed(&seen_heap->stats.counters[HAK_STAT_refills]);
    run(take_a_block);
    CHECK_EQ(hak_load_relaxed(&seen_heap->stats.counters[HAK_STAT_refills]), refills);
}

TEST(the_bins_of_a_parked_heap_are_emptied_when_it_is_old_enough)
{
    run(take_a_block);
    struct slab *slab = hak_slab_at(seen_block);
    CHECK(slab->used > 1);
    hak_registry_drain_parked(hak_load_relaxed(&seen_heap->parked_ms));
    CHECK_EQ(hak_cache_of(seen_heap)->capacity_bytes, 0);
    CHECK_EQ(slab->used, 1);
}

TEST(bins_of_parked_heaps_are_empty_beyond_their_bound)
{
    hak_store_relaxed(&hak_policy.parked_cache_bytes, 0);
    run(take_a_block);
    CHECK_EQ(hak_cache_of(seen_heap)->capacity_bytes, 0);
    CHECK_EQ(hak_slab_at(seen_block)->used, 1);
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
    CHECK_EQ(hak_load_relaxed(&hak_active_caches), 0);
    CHECK_EQ(heap_count(), 1);
    CHECK(hak_malloc_usable_size(seen_block) >= 5000);
    hak_free(seen_block);
}

TEST(a_borrowed_heap_is_returned)
{
    struct heap *heap = hak_heap_borrow();
    CHECK(heap != NULL);
    CHECK_EQ(hak_thread, &hak_thread_unstarted);
    hak_gate_enter(&heap->gate);
    void *block = hak_cache_refill(hak_cache_of(heap), 3);
    hak_gate_leave(&heap->gate);
    hak_heap_return(heap);
    CHECK(block != NULL);
    CHECK_EQ(hak_load_relaxed(&heap->state), HEAP_PARKED);
    hak_registry_drain_parked(UINT64_MAX);
    CHECK_EQ(hak_slab_at(block)->used, 1);
}

TEST(a_call_from_within_a_slow_path_uses_another_heap)
{
    struct heap *own = hak_thread_heap();
    hak_gate_enter(&own->gate); /* as a signal handler finds it */
    void *block = hak_malloc(3000);
    CHECK(block != NULL);
    CHECK(hak_load_relaxed(&hak_slab_at(block)->owner) != &own->owner);
    hak_free(block);
    CHECK(hak_gate_is_nested(&own->gate));
    CHECK_EQ(hak_load_relaxed(&own->stats.counters[HAK_STAT_refills]), 0);
    hak_gate_leave(&own->gate);
    CHECK(hak_cache_is_sound(hak_cache_of(own)));
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

static void check_state_in_child(enum heap_state state)
{
    hak_registry_drain_parked(UINT64_MAX);
    CHECK_EQ(hak_load_relaxed(&seen_heap->state), state);
    CHECK_EQ(hak_lock_held, 0);
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
    CHECK_EXITS(check_state_in_child(HEAP_PARKED), 0);
    CHECK_EQ(hak_load_relaxed(&seen_heap->state), HEAP_ACTIVE);
    CHECK_EQ(hak_load_relaxed(&hak_gates_closed), 0);
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
    CHECK_EXITS(check_state_in_child(HEAP_FROZEN), 0);
    CHECK_EXITS(child_allocates(), 0);
    CHECK_EQ(hak_load_relaxed(&seen_heap->state), HEAP_ACTIVE);
}

/* Deep on the stack, as a handler is. */
static __attribute__((noinline)) void enter_and_jump(struct heap *heap, jmp_buf where)
{
    hak_gate_enter(&heap->gate);
    longjmp(where, 1);
}

static __attribute__((noinline)) void descend_and_jump(struct heap *heap, jmp_buf where)
{
    volatile char frame[4096] = {0};
    frame[0] = 1;
    enter_and_jump(heap, where);
    CHECK_FAILED("frame %d", frame[0]);
}

TEST(a_slow_path_that_was_left_by_a_jump_is_noticed_by_the_next_one)
{
    jmp_buf where;
    void *block = hak_malloc(100);
    struct heap *broken = hak_thread_heap();
    if (setjmp(where) == 0)
        descend_and_jump(broken, where);
    void *other = hak_malloc(5000);
    CHECK(block != NULL && other != NULL);
    CHECK_EQ(hak_load_relaxed(&broken->state), HEAP_FROZEN);
    CHECK(hak_thread_heap() != broken);
    CHECK_EQ(hak_load_relaxed(&hak_active_caches), 1);
    hak_free(block); /* is accepted */
    hak_free(other);
}

static struct heap *interrupted_heap;
static _Atomic int handled;

static __attribute__((noinline)) void lock_and_jump(void (*lock)(void), jmp_buf where)
{
    lock();
    longjmp(where, 1);
}

static __attribute__((noinline)) void descend_lock_and_jump(void (*lock)(void), jmp_buf where)
{
    volatile char frame[4096] = {0};
    frame[0] = 1;
    lock_and_jump(lock, where);
    CHECK_FAILED("frame %d", frame[0]);
}

static void *take_all_kinds(void *argument)
{
    for (size_t bytes = 16; bytes < 64 * HAK_MIB; bytes *= 3) {
        char *block = hak_malloc(bytes);
        CHECK(block != NULL);
        block[bytes - 1] = 1;
        hak_free(block);
    }
    return argument;
}

static void purge_lock(void)
{
    hak_lock_take(&hak_region.purge_lock);
}

static void region_lock(void)
{
    hak_lock_take(&hak_region.lock);
}

static void all_locks(void)
{
    hak_stranger_lock();
    hak_registry_stop_heaps(hak_own_heap(), 0);
    hak_gates_open(); /* a fork's are opened with signals blocked */
    purge_lock();
    hak_depot_lock();
    hak_span_lock();
    region_lock();
    hak_meta_lock();
}

/* The other thread would wait for ever. */
TEST(a_section_that_was_left_by_a_jump_is_mended_by_the_next_slow_path)
{
    static void (*const locks[])(void) = {hak_stranger_lock, purge_lock,  hak_depot_lock,
                                          hak_span_lock,     region_lock, hak_meta_lock,
                                          all_locks};
    jmp_buf where;
    alarm(60);
    take_all_kinds(NULL);
    for (volatile size_t i = 0; i < sizeof locks / sizeof *locks; i++) {
        void *large = hak_malloc(3 * HAK_MIB), *small = hak_malloc(100);
        if (setjmp(where) == 0)
            descend_lock_and_jump(locks[i], where);
        CHECK(hak_lock_is_inside());
        void *block = hak_malloc(40000);
        CHECK(block != NULL);
        CHECK(!hak_lock_is_inside());
        hak_free(block);
        hak_free(large); /* among what was given up */
        hak_free(small);
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, NULL, take_all_kinds, NULL), 0);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        CHECK(hak_span_heap_is_sound());
    }
    CHECK(hak_load_relaxed(&hak_lock_signals_matter));
}

static void *private_handle;

static void enter_private_heap(void)
{
    CHECK(hak_private_enter(private_handle, "test") != NULL);
}

TEST(a_private_heap_that_was_left_by_a_jump_is_frozen_and_others_are_not)
{
    jmp_buf where;
    CHECK(hak_process_start());
    void *other = hak_private_create();
    private_handle = hak_private_create();
    if (setjmp(where) == 0)
        descend_lock_and_jump(enter_private_heap, where);
    CHECK(hak_lock_is_abandoned());
    hak_thread_mend();
    struct private_heap *heap = hak_private_enter(other, "test");
    CHECK(heap != NULL);
    hak_private_leave(heap);
    CHECK_EQ(hak_private_enter(private_handle, "test"), NULL);
    CHECK_EQ(hak_lock_held, 0);
}

static _Atomic int counted, counted_within;

static void count_within(int number)
{
    (void)number;
    counted++;
    counted_within += hak_lock_is_inside() || hak_gate_is_nested(&hak_own_heap()->gate);
}

TEST(once_a_slow_path_was_left_by_a_jump_none_is_interrupted_any_more)
{
    jmp_buf where;
    hak_free(hak_malloc(10));
    CHECK(!hak_load_relaxed(&hak_gate_jumps_matter));
    if (setjmp(where) == 0)
        descend_and_jump(hak_thread_heap(), where);
    hak_free(hak_malloc(5000));
    CHECK(hak_load_relaxed(&hak_gate_jumps_matter));
    struct itimerval every = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
    signal(SIGALRM, count_within);
    CHECK_EQ(setitimer(ITIMER_REAL, &every, NULL), 0);
    uint64_t end_ms = hak_os_clock_ms() + 200;
    while (hak_os_clock_ms() < end_ms || counted == 0)
        take_all_kinds(NULL);
    CHECK_EQ(setitimer(ITIMER_REAL, &never, NULL), 0);
    CHECK_EQ(counted_within, 0);
}

static void allocate_in_handler(int number)
{
    (void)number;
    CHECK(hak_gate_is_nested(&interrupted_heap->gate));
    CHECK_EQ(hak_thread_heap(), interrupted_heap);
    void *block = hak_malloc(3000);
    CHECK(block != NULL);
    CHECK(hak_load_relaxed(&hak_slab_at(block)->owner) != &interrupted_heap->owner);
    hak_free(block);
    handled++;
}

static void interrupt_slow_path(void)
{
    interrupted_heap = hak_thread_heap();
    hak_gate_enter(&interrupted_heap->gate);
    raise(SIGUSR1);
    hak_gate_leave(&interrupted_heap->gate);
    CHECK_EQ(handled, 1);
    CHECK_EQ(hak_thread_heap(), interrupted_heap);
    CHECK_EQ(hak_load_relaxed(&interrupted_heap->state), HEAP_ACTIVE);
}

TEST(a_handler_in_a_slow_path_is_told_from_a_jump_out_of_it)
{
    signal(SIGUSR1, allocate_in_handler);
    interrupt_slow_path();
}

TEST(so_is_a_handler_on_a_stack_of_its_own)
{
    static char memory[2][65536]; /* below and above any stack, one way or the other */
    for (int i = 0; i < 2; i++) {
        struct sigaction action = {.sa_handler = allocate_in_handler, .sa_flags = SA_ONSTACK};
        stack_t stack = {.ss_sp = memory[i], .ss_size = sizeof memory[i]};
        CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
        CHECK_EQ(sigaltstack(&stack, NULL), 0);
        handled = 0;
        interrupt_slow_path();
    }
}

TEST(a_request_within_a_section_of_its_own_thread_is_refused)
{
    void *small = hak_malloc(100), *large = hak_malloc(HAK_MIB);
    CHECK(small != NULL && large != NULL);
    hak_span_lock();
    errno = 0;
    CHECK_EQ(hak_malloc(HAK_MIB), NULL);
    CHECK_EQ(errno, ENOMEM);
    hak_free(large); /* its memory goes, its addresses are lost */
    hak_free(small);
    hak_span_unlock();
    CHECK(hak_load_relaxed(&hak_lock_signals_matter));
    large = hak_malloc(HAK_MIB);
    CHECK(large != NULL);
    hak_free(large);
}

static void fork_in_handler(int number)
{
    (void)number;
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        CHECK_EQ(hak_thread_heap(), interrupted_heap);
        child_allocates();
        return; /* and goes on with the slow path */
    }
    int status = -1;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
    handled++;
}

TEST(a_slow_path_goes_on_in_parent_and_child_when_a_handler_forks)
{
    seen_block = hak_malloc(70);
    pid_t parent = getpid();
    signal(SIGUSR1, fork_in_handler);
    interrupted_heap = hak_thread_heap();
    hak_gate_enter(&interrupted_heap->gate);
    raise(SIGUSR1);
    void *block = hak_cache_refill(hak_cache_of(interrupted_heap), 4);
    hak_gate_leave(&interrupted_heap->gate);
    CHECK(block != NULL);
    CHECK_EQ(hak_thread_heap(), interrupted_heap);
    CHECK_EQ(hak_lock_held, 0);
    if (getpid() != parent)
        _exit(0);
    CHECK_EQ(handled, 1);
}

/* As above, but under a lock: nothing can be taken, and nothing need be. */
static void fork_within_section(int number)
{
    (void)number;
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0)
        return;
    int status = -1;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
    handled++;
}

TEST(a_section_goes_on_in_parent_and_child_when_a_handler_forks)
{
    pid_t parent = getpid();
    alarm(30);
    take_all_kinds(NULL);
    hak_depot_lock();
    hak_span_lock();
    signal(SIGUSR1, fork_within_section); /* too late to be looked up */
    raise(SIGUSR1);
    hak_span_unlock();
    hak_depot_unlock();
    CHECK_EQ(hak_lock_held, 0);
    take_all_kinds(NULL);
    if (getpid() != parent)
        _exit(0);
    CHECK_EQ(handled, 1);
}

static void *fork_block;

static void allocate_around_fork(void)
{
    hak_free(fork_block);
    fork_block = hak_malloc(200000); /* needs locks */
    CHECK(fork_block != NULL);
    void *small = hak_malloc(40000);
    CHECK(small != NULL);
    hak_free(small);
}

TEST(handlers_of_fork_that_were_registered_before_ours_can_allocate)
{
    CHECK_EQ(pthread_atfork(allocate_around_fork, allocate_around_fork, allocate_around_fork), 0);
    CHECK(hak_malloc(10) != NULL);
    sigset_t before, after;
    sigprocmask(SIG_SETMASK, NULL, &before);
    for (int i = 0; i < 5; i++) {
        CHECK_EXITS(child_allocates(), 0);
        CHECK_EQ(hak_lock_held, 0);
        sigprocmask(SIG_SETMASK, NULL, &after);
        CHECK_EQ(memcmp(&before, &after, 8), 0);
    }
}

TEST(the_process_starts_once)
{
    CHECK(hak_process_start());
    uintptr_t base = hak_region.base;
    CHECK(hak_process_start());
    CHECK_EQ(hak_region.base, base);
}
