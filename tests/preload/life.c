/* SPDX-License-Identifier: MIT */
/* tests/preload/life.c - the unusual ways in which processes and threads begin and end: clone
 * without pthreads, daemon, cancellation at any instruction, fork, allocation and jumps in handlers
 * that interrupt a slow path. If this fails, a daemon, a profiler or a test driver hangs once a
 * week. */
#include "program.h"

#include <sched.h>
#include <setjmp.h>
#include <sys/time.h>

#define CHILD_LIMIT_MS 60000
#define STACK_BYTES (256u << 10)

/* All kinds of slow paths; blocks go to other threads, and others' come back. */
#define SHARED 64
static _Atomic(char *) shared[SHARED];
static _Atomic int has_ended;
static _Atomic unsigned worked_count;
static _Atomic unsigned damaged_count;

/* In a child that goes on in the midst of its parent's work: until it ends. */
static unsigned rounds_left;

static void work_once(unsigned *state)
{
    if (rounds_left != 0 && --rounds_left == 0)
        _exit(damaged_count != 0);
    size_t bytes = 8 + random_bytes(state);
    char *block = malloc(bytes);
    if (block == NULL)
        return;
    size_t filled_bytes = bytes < 300 ? bytes : 300;
    fill(block, filled_bytes, *state);
    if (!is_filled(block, filled_bytes, *state))
        damaged_count++;
    if (*state % 3 == 0)
        block = atomic_exchange(&shared[next_random(state) % SHARED], block);
    free(block);
}

static void work(unsigned rounds)
{
    unsigned state = rounds + (unsigned)getpid();
    for (unsigned i = 0; i < rounds; i++)
        work_once(&state);
}

static void *stay_busy(void *argument)
{
    unsigned state = (unsigned)(uintptr_t)argument;
    while (!has_ended) {
        work_once(&state);
        worked_count++;
    }
    return NULL;
}

static void check_others_work(void)
{
    unsigned before = worked_count;
    while (worked_count < before + 200)
        sleep_ms(1);
}

static void end_thread(pthread_t thread)
{
    has_ended = 1;
    pthread_join(thread, NULL);
    CHECK_EQ(damaged_count, 0);
}

static int live_as_clone(void *argument)
{
    work(3000);
    *(char **)argument = malloc(500);
    return 0;
}

/* What clone gives: a process that shares memory and malloc with its sleeping parent, or has a copy
 * without handlers of fork. */
static char *run_clone(int flags)
{
    static char stack[STACK_BYTES] __attribute__((aligned(64)));
    char *block = NULL;
    pid_t pid = clone(live_as_clone, stack + sizeof stack, flags | SIGCHLD, &block);
    CHECK(pid > 0);
    CHECK_CHILD_ENDS_WELL(pid, CHILD_LIMIT_MS);
    return block;
}

TEST(a_clone_without_pthreads_allocates_in_its_parents_memory_or_a_copy)
{
    check_is_served();
    time_limit(500);
    work(2000);
    for (unsigned i = 0; i < 30; i++) {
        char *block = run_clone(CLONE_VM | CLONE_VFORK);
        CHECK(block != NULL);
        fill(block, 500, i);
        CHECK(is_filled(block, 500, i));
        free(block);
        CHECK_EQ(run_clone(0), NULL);
        work(200);
    }
    CHECK_EQ(damaged_count, 0);
}

/* It ends by a system call that ends only its thread. */
TEST(a_clone_without_pthreads_ends_though_hakmem_shows_its_memory)
{
    WITH_SETTING("HAKMEM_BLACKBOX", "on");
    time_limit(500);
    for (unsigned i = 0; i < 3; i++)
        CHECK_EQ(run_clone(0), NULL);
}

#define STATUS 3
#define GROWN_BLOCKS 6000
#define GROWN_BYTES 10000

/* So much that hakmem's own thread would be due, and most of it free. */
static int grow_and_end(void *argument)
{
    static char *blocks[GROWN_BLOCKS];
    for (unsigned i = 0; i < GROWN_BLOCKS; i++) {
        blocks[i] = malloc(GROWN_BYTES);
        memset(blocks[i], 1, GROWN_BYTES);
    }
    for (unsigned i = 0; i < GROWN_BLOCKS; i++)
        if (i % 8 != 0)
            free(blocks[i]);
    return argument == NULL ? STATUS : 0;
}

