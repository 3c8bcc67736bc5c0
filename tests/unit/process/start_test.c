/* SPDX-License-Identifier: MIT */
/* tests/unit/process/start_test.c - threads and children begin and end. */
#include "api/api.h"
#include "check.h"
#include "heap/cache_list.h"
#include "heap/heaps.h"
#include "heap/private_heap.h"
#include "heap/refill.h"
#include "heap/rooms.h"
#include "policy/policy_table.h"
#include "process/fork.h"
#include "process/reclaim.h"
#include "process/slow_path.h"
#include "process/start.h"
#include "slab/superslab_pool.h"
#include "slabs.h"
#include "span/span_heap.h"
#include "threads.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

/* Of threads' own caches; those of processors are in tests/preload/rseq.c. */
__attribute__((constructor(101))) static void choose(void)
{
    setenv("HAKMEM_CACHES", "thread", 1);
}

static struct cache *seen_cache;
static void *seen_block;

static uint32_t cache_count(void)
{
    uint32_t count = 0;
    for (struct cache *i = hak_caches_first(); i != NULL; i = i->next)
        count++;
    return count;
}

static uint64_t refills(const struct cache *cache)
{
    return hak_load_relaxed(&cache->stats.counters[HAK_STAT_refills]);
}

static void *take_a_block(void *argument)
{
    (void)argument;
    CHECK_EQ(hak_here, &hak_here_unasked);
    seen_block = hak_malloc(100);
    seen_cache = hak_thread_cache();
    CHECK_EQ(hak_here, &seen_cache->here);
    return NULL;
}

TEST(a_thread_has_a_cache_from_its_first_call_on)
{
    CHECK_EQ(hak_here, &hak_here_unasked);
    CHECK(hak_malloc(1) != NULL);
    CHECK(hak_thread_cache() != NULL);
    CHECK_EQ(hak_here, &hak_thread_cache()->here);
    CHECK_EQ(cache_count(), 1);
    CHECK_EQ(hak_heap_count(), 1);
}

TEST(a_free_alone_starts_a_thread_too)
{
    hak_free(NULL);
    CHECK_EQ(hak_here, &hak_here_unasked);
    in_thread(take_a_block, NULL);
    hak_free(seen_block);
    CHECK(hak_here != &hak_here_unasked);
}

TEST(the_cache_of_a_thread_that_ended_is_free_and_the_next_thread_takes_it)
{
    in_thread(take_a_block, NULL);
    struct cache *first = seen_cache;
    CHECK_EQ(first->place, CACHE_FREE);
    CHECK_EQ(hak_load_relaxed(&hak_active_caches), 0);
    in_thread(take_a_block, NULL);
    CHECK_EQ(seen_cache, first);
    CHECK_EQ(cache_count(), 1);
}

TEST(the_next_thread_finds_the_bins_as_the_last_one_left_them)
{
    in_thread(take_a_block, NULL);
    size_t capacity_bytes = seen_cache->capacity_bytes;
    CHECK(capacity_bytes > 0);
    hak_caches_drain(seen_cache->free_ms - 1, NULL); /* too young */
    CHECK_EQ(seen_cache->capacity_bytes, capacity_bytes);
    uint64_t before = refills(seen_cache);
    in_thread(take_a_block, NULL);
    CHECK_EQ(refills(seen_cache), before);
}

TEST(the_bins_of_a_free_cache_are_emptied_when_it_is_old_enough)
{
    in_thread(take_a_block, NULL);
    struct slab *slab = hak_slab_at(seen_block);
    CHECK(slab->used > 1);
    hak_caches_drain(seen_cache->free_ms, NULL);
    CHECK_EQ(seen_cache->capacity_bytes, 0);
    CHECK_EQ(slab->used, 1);
}

