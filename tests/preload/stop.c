/* SPDX-License-Identifier: MIT */
/* tests/preload/stop.c - threads that are stopped wherever they happen to be, also inside malloc:
 * by a handler that sleeps, as garbage collectors and profilers stop threads, or the whole process
 * by SIGSTOP. If this fails, others wait for a thread that waits for them. */
#include "program.h"

#include <semaphore.h>

#define THREADS 4
#define STOP_MS 20

static _Atomic int has_ended;
static _Atomic unsigned worked_count[THREADS];
static _Atomic unsigned damaged_count;
static sem_t has_stopped;
static _Atomic int may_go_on;

static void *work(void *argument)
{
    unsigned state = (unsigned)(uintptr_t)argument, index = state - 1;
    char *blocks[100] = {NULL};
    while (!has_ended) {
        unsigned at = next_random(&state) % 100;
        if (blocks[at] != NULL && !is_filled(blocks[at], 8, at))
            damaged_count++;
        free(blocks[at]);
        blocks[at] = malloc(8 + random_bytes(&state));
        fill(blocks[at], 8, at);
        worked_count[index]++;
    }
    for (unsigned i = 0; i < 100; i++)
        free(blocks[i]);
    return NULL;
}

/* Stays here, wherever malloc was interrupted, until it is told to go on, at most a while: what it
 * holds at this moment may be a lock. */
static void stop_here(int number)
{
    (void)number;
    int saved = errno;
    sem_post(&has_stopped);
    for (unsigned i = 0; i < STOP_MS && !may_go_on; i++)
        sleep_ms(1);
    errno = saved;
}

static pthread_t threads[THREADS];

static void start_work(void)
{
    struct sigaction action = {.sa_handler = stop_here, .sa_flags = SA_RESTART};
    CHECK_EQ(sem_init(&has_stopped, 0, 0), 0);
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    start_threads(threads, THREADS, work);
}

static void end_work(void)
{
    has_ended = 1;
    join_threads(threads, THREADS);
    CHECK_EQ(damaged_count, 0);
}

static void stop_thread(unsigned index)
{
    may_go_on = 0;
    pthread_kill(threads[index], SIGUSR1);
    while (sem_wait(&has_stopped) != 0)
        ;
}

TEST(threads_work_while_one_is_stopped)
{
    check_is_served();
    time_limit(300);
    start_work();
    for (unsigned i = 0; i < 100; i++) {
        unsigned other = (i + 1) % THREADS;
        stop_thread(i % THREADS);
        unsigned before = worked_count[other];
        while (worked_count[other] < before + 20)
            sleep_ms(1);
        may_go_on = 1;
    }
    end_work();
}

static void allocate_in_child(void)
{
    unsigned state = 4;
    for (unsigned i = 0; i < 500; i++)
        free(hidden(malloc(random_bytes(&state))));
}

TEST(a_process_forks_while_a_thread_is_stopped)
{
    time_limit(300);
    start_work();
    for (unsigned i = 0; i < 60; i++) {
        stop_thread(i % THREADS);
        CHECK_ENDS_WELL(allocate_in_child(), 60000);
        may_go_on = 1;
    }
    end_work();
}

static void work_until_killed(void)
{
    start_work();
    for (;;)
        sleep_ms(1000);
}

TEST(a_process_goes_on_after_it_was_stopped_as_a_whole)
{
    time_limit(300);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        alarm(250);
        start_work();
        sleep_ms(600);
        unsigned before = worked_count[0];
        while (worked_count[0] < before + 100)
            sleep_ms(1);
        end_work();
        exit(0);
    }
    for (unsigned i = 0; i < 50; i++) {
        kill(pid, SIGSTOP);
        sleep_ms(2);
        kill(pid, SIGCONT);
        sleep_ms(3);
    }
    CHECK_CHILD_ENDS_WELL(pid, 60000);
}

TEST(a_process_can_be_killed_inside_malloc)
{
    time_limit(300);
    for (unsigned i = 0; i < 20; i++) {
        pid_t pid = fork();
        if (pid == 0)
            work_until_killed();
        sleep_ms(5);
        kill(pid, SIGTERM);
        CHECK_EQ(WTERMSIG(status_within(pid, 60000)), SIGTERM);
    }
}
