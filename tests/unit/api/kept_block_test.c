/* SPDX-License-Identifier: MIT */
/* tests/unit/api/kept_block_test.c - a thread keeps small blocks that it frees, whichever
 * thread allocated them; those of the program's own heaps are returned to them. */
#include "api/api.h"
#include "check.h"
#include "public.h"
#include "threads.h"
#include "unit/lent.h"

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
    CHECK(errand.block != NULL);
    in_thread(run, &errand);
    return errand.is_kept;
}

TEST(a_thread_keeps_small_blocks_that_it_frees)
{
    size_t sizes[] = {1, 8, 16, 48, 64, 100, 1000, 3500, 5000, 30000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        CHECK(keeps(sizes[i], block_of_own_class(sizes[i])));
}

TEST(blocks_of_private_heaps_are_returned_to_them)
{
    hakmem_heap *heap = new_heap();
    CHECK(!keeps(100, hakmem_heap_malloc(heap, 100)));
    CHECK(!keeps(2000, hakmem_heap_malloc(heap, 2000)));
    hakmem_heap_destroy(heap);
}

/* The thread's bin is full of another's blocks; its end flushes them, and nothing is lost. */
static void *blocks[20000];

static void *free_all(void *argument)
{
    for (int i = 0; i < 20000; i++)
        hak_free(blocks[i]);
    hak_thread_flush();
    return argument;
}

TEST(what_a_thread_frees_for_another_is_returned)
{
    for (int i = 0; i < 20000; i++)
        CHECK((blocks[i] = hak_malloc(64 + (size_t)i % 1000)) != NULL);
    in_thread(free_all, NULL);
    hak_thread_flush();
    hakmem_trim(0);
    CHECK_EQ(stats_now().small_live_bytes, 0);
}