TEST(bins_of_free_caches_are_empty_beyond_their_bound)
{
    hak_store_relaxed(&hak_policy.free_cache_bytes, 0);
    in_thread(take_a_block, NULL);
    CHECK_EQ(seen_cache->capacity_bytes, 0);
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
    was_exited = hak_here == &hak_here_never;
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

TEST(a_thread_past_its_end_is_served_without_a_cache)
{
    CHECK(hak_process_start());
    CHECK_EQ(pthread_key_create(&late_key, use_late), 0);
    in_thread(end_with_late_use, NULL);
    CHECK(was_exited);
    CHECK_EQ(hak_load_relaxed(&hak_active_caches), 0);
    CHECK_EQ(cache_count(), 1);
    CHECK(hak_malloc_usable_size(seen_block) >= 5000);
    hak_free(seen_block);
}

/* As a signal handler finds them: its thread is in a slow path, and in a heap. */
TEST(a_call_from_within_a_slow_path_does_without_the_cache_and_its_heap)
{
    hak_free(hak_malloc(1));
    struct cache *own = hak_thread_cache();
    struct heap *heap = hak_heap_at(0);
    uint64_t before = refills(own);
    hak_cache_begin(own);
    CHECK(hak_heap_try_enter(heap));
    void *block = hak_malloc(3000);
    CHECK(block != NULL);
    CHECK(hak_load_relaxed(&hak_slab_at(block)->owner) != &heap->owner);
    hak_free(block);
    CHECK_EQ(hak_cache_state(own), CACHE_BUSY);
    CHECK_EQ(refills(own), before);
    CHECK_EQ(hak_held_heaps.note & HAK_HELD_HEAPS_COUNT, 1);
    hak_heap_leave(heap);
    hak_cache_end(own);
    CHECK(hak_cache_is_sound(own) && hak_heap_is_sound(heap));
    CHECK_EQ(hak_heap_count(), 2);
}

static void *leave_inside(void *argument)
{
    take_a_block(argument);
    hak_cache_begin(seen_cache); /* and never end: a longjmp out of a handler */
    CHECK(hak_heap_try_enter(hak_heap_at(0)));
    return NULL;
}

TEST(a_cache_whose_slow_path_was_left_by_a_jump_is_never_used_again)
{
    in_thread(leave_inside, NULL);
    struct cache *broken = seen_cache;
    CHECK_EQ(broken->place, CACHE_LOST);
    CHECK_EQ(hak_load_relaxed(&hak_heap_at(0)->state), HEAP_LOST);
    in_thread(take_a_block, NULL);
    CHECK(seen_cache != broken);
    CHECK(hak_load_relaxed(&hak_slab_at(seen_block)->owner) != &hak_heap_at(0)->owner);
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

static void check_in_child(enum cache_place place, enum heap_state state)
{
    hak_caches_drain(UINT64_MAX, NULL);
    CHECK_EQ(seen_cache->place, place);
    CHECK_EQ(hak_load_relaxed(&hak_heap_at(0)->state), state);
    CHECK_EQ(hak_lock_held, 0);
}

static void start_and_await(void *(*body)(void *))
{
    CHECK(hak_malloc(10) != NULL);
    start_thread(body, NULL);
    while (__atomic_load_n(&seen_cache, __ATOMIC_ACQUIRE) == NULL)
        usleep(1000);
}

static void *keep_alive(void *argument)
{
    take_a_block(argument);
    for (;;)
        pause();
    return NULL;
}

TEST(the_child_of_a_fork_allocates_and_uses_the_caches_of_lost_threads)
{
    start_and_await(keep_alive);
    CHECK_EXITS(child_allocates(), 0);
    CHECK_EXITS(check_in_child(CACHE_FREE, HEAP_OPEN), 0);
    CHECK_EQ(seen_cache->place, CACHE_IN_USE);
    child_allocates();
}

/* In a slow path, in a heap or not. */
static bool is_in_heap;
static void *stay_inside(void *argument)
{
    (void)argument;
    struct cache *cache = hak_thread_cache();
    hak_cache_begin(cache);
    if (is_in_heap)
        CHECK(hak_heap_try_enter(hak_heap_at(0)));
    __atomic_store_n(&seen_cache, cache, __ATOMIC_RELEASE);
    for (;;)
        pause();
    return NULL;
}

TEST(a_heap_that_is_not_left_is_lost_in_the_child_only)
{
    is_in_heap = true;
    start_and_await(stay_inside);
    CHECK_EXITS(check_in_child(CACHE_LOST, HEAP_LOST), 0);
    CHECK_EXITS(child_allocates(), 0);
    CHECK_EQ(hak_load_relaxed(&hak_heap_at(0)->state), HEAP_OPEN);
}

TEST(a_cache_that_is_being_changed_for_long_is_lost_in_the_child_only)
{
    start_and_await(stay_inside);
    CHECK_EXITS(check_in_child(CACHE_LOST, HEAP_OPEN), 0);
    CHECK_EXITS(child_allocates(), 0);
    CHECK_EQ(seen_cache->place, CACHE_IN_USE);
}

TEST(the_cache_of_a_thread_that_waits_for_a_heap_serves_in_the_child)
{
    start_and_await(stay_inside);
    hak_cache_set_state(seen_cache, CACHE_WAITS);
    CHECK_EXITS(check_in_child(CACHE_FREE, HEAP_OPEN), 0);
}

/* Deep on the stack, as a handler is. */
static __attribute__((noinline)) void enter_and_jump(jmp_buf where)
{
    hak_cache_begin(hak_thread_cache());
    CHECK(hak_heap_try_enter(hak_heap_at(0)));
    longjmp(where, 1);
}

static __attribute__((noinline)) void descend_and_jump(jmp_buf where)
{
    volatile char frame[4096] = {0};
    frame[0] = 1;
    enter_and_jump(where);
    CHECK_FAILED("frame %d", frame[0]);
}

TEST(a_slow_path_that_was_left_by_a_jump_is_noticed_by_the_next_one)
{
    jmp_buf where;
    void *block = hak_malloc(100);
    struct cache *broken = hak_thread_cache();
    if (setjmp(where) == 0)
        descend_and_jump(where);
    void *other = hak_malloc(5000);
    CHECK(block != NULL && other != NULL);
    CHECK_EQ(broken->place, CACHE_LOST);
    CHECK_EQ(hak_load_relaxed(&hak_heap_at(0)->state), HEAP_LOST);
    CHECK(hak_thread_cache() != broken);
    CHECK_EQ(hak_load_relaxed(&hak_active_caches), 1);
    CHECK_EQ(hak_held_heaps.note, 0);
    hak_free(block); /* is accepted */
    hak_free(other);
    hak_thread_flush();
}

static struct cache *interrupted_cache;
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

/* Of all locks, by rank: that of the caches, then those that a fork takes, and before that of all
 * other free spans one of a set's. */
enum { LOCKS = 2 + HAK_FORK_LOCKS };
static uint32_t first_lock, last_lock = LOCKS - 1;

static struct hak_lock *lock_at(uint32_t index)
{
    if (index == 0)
        return &hak_caches_lock_word;
    struct hak_lock *lock = hak_fork_locks[index - (index <= HAK_LOCK_AFTER_SETS ? 1 : 2)];
    return index == HAK_LOCK_AFTER_SETS + 1 ? &hak_span_locks[9].lock : lock;
}

static void take_locks(void)
{
    for (uint32_t i = first_lock; i <= last_lock; i++)
        hak_lock_take(lock_at(i));
}

/* The other thread would wait for ever. */
TEST(a_section_that_was_left_by_a_jump_is_mended_by_the_next_slow_path)
{
    jmp_buf where;
    alarm(60);
    take_all_kinds(NULL);
    for (volatile uint32_t i = 0; i <= LOCKS; i++) { /* each alone, then all */
        first_lock = i % LOCKS;
        last_lock = i < LOCKS ? i : LOCKS - 1;
        void *large = hak_malloc(3 * HAK_MIB), *small = hak_malloc(100);
        if (setjmp(where) == 0)
            descend_lock_and_jump(take_locks, where);
        CHECK(hak_lock_is_inside());
        void *block = hak_malloc(200000); /* no bin has it */
        CHECK(block != NULL);
        CHECK(!hak_lock_is_inside());
        hak_free(block);
        hak_free(large); /* among what was given up */
        hak_free(small);
        in_thread(take_all_kinds, NULL);
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
    void *other = hak_private_create(PRIVATE_OF_PROGRAM);
    private_handle = hak_private_create(PRIVATE_OF_PROGRAM);
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
    counted_within += !hak_thread_is_outside();
}

TEST(once_a_slow_path_was_left_by_a_jump_none_is_interrupted_any_more)
{
    jmp_buf where;
    hak_free(hak_malloc(10));
    CHECK(!hak_load_relaxed(&hak_jumps_matter));
    if (setjmp(where) == 0)
        descend_and_jump(where);
    hak_free(hak_malloc(5000));
    CHECK(hak_load_relaxed(&hak_jumps_matter));
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
    CHECK_EQ(hak_cache_state(interrupted_cache), CACHE_BUSY);
    CHECK_EQ(hak_thread_cache(), interrupted_cache);
    void *block = hak_malloc(3000);
    CHECK(block != NULL);
    CHECK(hak_load_relaxed(&hak_slab_at(block)->owner) != &hak_heap_at(0)->owner);
    hak_free(block);
    handled++;
}

static void interrupt_slow_path(void)
{
    hak_free(hak_malloc(1));
    interrupted_cache = hak_thread_cache();
    hak_cache_begin(interrupted_cache);
    CHECK(hak_heap_try_enter(hak_heap_at(0)));
    raise(SIGUSR1);
    hak_heap_leave(hak_heap_at(0));
    hak_cache_end(interrupted_cache);
    CHECK_EQ(handled, 1);
    CHECK_EQ(hak_thread_cache(), interrupted_cache);
    CHECK_EQ(interrupted_cache->place, CACHE_IN_USE);
    CHECK_EQ(hak_load_relaxed(&hak_heap_at(0)->state), HEAP_OPEN);
}

TEST(a_handler_in_a_slow_path_is_told_from_a_jump_out_of_it)
{
    signal(SIGUSR1, allocate_in_handler);
    interrupt_slow_path();
}

TEST(a_handler_on_a_separate_stack_is_told_from_a_jump_as_well)
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

/* The last blocks of a slab: it would go to the pool. */
TEST(a_free_inside_a_section_of_the_same_thread_is_deferred)
{
    void *block = hak_malloc(30000);
    hak_thread_flush();
    struct slab *slab = hak_slab_at(block);
    CHECK_EQ(slab->used, 1);
    hak_lock_take(&hak_pool_lock);
    hak_free(block);
    CHECK_EQ(hak_load_relaxed(&slab->remote_count), 1);
    hak_lock_give(&hak_pool_lock);
    hak_reclaim_trim(0);
    CHECK_EQ(hak_slab_record_count(), 0);
}

static void *interrupted_block;

/* Blocks that no bin has: all that a handler may do with them, locks or not. */
static void allocate_past_bins(int number)
{
    (void)number;
    char *block = hak_malloc(9000), *zero = hak_calloc(3, 1000);
    CHECK(block != NULL && zero != NULL && hak_malloc_usable_size(block) >= 9000);
    memset(block, 1, 9000);
    CHECK_BYTES(zero, 3000, 0);
    block = hak_realloc(block, 15000);
    CHECK(block != NULL && block[8999] == 1);
    CHECK(hak_aligned_alloc(4096, 4096) != NULL);
    hak_free(block);
    block = hak_calloc(1, HAK_MIB);
    CHECK(block != NULL && block[0] == 0 && block[HAK_MIB - 1] == 0);
    hak_free(block);
    CHECK((block = hak_aligned_alloc(HAK_MIB, 100)) != NULL && (uintptr_t)block % HAK_MIB == 0);
    hak_free(block);
    errno = 0;
    CHECK_EQ(hak_malloc(HAK_REQUEST_BYTES_MAX), NULL);
    CHECK_EQ(errno, ENOMEM);
    hak_free(interrupted_block); /* its memory goes, its addresses are lost */
    interrupted_block = zero;
    handled++;
}

TEST(a_handler_that_interrupts_its_thread_under_a_lock_can_allocate)
{
    interrupted_block = hak_malloc(HAK_MIB);
    CHECK(interrupted_block != NULL);
    signal(SIGUSR1, allocate_past_bins);
    alarm(30);
    take_locks();
    raise(SIGUSR1);
    for (uint32_t i = LOCKS; i-- > 0;)
        hak_lock_give(lock_at(i));
    CHECK_EQ(handled, 1);
    CHECK_EQ(hak_lock_held, 0);
    hak_free(interrupted_block);
    CHECK(hak_load_relaxed(&hak_lock_signals_matter)); /* none will again */
    take_all_kinds(NULL);
}

TEST(a_handler_that_finds_no_heap_to_enter_can_allocate)
{
    interrupted_block = hak_malloc(HAK_MIB);
    CHECK(interrupted_block != NULL);
    signal(SIGUSR1, allocate_past_bins);
    struct heap *entered[HAK_HELD_HEAPS_MOST];
    for (uint32_t i = 0; i < HAK_HELD_HEAPS_MOST; i++)
        CHECK((entered[i] = hak_heap_enter()) != NULL);
    CHECK_EQ(hak_heap_enter(), NULL);
    raise(SIGUSR1);
    for (uint32_t i = HAK_HELD_HEAPS_MOST; i-- > 0;)
        hak_heap_leave(entered[i]);
    CHECK_EQ(handled, 1);
    hak_free(interrupted_block);
}

static void fork_in_handler(int number)
{
    (void)number;
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        CHECK_EQ(hak_thread_cache(), interrupted_cache);
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
    interrupted_cache = hak_thread_cache();
    hak_cache_begin(interrupted_cache);
    CHECK(hak_heap_try_enter(hak_heap_at(0)));
    raise(SIGUSR1);
    void *block = take_block(hak_heap_at(0), 4);
    CHECK(hak_heap_is_sound(hak_heap_at(0)));
    hak_heap_leave(hak_heap_at(0));
    hak_cache_end(interrupted_cache);
    CHECK(block != NULL);
    CHECK_EQ(hak_thread_cache(), interrupted_cache);
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
    hak_lock_take(&hak_pool_lock);
    hak_span_lock();
    signal(SIGUSR1, fork_within_section); /* too late to be looked up */
    raise(SIGUSR1);
    hak_span_unlock();
    hak_lock_give(&hak_pool_lock);
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
