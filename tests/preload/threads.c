/* SPDX-License-Identifier: MIT */
/* tests/preload/threads.c - threads end, with destructors that still allocate, and others go on
 * with their blocks. If this fails, servers that start a thread per request crash or grow without
 * end. */
#include "program.h"

#include <limits.h>
#include <malloc.h>
#include <semaphore.h>

#define KEYS 6

static pthread_key_t keys[KEYS];
static _Atomic unsigned destroyed_count;
static _Atomic unsigned damaged_count;

struct value {
    unsigned index, round;
    char rest[200];
};

static struct value *new_value(unsigned index, unsigned round)
{
    struct value *value = malloc(sizeof *value);
    value->index = index;
    value->round = round;
    fill(value->rest, sizeof value->rest, round);
    return value;
}

/* A destructor that frees what its key held, allocates, and comes again until the last round. */
static void destroy_and_come_again(void *argument)
{
    struct value *value = argument;
    unsigned index = value->index, round = value->round, state = round * 7 + index;
    if (!is_filled(value->rest, sizeof value->rest, round))
        damaged_count++;
    free(value);
    destroyed_count++;
    for (unsigned i = 0; i < 50; i++) {
        size_t bytes = random_bytes(&state);
        char *block = malloc(bytes);
        fill(block, bytes, i);
        block = realloc(block, bytes + 100);
        if (!is_filled(block, bytes, i))
            damaged_count++;
        free(block);
    }
    if (round + 1 < PTHREAD_DESTRUCTOR_ITERATIONS)
        pthread_setspecific(keys[index], new_value(index, round + 1));
}

static void *set_all_keys(void *argument)
{
    for (unsigned i = 0; i < KEYS; i++)
        pthread_setspecific(keys[i], new_value(i, 0));
    return argument;
}

TEST(destructors_of_every_round_can_allocate_and_free)
{
    check_is_served();
    time_limit(300);
    for (unsigned i = 0; i < KEYS; i++)
        CHECK_EQ(pthread_key_create(&keys[i], destroy_and_come_again), 0);
    for (unsigned i = 0; i < 40; i++) {
        pthread_t threads[4];
        start_threads(threads, 4, set_all_keys);
        join_threads(threads, 4);
    }
    CHECK_EQ(destroyed_count, 40 * 4 * KEYS * PTHREAD_DESTRUCTOR_ITERATIONS);
    CHECK_EQ(damaged_count, 0);
}

/* A thread whose only requests are made by its destructors. */
static void *set_one_key(void *argument)
{
    pthread_setspecific(keys[0], argument);
    return NULL;
}

TEST(a_thread_that_never_allocated_can_do_so_in_its_destructors)
{
    time_limit(300);
    CHECK_EQ(pthread_key_create(&keys[0], destroy_and_come_again), 0);
    for (unsigned i = 0; i < 50; i++)
        in_thread(set_one_key, new_value(0, 0));
    CHECK_EQ(destroyed_count, 50 * PTHREAD_DESTRUCTOR_ITERATIONS);
    CHECK_EQ(damaged_count, 0);
}

/* What C++ registers for a thread_local object; it ends before the keys do. */
extern int __cxa_thread_atexit_impl(void (*end)(void *), void *object, void *library);
extern void *__dso_handle;

static _Atomic unsigned ended_count;

/* Frees what it is given, and leaves something for a destructor of a later round. */
static void end_object(void *value)
{
    unsigned state = (unsigned)(uintptr_t)value;
    if (!is_filled(value, 200, 3))
        damaged_count++;
    free(value);
    for (unsigned i = 0; i < 20; i++)
        free(hidden(malloc(random_bytes(&state))));
    ended_count++;
    if (pthread_getspecific(keys[2]) == NULL && ended_count % 2 == 0)
        pthread_setspecific(keys[2], hidden(malloc(100)));
}

static void *new_object(void)
{
    void *object = malloc(200);
    fill(object, 200, 3);
    return object;
}

static void register_end(unsigned kind)
{
    if (kind == 2)
        CHECK_EQ(__cxa_thread_atexit_impl(end_object, new_object(), &__dso_handle), 0);
    else
        CHECK_EQ(pthread_setspecific(keys[kind], new_object()), 0);
}

