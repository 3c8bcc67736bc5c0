/* SPDX-License-Identifier: MIT */
/* tests/unit/os/inherit_test.c - a real-time thread waits for a lock whose holder is an ordinary
 * thread, displaced by a real-time thread of middle priority that does not stop: all three run on
 * one processor. Without inheritance the wait lasts until the middle thread ends, or until the
 * kernel throttles it. */
#define _GNU_SOURCE
#include "check.h"
#include "os/inherit.h"
#include "os/lock.h"
#include "os/os.h"

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define MIDDLE 10
#define HIGH 20
#define CONTROL 30
/* The kernel lets ordinary threads run after 950 ms (sched_rt_runtime_us). */
#define HOG_MS 3000
#define SOON_MS 400

static struct hak_lock depot = HAK_LOCK_START_WITH(HAK_LOCK_DEPOT);
static struct hak_lock caches = HAK_LOCK_START_WITH(HAK_LOCK_CACHES);
static struct hak_lock region = HAK_LOCK_START_WITH(HAK_LOCK_REGION);
static struct hak_lock *wanted = &depot;
static _Atomic int is_held, is_second_held, is_hogged, may_give, is_over;
static _Atomic uint64_t waited_ms;

static uint64_t now_ms(void)
{
    return hak_os_clock_ns() / 1000000;
}

static void be_on_one_processor(void)
{
    cpu_set_t all, one;
    size_t first = 0;
    CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    while (!CPU_ISSET(first, &all))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
}

/* The caller and all whom it starts run on one processor; it displaces them all. */
static void start_control(void)
{
    struct sched_param parameter = {CONTROL};
    be_on_one_processor();
    if (sched_setscheduler(0, SCHED_FIFO, &parameter) != 0)
        SKIP("real-time threads are not permitted");
}

static pthread_t start(void *(*body)(void *), int priority)
{
    pthread_t thread;
    pthread_attr_t attributes;
    struct sched_param parameter = {priority};
    pthread_attr_init(&attributes);
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attributes, priority == 0 ? SCHED_OTHER : SCHED_FIFO);
    pthread_attr_setschedparam(&attributes, &parameter);
    CHECK_EQ(pthread_create(&thread, &attributes, body, NULL), 0);
    return thread;
}

static void await(_Atomic int *flag)
{
    while (!hak_load_acquire(flag))
        usleep(1000);
}

static void *hold(void *unused)
{
    hak_word_name_thread();
    hak_lock_take(wanted);
    hak_store_release(&is_held, 1);
    await(&may_give);
    hak_lock_give(wanted);
    return unused;
}

static void *hold_region(void *unused)
{
    hak_word_name_thread();
    hak_lock_take(&region);
    hak_store_release(&is_held, 1);
    await(&may_give);
    hak_lock_give(&region);
    return unused;
}

static void *hold_depot_and_wait_for_region(void *unused)
{
    hak_word_name_thread();
    hak_lock_take(&depot);
    hak_store_release(&is_second_held, 1);
    hak_lock_take(&region);
    hak_lock_give(&region);
    hak_lock_give(&depot);
    return unused;
}

static void *hog(void *unused)
{
    uint64_t end_ms = now_ms() + HOG_MS;
    hak_store_release(&is_hogged, 1);
    while (!hak_load_acquire(&is_over) && now_ms() < end_ms)
        ;
    return unused;
}

static void *wait_urgently(void *unused)
{
    hak_word_name_thread();
    uint64_t start_ms = now_ms();
    hak_store_release(&may_give, 1);
    hak_lock_take(wanted);
    hak_store_release(&waited_ms, now_ms() - start_ms);
    hak_lock_give(wanted);
    hak_store_release(&is_over, 1);
    return unused;
}

static void *wait_a_while(void *unused)
{
    hak_word_name_thread();
    uint64_t start_ms = now_ms();
    hak_store_release(&may_give, 1);
    if (hak_lock_take_within(&depot, HOG_MS))
        hak_lock_give_among(&depot);
    hak_store_release(&waited_ms, now_ms() - start_ms);
    hak_store_release(&is_over, 1);
    return unused;
}

static void run_hog_and(void *(*waiter)(void *))
{
    pthread_t middle = start(hog, MIDDLE);
    await(&is_hogged);
    pthread_t high = start(waiter, HIGH);
    CHECK_EQ(pthread_join(high, NULL), 0);
    CHECK_EQ(pthread_join(middle, NULL), 0);
    if (waited_ms > SOON_MS)
        CHECK_FAILED("a real-time thread waited %lu ms", (unsigned long)waited_ms);
}

static void check_free(const struct hak_lock *lock)
{
    CHECK_EQ(hak_load_relaxed(&lock->state), 0);
}

TEST(a_real_time_thread_waits_for_a_displaced_holder_only)
{
    start_control();
    pthread_t low = start(hold, 0);
    await(&is_held);
    run_hog_and(wait_urgently);
    CHECK_EQ(pthread_join(low, NULL), 0);
    check_free(&depot);
    CHECK(hak_load_relaxed(&hak_lock_lends));
}

