/* SPDX-License-Identifier: MIT */
/* tests/preload/idle.c - a program that has freed most of its memory and sleeps gets smaller, by
 * itself. If this fails, a service that was busy once keeps its peak for ever. */
#include "program.h"

#include <dlfcn.h>
#include <malloc.h>
#include <sys/wait.h>

#define BLOCKS 700000
#define KEEP_ONE_IN 100
#define PATIENCE_MS 60000

static char *blocks[BLOCKS];

static size_t bytes_of(unsigned i)
{
    return 16 + i * 37u % 240;
}

static void fill_all(void)
{
    for (unsigned i = 0; i < BLOCKS; i++) {
        if (blocks[i] != NULL)
            continue;
        blocks[i] = malloc(bytes_of(i));
        CHECK(blocks[i] != NULL);
        fill(blocks[i], bytes_of(i), i);
    }
}

/* Frees all but a few, so that hardly a slab becomes empty. */
static void free_most(void)
{
    unsigned state = 3;
    for (unsigned i = 0; i < BLOCKS; i++)
        if (next_random(&state) % KEEP_ONE_IN != 0) {
            free(blocks[i]);
            blocks[i] = NULL;
        }
}

static void check_kept(void)
{
    for (unsigned i = 0; i < BLOCKS; i++)
        CHECK(blocks[i] == NULL || is_filled(blocks[i], bytes_of(i), i));
}

/* Waits, asleep, until the process has at most `bytes`. */
static int shrinks_to(size_t bytes)
{
    for (uint64_t start = now_ms(); now_ms() - start < PATIENCE_MS; sleep_ms(20))
        if (resident_bytes() <= bytes)
            return 1;
    return 0;
}

TEST(a_sleeping_program_shrinks_to_the_pages_it_needs)
{
    time_limit(550);
    check_is_served();
    CHECK_EQ(own_threads(), 0);
    size_t base = resident_bytes();
    fill_all();
    size_t full = resident_bytes();
    free_most();
    /* One block in a hundred keeps one page in four. */
    CHECK(shrinks_to(base + (full - base) / 2));
    check_kept();
    fill_all();
    check_kept();
    free_most();
    CHECK(shrinks_to(base + (full - base) / 2));
    check_kept();
}

static int has_own_threads_soon(int count)
{
    for (uint64_t start = now_ms(); now_ms() - start < PATIENCE_MS; sleep_ms(2))
        if (own_threads() == count)
            return 1;
    return 0;
}

static int has_own_thread_soon(void)
{
    return has_own_threads_soon(1);
}

/* It ends when it has found nothing for a while. */
static int has_no_own_thread_soon(void)
{
    return has_own_threads_soon(0);
}

/* Allocates on each processor that the process may use, if it may use several: each then has a
 * cache. */
static void visit_processors(void)
{
    cpu_set_t all;
    CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    for (unsigned i = 0; i < CPU_SETSIZE; i++) {
        cpu_set_t one;
        if (!CPU_ISSET(i, &all))
            continue;
        CPU_ZERO(&one);
        CPU_SET(i, &one);
        CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
        free(malloc(100));
    }
    CHECK_EQ(sched_setaffinity(0, sizeof all, &all), 0);
}

TEST(a_single_threaded_program_gets_a_background_thread_only_when_much_is_free)
{
    time_limit(550);
    const volatile char *single_threaded = dlsym(RTLD_DEFAULT, "__libc_single_threaded");
    size_t base = resident_bytes();
    fill_all();
    CHECK(resident_bytes() - base > 64u << 20);
    for (unsigned i = 0; i < BLOCKS; i++) { /* another one in its place, one by one */
        if (i % 10000 == 0)
            visit_processors();
        free(blocks[i]);
        blocks[i] = NULL;
        blocks[i] = malloc(bytes_of(i));
        fill(blocks[i], bytes_of(i), i);
    }
    for (int i = 0; i < 1000; i++) {
        void *large = malloc(1u << 20);
        memset(large, 1, 1u << 20);
        free(large);
    }
    CHECK_EQ(own_threads(), 0);
    free_most();
    CHECK(has_own_thread_soon());
    CHECK(single_threaded == NULL || *single_threaded != 0);
    check_kept();
    CHECK(has_no_own_thread_soon());
    fill_all();
    free_most();
    CHECK(has_own_thread_soon());
}

/* Now and then, and elsewhere: two processors' caches are in use. */
static _Atomic int is_used;

static void *use_memory(void *argument)
{
    run_on_processor(1);
    for (;; sleep_ms(1)) {
        for (int i = 0; i < 1000; i++)
            free(hidden(malloc(100)));
        is_used = 1;
    }
    return argument;
}

/* Works by so many blocks at once that caches overflow: one at a time, all could be served by them,
 * and hakmem would not notice that the program works. */
#define BATCH 10000
static int has_own_thread_while_it_works(void)
{
    uint64_t start = now_ms();
    for (unsigned first = 0; now_ms() - start < PATIENCE_MS; first = (first + BATCH) % BLOCKS) {
        for (unsigned i = first; i < first + BATCH; i++)
            free(blocks[i]);
        for (unsigned i = first; i < first + BATCH; i++)
            blocks[i] = malloc(bytes_of(i));
        if (own_threads() == 1)
            return 1;
    }
    return 0;
}