TEST(the_status_of_a_clone_is_what_its_function_returned)
{
    static char stack[STACK_BYTES] __attribute__((aligned(64)));
    check_is_served();
    time_limit(500);
    for (unsigned i = 0; i < 5; i++) {
        pid_t pid = clone(grow_and_end, stack + sizeof stack, SIGCHLD, NULL);
        CHECK(pid > 0);
        int status = status_within(pid, CHILD_LIMIT_MS);
        CHECK(WIFEXITED(status));
        CHECK_EQ(WEXITSTATUS(status), STATUS);
    }
}

TEST(a_daemon_allocates_with_all_its_threads)
{
    time_limit(300);
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    pthread_t busy = start_thread(stay_busy, (void *)1);
    work(2000);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        alarm(CHILD_LIMIT_MS / 1000);
        if (daemon(1, 1) != 0)
            _exit(2);
        alarm(CHILD_LIMIT_MS / 1000);
        pthread_t thread = start_thread(stay_busy, (void *)2);
        work(20000);
        end_thread(thread);
        CHECK_EQ(write(ends[1], "well", 4), 4);
        CHECK_PASSED();
        exit(0);
    }
    close(ends[1]);
    CHECK_CHILD_ENDS_WELL(pid, CHILD_LIMIT_MS); /* it leaves the daemon behind */
    char word[5] = "";
    CHECK_EQ(read(ends[0], word, 4), 4);
    CHECK(strcmp(word, "well") == 0);
    end_thread(busy);
}

/* A timer that interrupts the thread that works, wherever it is. */
static void start_timer(void (*handler)(int), int flags, long every_us)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    struct itimerval every = {{0, every_us}, {0, every_us}};
    CHECK_EQ(sigaction(SIGPROF, &action, NULL), 0);
    CHECK_EQ(setitimer(ITIMER_PROF, &every, NULL), 0);
}

static void stop_timer(void)
{
    struct itimerval never = {{0, 0}, {0, 0}};
    CHECK_EQ(setitimer(ITIMER_PROF, &never, NULL), 0);
}

static _Atomic unsigned handled_count;
static _Atomic unsigned refused_count;

static void allocate_in_handler(int number)
{
    int saved = errno;
    static const size_t sizes[] = {24, 5000, 60000, 2000000};
    size_t bytes = sizes[handled_count++ % 4];
    char *block = malloc(bytes);
    char *grown = block == NULL ? NULL : realloc(block, 2 * bytes);
    if (grown == NULL)
        refused_count++;
    else
        grown[2 * bytes - 1] = (char)number;
    free(grown);
    errno = saved;
}

TEST(handlers_can_allocate_wherever_they_interrupt)
{
    time_limit(300);
    start_timer(allocate_in_handler, SA_RESTART, 500);
    pthread_t busy = start_thread(stay_busy, (void *)1);
    while (handled_count < 400)
        work(1000);
    stop_timer();
    end_thread(busy);
    CHECK_EQ(refused_count, 0);
}

static void ignore_signal(int number)
{
    (void)number;
}

/* Signals in the middle of hakmem's own system calls do not make them fail. */
TEST(interrupted_system_calls_do_not_fail_requests)
{
    time_limit(300);
    start_timer(ignore_signal, 0, 1000);
    for (unsigned i = 0; i < 300; i++) {
        char *block = malloc((size_t)(1 + i % 40) << 20);
        CHECK(block != NULL);
        memset(block, 1, 1 << 20);
        free(block);
    }
    stop_timer();
}

static _Atomic unsigned forked_count;

/* The child goes on where its parent was interrupted, for a while. */
static void fork_in_handler(int number)
{
    int saved = errno;
    (void)number;
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        rounds_left = 300;
        alarm(CHILD_LIMIT_MS / 1000);
    } else {
        CHECK_CHILD_ENDS_WELL(pid, CHILD_LIMIT_MS);
        forked_count++;
    }
    errno = saved;
}

TEST(a_handler_can_fork_wherever_it_interrupts_and_both_go_on)
{
    time_limit(500);
    /* Longer than a fork takes: both threads go on between. */
    start_timer(fork_in_handler, SA_RESTART, 15000);
    pthread_t busy = start_thread(stay_busy, (void *)1);
    while (forked_count < 80)
        work(100);
    stop_timer();
    end_thread(busy);
}

static void *work_until_cancelled(void *argument)
{
    CHECK_EQ(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL), 0);
    return stay_busy(argument);
}

