/* SPDX-License-Identifier: MIT */
/* tests/preload/signals.c - signals that arrive inside malloc. A handler that returns disturbs
 * nothing. One that leaves by siglongjmp is undefined by POSIX, yet old interpreters and test
 * drivers do it: the thread may lose a block, the others must not hang. If this fails, a timer
 * stops a whole server. */
#include "program.h"

#include <semaphore.h>
#include <setjmp.h>
#include <sys/time.h>

static _Atomic int has_ended;
static _Atomic unsigned worked_count;
static _Atomic unsigned damaged_count;
static _Atomic unsigned signal_count;

static void *work(void *argument)
{
    unsigned state = (unsigned)(uintptr_t)argument;
    while (!has_ended) {
        size_t bytes = random_bytes(&state);
        char *block = malloc(bytes);
        fill(block, bytes < 500 ? bytes : 500, state);
        if (!is_filled(block, bytes < 500 ? bytes : 500, state))
            damaged_count++;
        free(block);
        worked_count++;
    }
    return NULL;
}

static void count_signal(int number)
{
    (void)number;
    signal_count++;
}

static void start_timer(void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    struct itimerval every = {{0, 1000}, {0, 1000}};
    CHECK_EQ(sigaction(SIGPROF, &action, NULL), 0);
    CHECK_EQ(setitimer(ITIMER_PROF, &every, NULL), 0);
}

static void stop_timer(void)
{
    struct itimerval never = {{0, 0}, {0, 0}};
    CHECK_EQ(setitimer(ITIMER_PROF, &never, NULL), 0);
}

TEST(a_profiler_can_interrupt_malloc_at_any_time)
{
    check_is_served();
    time_limit(60);
    start_timer(count_signal, SA_RESTART);
    pthread_t threads[3];
    for (uintptr_t i = 0; i < 3; i++)
        threads[i] = start_thread(work, (void *)(i + 1));
    while (signal_count < 300)
        sleep_ms(1);
    stop_timer();
    has_ended = 1;
    for (unsigned i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQ(damaged_count, 0);
}

static sigjmp_buf before_work;
static pthread_t jumper;

static void jump_out(int number)
{
    (void)number;
    if (pthread_equal(pthread_self(), jumper))
        siglongjmp(before_work, 1);
}

/* Pairs that a thread's cache serves, interrupted and abandoned again and again. */
static void *work_and_jump(void *argument)
{
    volatile unsigned jump_count = 0;
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, SIGUSR1);
    if (sigsetjmp(before_work, 1) != 0)
        jump_count++;
    pthread_sigmask(SIG_UNBLOCK, &only, NULL);
    while (jump_count < 200) {
        signal_count = jump_count;
        for (unsigned i = 0; i < 1000; i++)
            free(hidden(malloc(64)));
    }
    pthread_sigmask(SIG_BLOCK, &only, NULL);
    return argument;
}

TEST(a_thread_that_jumps_out_of_malloc_does_not_stop_the_others)
{
    time_limit(60);
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &only, NULL);
    struct sigaction action = {.sa_handler = jump_out};
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    pthread_t worker = start_thread(work, (void *)1);
    jumper = start_thread(work_and_jump, NULL);
    while (signal_count < 199) {
        pthread_kill(jumper, SIGUSR1);
        sleep_ms(1);
    }
    pthread_kill(jumper, SIGUSR1);
    pthread_join(jumper, NULL);
    unsigned before = worked_count;
    while (worked_count < before + 100)
        sleep_ms(1);
    pid_t pid = fork();
    if (pid == 0) {
        free(hidden(malloc(100)));
        _exit(0);
    }
    CHECK_CHILD_ENDS_WELL(pid, 15000);
    has_ended = 1;
    pthread_join(worker, NULL);
    CHECK_EQ(damaged_count, 0);
}

static void ignore_signal(int number)
{
    (void)number;
}

/* Signals in the middle of hakmem's own system calls do not make them fail. */
TEST(interrupted_system_calls_do_not_fail_requests)
{
    time_limit(60);
    start_timer(ignore_signal, 0);
    for (unsigned i = 0; i < 300; i++) {
        char *block = malloc((size_t)(1 + i % 40) << 20);
        CHECK(block != NULL);
        memset(block, 1, 1 << 20);
        free(block);
    }
    stop_timer();
}