TEST(a_program_whose_threads_use_memory_has_ours_while_it_works_and_is_large)
{
    time_limit(550);
    start_thread(use_memory, NULL);
    if (run_on_processor(0) == 1)
        SKIP("one processor, whose cache is enough for all threads");
    while (!is_used)
        sleep_ms(1);
    fill_all();
    CHECK(has_own_thread_soon());
    check_kept();
    CHECK(has_no_own_thread_soon());
    CHECK(has_own_thread_while_it_works());
}

PART(shrinks_one_block)
{
    enum { BYTES = 400 << 20 };
    size_t base = resident_bytes();
    char *block = malloc(BYTES);
    CHECK(block != NULL);
    fill(block, BYTES, 5);
    block = realloc(block, BYTES / 8);
    CHECK(shrinks_to(base + (size_t)BYTES / 4));
    CHECK(is_filled(block, BYTES / 8, 5));
}

TEST(a_block_that_shrinks_gives_the_rest_back_while_the_program_sleeps)
{
    time_limit(550);
    become("shrinks_one_block");
}

static void take_large(char **large, int count, size_t bytes)
{
    for (int i = 0; i < count; i++) {
        large[i] = malloc(bytes);
        CHECK(large[i] != NULL);
        memset(large[i], 1, bytes);
    }
}

TEST(our_sleeping_thread_gives_back_the_large_blocks_that_are_freed_last)
{
    time_limit(200);
    WITH_SETTING("HAKMEM_STATS_INTERVAL", "1000s");
    enum { COUNT = 13, BYTES = 8 << 20 };
    char *large[COUNT];
    size_t base = resident_bytes();
    run_on_processor(0);
    take_large(large, COUNT, BYTES);
    CHECK(own_thread_sleeps_within(PATIENCE_MS));
    run_on_processor(1); /* where it has no cache yet, whose slow paths would tell */
    for (int i = 0; i < COUNT; i++)
        free(large[i]);
    CHECK(shrinks_to(base + BYTES));
}

static void work_without_own_thread(void)
{
    check_kept();
    CHECK_EQ(own_threads(), 0);
    fill_all();
    check_kept();
}

TEST(a_child_of_a_large_process_has_no_thread_of_ours_and_works)
{
    time_limit(550);
    fill_all();
    free_most();
    CHECK(has_own_thread_soon());
    for (unsigned round = 0; round < 6; round++) {
        CHECK_ENDS_WELL(work_without_own_thread(), PATIENCE_MS);
        sleep_ms(17);
    }
}

TEST(a_sleeping_program_gives_back_what_it_keeps_for_seconds)
{
    time_limit(550);
    WITH_SETTING("HAKMEM_DECAY", "2s");
    enum { COUNT = 40, BYTES = 4 << 20 };
    char *large[COUNT];
    size_t base = resident_bytes();
    take_large(large, COUNT, BYTES);
    for (int i = 0; i < COUNT; i++)
        free(large[i]);
    CHECK(resident_bytes() > base + (size_t)COUNT / 2 * BYTES);
    CHECK(shrinks_to(base + (size_t)COUNT / 8 * BYTES));
}

/* A thread that found nothing to do when it began is gone by then. */
static int has_own_thread_to_stay(void)
{
    if (own_threads() == 0)
        return 0;
    sleep_ms(50);
    return own_threads() != 0;
}

/* Our thread begins while they come and go, and finds nothing else to do. */
TEST(a_sleeping_program_gives_back_the_empty_slabs_that_it_keeps_for_seconds)
{
    time_limit(550);
    WITH_SETTING("HAKMEM_DECAY", "2s");
    WITH_SETTING("HAKMEM_LEARN", "none");
    WITH_SETTING("HAKMEM_RETAIN", "0");
    enum { COUNT = 220, BYTES = 32 << 10, LIVE_BYTES = 16 << 20, LARGE_BYTES = 40 << 20 };
    char *live = malloc(LIVE_BYTES), *buffers[COUNT];
    CHECK(live != NULL);
    fill(live, LIVE_BYTES, 7);
    free(hidden(malloc(LARGE_BYTES))); /* for small programs no thread is started */
    malloc_trim(0);
    size_t base = resident_bytes();
    do {
        take_large(buffers, COUNT, BYTES);
        for (int i = 0; i < COUNT; i++)
            free(buffers[i]);
    } while (!has_own_thread_to_stay() || resident_bytes() <= base + (size_t)COUNT * 3 / 4 * BYTES);
    CHECK(shrinks_to(base + (size_t)COUNT / 2 * BYTES));
    CHECK(is_filled(live, LIVE_BYTES, 7));
}

TEST(no_thread_is_started_when_the_user_forbids_it)
{
    time_limit(500);
    WITH_SETTING("HAKMEM_MAINTENANCE", "off");
    fill_all();
    free_most();
    fill_all();
    free_most();
    CHECK_EQ(own_threads(), 0);
}
