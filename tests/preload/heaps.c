/* SPDX-License-Identifier: MIT */
/* tests/preload/heaps.c - heaps in a program that knows hakmem weakly: threads that end, fork while
 * heaps are busy, out of memory. If this fails, a server cannot have an arena per request. */
#include "program.h"

#define HAKMEM_WEAK
#include "public.h"

#include <sys/resource.h>

#define THREADS 4
#define ROUNDS 300
#define CHILD_LIMIT_MS 60000

TEST(all_functions_are_there_when_hakmem_serves)
{
    check_is_served();
    CHECK(hakmem_version != NULL && hakmem_malloc != NULL);
    CHECK(hakmem_heap_new != NULL && hakmem_heap_destroy != NULL);
    CHECK(hakmem_version() >= HAKMEM_VERSION);
    void *block = malloc(100);
    CHECK_EQ(hakmem_is_owned(block), 1);
    hakmem_free(block);
    free(hakmem_malloc(100));
    hakmem_thread_idle();
    CHECK_EQ(hakmem_usable_size(hakmem_malloc(hakmem_good_size(1000))), hakmem_good_size(1000));
}

/* GCC manual, Common Function Attributes: alloc_size and alloc_align tell the compiler what a block
 * is like, so that it sees overflows. */
TEST(the_compiler_knows_what_the_functions_return)
{
#ifdef __OPTIMIZE__
    char *block = hakmem_malloc(100);
    CHECK_EQ(__builtin_object_size(block, 0), 100);
    free(block);
    block = hakmem_calloc(3, 100);
    CHECK_EQ(__builtin_object_size(block, 0), 300);
    block = hakmem_realloc(block, 500);
    CHECK_EQ(__builtin_object_size(block, 0), 500);
    free(block);
    hakmem_heap *heap = new_heap();
    block = hakmem_heap_aligned_alloc(heap, 64, 200);
    CHECK_EQ(__builtin_object_size(block, 0), 200);
    CHECK((uintptr_t)block % 64 == 0);
    hakmem_heap_destroy(heap);
#else
    SKIP("only an optimising compiler asks");
#endif
}

static void *use_request_heaps(void *argument)
{
    unsigned state = (unsigned)(uintptr_t)argument;
    for (int i = 0; i < ROUNDS; i++) {
        hakmem_heap *heap = new_heap();
        for (unsigned count = next_random(&state) % 50; count > 0; count--) {
            size_t bytes = 1 + random_bytes(&state);
            char *block = hakmem_heap_malloc(heap, bytes);
            CHECK(block != NULL);
            block[0] = block[bytes - 1] = 1;
            if (count % 3 == 0)
                free(block);
            else if (count % 3 == 1)
                block = realloc(block, bytes / 2 + 1);
            CHECK(block != NULL);
        }
        hakmem_heap_destroy(heap);
    }
    return NULL;
}

TEST(threads_with_a_heap_for_each_request_come_and_go)
{
    time_limit(500);
    for (int round = 0; round < 3; round++) {
        pthread_t threads[THREADS];
        start_threads(threads, THREADS, use_request_heaps);
        join_threads(threads, THREADS);
    }
    CHECK(stats_now().private_heap_count >= 3 * THREADS * ROUNDS);
}

static void *fill_heap(void *heap)
{
    for (int i = 0; i < 1000; i++)
        CHECK(hakmem_heap_malloc(heap, 200) != NULL);
    return NULL;
}

TEST(a_heap_outlives_the_threads_that_used_it)
{
    hakmem_heap *heap = new_heap();
    for (int i = 0; i < 5; i++)
        in_thread(fill_heap, heap);
    CHECK_EQ(heap_stats_now(heap).live_block_count, 5000);
    hakmem_heap_destroy(heap);
}

static _Atomic int has_ended;
static hakmem_heap *busy_heap;

static void *stay_busy(void *argument)
{
    unsigned state = (unsigned)(uintptr_t)argument;
    while (!has_ended) {
        hakmem_heap *heap = new_heap();
        char *first = hakmem_heap_malloc(heap, random_bytes(&state));
        char *second = hakmem_heap_malloc(busy_heap, random_bytes(&state));
        CHECK(first != NULL && second != NULL);
        free(second);
        hakmem_heap_destroy(heap);
    }
    return NULL;
}

static void live_as_child(hakmem_heap *heap, char *kept)
{
    for (int i = 0; i < 50; i++) {
        char *block = hakmem_heap_malloc(heap, 1000); /* nobody was busy in this one */
        hakmem_heap *own = hakmem_heap_new();
        char *other = own == NULL ? NULL : hakmem_heap_malloc(own, 100000);
        if (block == NULL || other == NULL || *kept != 42)
            _exit(3);
        free(block);
        hakmem_heap_destroy(own);
    }
    char *busy = hakmem_heap_malloc(busy_heap, 100); /* NULL if it is frozen */
    free(busy);
    hakmem_heap_destroy(busy_heap);
    free(kept);
    hakmem_heap_destroy(heap);
}

TEST(a_child_of_a_process_that_is_busy_in_heaps_can_use_and_destroy_them)
{
    time_limit(500);
    pthread_t threads[THREADS];
    hakmem_heap *heap = new_heap();
    char *kept = hakmem_heap_malloc(heap, 300);
    CHECK(kept != NULL);
    *kept = 42;
    busy_heap = new_heap();
    start_threads(threads, THREADS, stay_busy);
    for (int i = 0; i < 60; i++)
        CHECK_ENDS_WELL(live_as_child(heap, kept), CHILD_LIMIT_MS);
    has_ended = 1;
    join_threads(threads, THREADS);
}

PART(heaps_under_a_small_limit)
{
    hakmem_heap *heap = new_heap();
    for (size_t bytes = 100; bytes < 10000000; bytes *= 50) {
        errno = 0;
        while (hakmem_heap_malloc(heap, bytes) != NULL) {
        }
        CHECK_EQ(errno, ENOMEM);
        hakmem_heap_destroy(heap);
        heap = new_heap(); /* and there is room again */
        CHECK(hakmem_heap_malloc(heap, bytes) != NULL);
    }
}

static void be_limited(void)
{
    CHECK_EQ(setrlimit(RLIMIT_AS, &(struct rlimit){1 << 30, 1 << 30}), 0);
    become("heaps_under_a_small_limit");
}

TEST(a_heap_that_meets_the_limit_of_memory_says_so_and_gives_all_of_it_back)
{
    CHECK_ENDS_WELL(be_limited(), 60000);
}