TEST(a_bounded_wait_of_a_real_time_thread_lends_as_well)
{
    start_control();
    pthread_t low = start(hold, 0);
    await(&is_held);
    run_hog_and(wait_a_while);
    CHECK_EQ(pthread_join(low, NULL), 0);
    check_free(&depot);
}

/* The holder sleeps for a lock itself, since before a real-time thread waited for anything. */
TEST(a_priority_is_lent_along_a_chain_of_locks)
{
    start_control();
    pthread_t low = start(hold_region, 0);
    await(&is_held);
    pthread_t second = start(hold_depot_and_wait_for_region, 0);
    await(&is_second_held);
    while (!(hak_load_relaxed(&region.state) & HAK_WORD_SLEEPS))
        usleep(1000);
    run_hog_and(wait_urgently);
    CHECK_EQ(pthread_join(second, NULL), 0);
    CHECK_EQ(pthread_join(low, NULL), 0);
    check_free(&depot);
    check_free(&region);
}

static void *take_and_give(void *unused)
{
    hak_lock_take(wanted);
    hak_lock_give(wanted);
    return unused;
}

/* Ordinary threads slept before; the kernel, which gives the lock, does not know of them. */
TEST(sleepers_are_woken_behind_a_real_time_thread)
{
    pthread_t sleepers[3];
    wanted = &caches;
    start_control();
    pthread_t low = start(hold, 0);
    await(&is_held);
    for (unsigned i = 0; i < 3; i++)
        sleepers[i] = start(take_and_give, 0);
    while (!(hak_load_relaxed(&caches.state) & HAK_WORD_SLEEPS))
        usleep(1000);
    usleep(20000);
    run_hog_and(wait_urgently);
    uint64_t start_ms = now_ms();
    for (unsigned i = 0; i < 3; i++)
        CHECK_EQ(pthread_join(sleepers[i], NULL), 0);
    CHECK_EQ(pthread_join(low, NULL), 0);
    check_free(&caches);
    if (now_ms() - start_ms > SOON_MS)
        CHECK_FAILED("sleepers went on after %lu ms", (unsigned long)(now_ms() - start_ms));
}

TEST(ordinary_threads_do_not_lend)
{
    CHECK(!hak_os_is_real_time());
    pthread_t thread;
    hak_lock_take(&depot);
    CHECK_EQ(pthread_create(&thread, NULL, take_and_give, NULL), 0);
    while (hak_load_relaxed(&depot.state) == hak_word_self())
        usleep(1000);
    CHECK_EQ(hak_load_relaxed(&depot.state), hak_word_self() | HAK_WORD_SLEEPS);
    hak_lock_give(&depot);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    check_free(&depot);
    CHECK(!hak_load_relaxed(&hak_lock_lends));
}

static void *wait_long(void *unused)
{
    hak_word_name_thread();
    hak_lock_take(&depot);
    hak_store_release(&is_over, 1);
    hak_lock_give(&depot);
    return unused;
}

/* As a child of vfork holds it, or a thread that was not named: the kernel finds no such thread. */
TEST(a_holder_without_an_id_is_waited_for_all_the_same)
{
    hak_store_relaxed(&hak_lock_lends, true);
    CHECK(hak_word_self() & HAK_WORD_NO_ID);
    CHECK_EQ(hak_inherit_wait(&depot.state, 1), INHERIT_HELD);
    CHECK_EQ(hak_load_relaxed(&depot.state), (uint32_t)syscall(SYS_gettid));
    hak_lock_give_among(&depot);
    check_free(&depot);
    hak_lock_take(&depot);
    CHECK_EQ(hak_inherit_wait(&depot.state, 1), INHERIT_UNABLE);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, wait_long, NULL), 0);
    usleep(100000);
    CHECK(!is_over);
    hak_lock_give(&depot);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    check_free(&depot);
}

/* The word names a thread that lives but does not hold the lock, as a child of vfork leaves it. */
TEST(a_lock_is_given_by_one_whom_the_kernel_does_not_take_for_its_holder)
{
    hak_store_relaxed(&hak_lock_lends, true);
    hak_word_name_thread();
    hak_lock_take(&depot);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, wait_long, NULL), 0);
    while (!(hak_load_relaxed(&depot.state) & HAK_WORD_INHERITS))
        usleep(1000);
    pid_t pid = vfork();
    if (pid == 0) {
        hak_lock_give_among(&depot);
        _exit(0);
    }
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
    hak_lock_end(HAK_LOCK_DEPOT);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK(is_over);
    check_free(&depot);
}

TEST(in_a_copy_a_lock_stays_that_of_its_holder)
{
    hak_word_name_thread();
    hak_lock_take(&depot);
    uint32_t word = hak_word_self();
    pid_t pid = fork();
    if (pid == 0) {
        hak_word_begin_copy();
        CHECK(hak_lock_is_own(&depot));
        hak_lock_keep(&depot);
        hak_word_end_copy();
        CHECK(hak_lock_is_own(&depot));
        CHECK(hak_load_relaxed(&depot.state) != word);
        hak_lock_give(&depot);
        check_free(&depot);
        _exit(0);
    }
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
    hak_lock_give(&depot);
}