static void *register_in_order(void *argument)
{
    static const unsigned char orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                               {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (unsigned i = 0; i < 3; i++)
        register_end(orders[(uintptr_t)argument % 6][i]);
    return NULL;
}

TEST(destructors_of_keys_and_objects_can_allocate_in_every_order)
{
    time_limit(300);
    CHECK_EQ(pthread_key_create(&keys[0], end_object), 0);
    CHECK_EQ(pthread_key_create(&keys[1], end_object), 0);
    CHECK_EQ(pthread_key_create(&keys[2], free), 0);
    for (uintptr_t i = 0; i < 60; i++)
        in_thread(register_in_order, (void *)i);
    CHECK_EQ(ended_count, 180);
    CHECK_EQ(damaged_count, 0);
}

#define LEFT_BLOCKS 2000

struct left {
    char *blocks[LEFT_BLOCKS];
    size_t bytes[LEFT_BLOCKS];
};

static void *leave_blocks(void *argument)
{
    struct left *left = argument;
    unsigned state = (unsigned)(uintptr_t)left;
    for (unsigned i = 0; i < LEFT_BLOCKS; i++) {
        left->bytes[i] = i % 20 == 0 ? random_bytes(&state) : 1 + next_random(&state) % 2000;
        left->blocks[i] = malloc(left->bytes[i]);
        fill(left->blocks[i], left->bytes[i], i);
    }
    return NULL;
}

static void *use_and_free_blocks(void *argument)
{
    struct left *left = argument;
    for (unsigned i = 0; i < LEFT_BLOCKS; i++) {
        if (!is_filled(left->blocks[i], left->bytes[i], i))
            damaged_count++;
        if (i % 3 == 0) {
            left->blocks[i] = realloc(left->blocks[i], left->bytes[i] * 2);
            if (!is_filled(left->blocks[i], left->bytes[i], i))
                damaged_count++;
        }
        free(left->blocks[i]);
    }
    return NULL;
}

TEST(the_living_use_and_free_blocks_of_dead_threads)
{
    time_limit(300);
    static struct left left[4];
    for (unsigned round = 0; round < 10; round++) {
        for (unsigned i = 0; i < 4; i++)
            in_thread(leave_blocks, &left[i]);
        pthread_t threads[3];
        for (unsigned i = 0; i < 3; i++)
            threads[i] = start_thread(use_and_free_blocks, &left[i]);
        use_and_free_blocks(&left[3]);
        join_threads(threads, 3);
    }
    CHECK_EQ(damaged_count, 0);
}

/* Blocks go from hand to hand while the threads that took them end. */
#define RELAYS 256
static _Atomic(char *) relay[RELAYS];

static void *pass_on(void *argument)
{
    unsigned state = (unsigned)(uintptr_t)argument;
    for (unsigned i = 0; i < 400; i++) {
        unsigned bytes = 8 + next_random(&state) % 1000;
        char *mine = malloc(bytes);
        memcpy(mine, &bytes, sizeof bytes);
        fill(mine + sizeof bytes, bytes - sizeof bytes, bytes);
        char *other = atomic_exchange(&relay[next_random(&state) % RELAYS], mine);
        if (other == NULL)
            continue;
        memcpy(&bytes, other, sizeof bytes);
        if (!is_filled(other + sizeof bytes, bytes - sizeof bytes, bytes))
            damaged_count++;
        free(other);
    }
    return NULL;
}

#define CHURN_THREADS 2000
#define EARLY_THREADS 1000
#define STRETCH 500

static void run_threads(uintptr_t first, unsigned count, void *(*body)(void *))
{
    pthread_t threads[10];
    for (unsigned i = 0; i < count; i++)
        threads[i] = start_thread(body, (void *)(first + i + 1));
    join_threads(threads, count);
}

/* What the later threads need is what the early ones have left; a thread that leaves a KiB is too
 * many. */
static void check_grown(long early_kb, long late_kb)
{
    long grown_kb = late_kb - early_kb;
    if (grown_kb > early_kb / 20 + 1024)
        CHECK_FAILED("%d threads left %ld KiB more than %ld", CHURN_THREADS - EARLY_THREADS,
                     grown_kb, early_kb);
}

/* What is left when everything that can be given back has been. One trim passes by a heap that
 * hakmem's own thread is inside, and on a busy machine stays for a while. */
static long least_kb(void)
{
    long least = LONG_MAX;
    for (unsigned i = 0; i < RELAYS; i++)
        free(atomic_exchange(&relay[i], NULL));
    for (unsigned i = 0; i < 20; i++) {
        malloc_trim(0);
        long kb = resident_kb();
        least = kb < least ? kb : least;
        sleep_ms(10);
    }
    return least;
}

/* Ten at a time; how much is warm at the end is a matter of chance. */
TEST(two_thousand_threads_come_and_go_and_leave_nothing)
{
    time_limit(500);
    long early_kb = 0;
    for (uintptr_t i = 0; i < CHURN_THREADS; i += 10) {
        run_threads(i, 10, pass_on);
        if (i == EARLY_THREADS)
            early_kb = least_kb();
    }
    CHECK_EQ(damaged_count, 0);
    check_grown(early_kb, least_kb());
}

static void *use_and_free_all(void *argument)
{
    unsigned state = (unsigned)(uintptr_t)argument;
    char *blocks[100] = {NULL};
    run_on_processor(state); /* in turn: what each keeps is there early */
    for (unsigned i = 0; i < 1000; i++) {
        unsigned at = next_random(&state) % 100;
        size_t bytes = random_bytes(&state);
        free(blocks[at]);
        blocks[at] = malloc(bytes);
        memset(blocks[at], 1, bytes);
    }
    for (unsigned i = 0; i < 100; i++)
        free(blocks[i]);
    return NULL;
}

/* One after the other, and nothing is asked for. What is warm at one moment is a matter of chance;
 * the least of many moments is not. */
TEST(a_thread_for_each_of_two_thousand_requests_needs_the_memory_of_a_few)
{
    time_limit(500);
    long least_of[CHURN_THREADS / STRETCH];
    for (uintptr_t i = 0; i < CHURN_THREADS; i++) {
        run_threads(i, 1, use_and_free_all);
        long now_kb = resident_kb(), *least = &least_of[i / STRETCH];
        if (i % STRETCH == 0 || now_kb < *least)
            *least = now_kb;
    }
    /* The last stretch begins so many threads after the early one as check_grown says. */
    check_grown(least_of[(EARLY_THREADS - STRETCH) / STRETCH],
                least_of[(CHURN_THREADS - STRETCH) / STRETCH]);
}

static sem_t is_in_cleanup;

static void allocate_in_cleanup(void *argument)
{
    free(argument);
    char *block = malloc(3000);
    fill(block, 3000, 5);
    if (!is_filled(block, 3000, 5))
        damaged_count++;
    free(block);
    sem_post(&is_in_cleanup);
}

static void *wait_to_be_cancelled(void *argument)
{
    char *block = malloc(500);
    pthread_cleanup_push(allocate_in_cleanup, block);
    for (;;) {
        free(hidden(malloc(100)));
        sleep_ms(1);
    }
    pthread_cleanup_pop(1);
    return argument;
}

TEST(a_cancelled_thread_can_clean_up)
{
    time_limit(300);
    CHECK_EQ(sem_init(&is_in_cleanup, 0, 0), 0);
    for (unsigned i = 0; i < 50; i++) {
        pthread_t thread = start_thread(wait_to_be_cancelled, NULL);
        pthread_cancel(thread);
        pthread_join(thread, NULL);
    }
    CHECK_EQ(damaged_count, 0);
}

static void *outlive_main(void *argument)
{
    sleep_ms(50);
    for (unsigned i = 0; i < 1000; i++)
        free(hidden(malloc(i)));
    CHECK_PASSED();
    exit(0);
    return argument;
}

TEST(threads_go_on_after_main_has_ended)
{
    time_limit(300);
    pid_t pid = fork();
    if (pid == 0) {
        start_thread(outlive_main, NULL);
        pthread_exit(NULL);
    }
    CHECK_CHILD_ENDS_WELL(pid, 60000);
}
