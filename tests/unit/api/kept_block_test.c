/* SPDX-License-Identifier: MIT */
/* tests/unit/api/kept_block_test.c - a thread keeps small blocks that it frees, whoever allocated
 * them; those of the program's own heaps go home. */
#include "api/api.h"
#include "check.h"
#include "hakmem/hakmem.h"

#include <pthread.h>

struct errand {
    size_t bytes;
    void *block; /* of the thread that sent it */
    bool is_kept;
};

/* Frees the block; is it the next one that this thread gets? */
static void *run(void *argument)
{
    struct errand *errand = argument;
    void *own[32];
    for (int i = 0; i < 32; i++)
        own[i] = hak_malloc(errand->bytes);
    for (int i = 0; i < 32; i++)
        hak_free(own[i]); /* there is a bin, with room */
    own[0] = hak_malloc(errand->bytes);
    hak_free(errand->block);
    own[1] = hak_malloc(errand->bytes);
    errand->is_kept = own[1] == errand->block;
    hak_free(own[0]);
    hak_free(own[1]);
    return NULL;
}

static bool keeps(size_t bytes, void *block)
{
    struct errand errand = {.bytes = bytes, .block = block};
    pthread_t thread;
    CHECK(errand.block != NULL);
    CHECK_EQ(pthread_create(&thread, NULL, run, &errand), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    return errand.is_kept;
}

TEST(a_thread_keeps_small_blocks_that_it_frees)
{
    size_t sizes[] = {1, 8, 16, 48, 64, 100, 1000, 3500, 5000, 30000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        CHECK(keeps(sizes[i], hak_malloc(sizes[i])));
}

TEST(blocks_of_private_heaps_go_home)
{
    hakmem_heap *heap = hakmem_heap_new();
    CHECK(heap != NULL);
    CHECK(!keeps(100, hakmem_heap_malloc(heap, 100)));
    CHECK(!keeps(2000, hakmem_heap_malloc(heap, 2000)));
    hakmem_heap_destroy(heap);
}

/* The thread's bin is full of another's blocks; they go home when it ends, and nothing is lost. */
static void *blocks[20000];

static void *free_all(void *argument)
{
    for (int i = 0; i < 20000; i++)
        hak_free(blocks[i]);
    hak_thread_flush();
    return argument;
}

TEST(what_a_thread_frees_for_another_comes_home)
{
    for (int i = 0; i < 20000; i++)
        CHECK((blocks[i] = hak_malloc(64 + (size_t)i % 1000)) != NULL);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, free_all, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    hak_thread_flush();
    hakmem_trim(0);
    struct hakmem_stats stats;
    CHECK_EQ(hakmem_stats_get(&stats, sizeof stats), 0);
    CHECK_EQ(stats.small_live_bytes, 0);
}