static void check_child_works(void)
{
    CHECK_ENDS_WELL((work(2000), _exit(damaged_count != 0)), CHILD_LIMIT_MS);
}

TEST(a_thread_can_be_cancelled_at_any_instruction_of_malloc)
{
    time_limit(500);
    pthread_t busy = start_thread(stay_busy, (void *)1);
    for (unsigned i = 0; i < 100; i++) {
        pthread_t thread = start_thread(work_until_cancelled, (void *)(uintptr_t)(i + 2));
        nanosleep(&(struct timespec){0, 1000000 + i * 10007}, NULL);
        CHECK_EQ(pthread_cancel(thread), 0);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        if (i % 10 == 0)
            check_others_work();
    }
    check_others_work();
    check_child_works();
    end_thread(busy);
}

#define JUMPS 1600
#define EARLY_JUMPS 400
#define LIVE_BLOCKS 500

static sigjmp_buf before_work;
static pthread_t jumper;
static volatile int may_jump;

static void jump_out(int number)
{
    (void)number;
    if (may_jump && pthread_equal(pthread_self(), jumper)) {
        may_jump = 0;
        siglongjmp(before_work, 1);
    }
}

static void *interrupt_jumper(void *argument)
{
    while (!has_ended) {
        pthread_kill(jumper, SIGUSR1);
        nanosleep(&(struct timespec){0, 500000}, NULL);
    }
    return argument;
}

/* All sizes, so that each slow path is left now and then; what was in hand is lost. */
static void work_until_interrupted(char *volatile *blocks, unsigned *state)
{
    may_jump = 1;
    for (;;) {
        unsigned at = next_random(state) % LIVE_BLOCKS;
        char *block = blocks[at];
        blocks[at] = NULL;
        free(block);
        block = malloc(8 + random_bytes(state));
        if (block != NULL)
            *block = 1;
        blocks[at] = block;
    }
}

TEST(jumps_out_of_slow_paths_cost_little_memory_and_block_no_thread)
{
    static char *volatile blocks[LIVE_BLOCKS];
    static unsigned state = 1;
    static volatile unsigned jump_count;
    static long early_kb;
    time_limit(500);
    jumper = pthread_self();
    static pthread_t busy, interrupter;
    struct sigaction action = {.sa_handler = jump_out};
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    busy = start_thread(stay_busy, (void *)1);
    interrupter = start_thread(interrupt_jumper, NULL);
    if (sigsetjmp(before_work, 1) != 0)
        jump_count++;
    if (jump_count == EARLY_JUMPS && early_kb == 0)
        early_kb = resident_kb();
    if (jump_count < JUMPS)
        work_until_interrupted(blocks, &state);
    long grown_kb = resident_kb() - early_kb;
    /* Hardened mode loses quarantines, too. */
    if (grown_kb > 64 * 1024 && !has_value("HAKMEM_MODE", "hardened"))
        CHECK_FAILED("%d jumps cost %ld KiB", JUMPS - EARLY_JUMPS, grown_kb);
    check_others_work();
    check_child_works();
    end_thread(busy);
    pthread_join(interrupter, NULL);
}

#define THREADS 1000
static pthread_barrier_t barrier;

static void *hold_blocks(void *argument)
{
    char *blocks[20];
    for (unsigned i = 0; i < 20; i++)
        blocks[i] = malloc(16 + i * 200);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    for (unsigned i = 0; i < 20; i++)
        free(blocks[i]);
    return argument;
}

TEST(a_process_of_a_thousand_threads_forks_and_its_child_uses_what_they_left)
{
    static pthread_t threads[THREADS];
    time_limit(500);
    pthread_attr_t attributes;
    CHECK_EQ(pthread_attr_init(&attributes), 0);
    CHECK_EQ(pthread_attr_setstacksize(&attributes, 64 << 10), 0);
    CHECK_EQ(pthread_barrier_init(&barrier, NULL, THREADS + 1), 0);
    for (unsigned i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], &attributes, hold_blocks, NULL) != 0)
            SKIP("this machine lets a user have less than a thousand threads");
    pthread_barrier_wait(&barrier);
    for (unsigned i = 0; i < 5; i++)
        check_child_works();
    pthread_barrier_wait(&barrier);
    join_threads(threads, THREADS);
    CHECK_EQ(damaged_count, 0);
}
