/* SPDX-License-Identifier: MIT */
/* tests/unit/api/hakmem_heap_test.c - heaps by their public functions. */
#include "hakmem/hakmem.h"

#include "api/api.h"
#include "base/limits.h"
#include "check.h"
#include "public.h"
#include "slab/slab.h"
#include "span/large.h"
#include "span/span_heap.h"
#include "threads.h"

#include <errno.h>

TEST(destruction_frees_small_and_large_blocks_that_nobody_freed)
{
    hakmem_heap *heap = new_heap();
    for (size_t bytes = 0; bytes < 4 * HAK_MIB; bytes += bytes / 3 + 1) {
        char *block = hakmem_heap_malloc(heap, bytes);
        CHECK(block != NULL);
        memset(block, 1, bytes);
    }
    CHECK(hak_slab_record_count() > 0 && hak_large_live_bytes() > 0);
    hakmem_heap_destroy(heap);
    CHECK_EQ(hak_slab_record_count(), 0);
    CHECK_EQ(hak_large_live_bytes(), 0);
    CHECK(hak_span_heap_is_sound());
}

static void *free_block(void *block)
{
    hak_free(block);
    return NULL;
}

TEST(another_thread_may_free_a_block_and_end_before_the_heap_is_destroyed)
{
    hakmem_heap *heap = new_heap();
    for (int i = 0; i < 50; i++) {
        void *block = hakmem_heap_malloc(heap, i % 2 ? 300 : 300000);
        in_thread(free_block, block);
    }
    CHECK_EQ(heap_stats_now(heap).live_block_count, 0);
    hakmem_heap_destroy(heap);
    CHECK_EQ(hak_large_live_bytes(), 0);
}

TEST(freeing_into_a_heap_keeps_errno)
{
    hakmem_heap *heap = new_heap();
    void *small = hakmem_heap_malloc(heap, 5000), *large = hakmem_heap_malloc(heap, 5000000);
    errno = 77;
    hakmem_heap_free(heap, small);
    hakmem_heap_free(heap, large);
    hakmem_heap_destroy(heap);
    CHECK_EQ(errno, 77);
}

TEST(a_trimmed_heap_holds_nothing_free)
{
    hakmem_heap *heap = new_heap();
    void *block = hakmem_heap_malloc(heap, 100);
    CHECK_EQ(heap_stats_now(heap).live_bytes, 112);
    hak_free(block);
    hakmem_heap_trim(heap);
    CHECK_EQ(heap_stats_now(heap).held_bytes, 0);
    struct hakmem_heap_stats stats;
    CHECK_EQ(hakmem_heap_stats_get(heap, &stats, 0), EINVAL);
}

TEST(large_blocks_of_a_heap_count_in_whole_granules)
{
    hakmem_heap *heap = new_heap();
    CHECK(hakmem_heap_malloc(heap, 5000000) != NULL);
    struct hakmem_heap_stats stats = heap_stats_now(heap);
    CHECK(stats.live_bytes >= 5000000 && stats.live_bytes <= stats.held_bytes);
    CHECK_EQ(stats.live_bytes % HAK_GRANULE_BYTES, 0);
}

TEST(what_is_no_block_belongs_to_no_heap)
{
    static char foreign[16];
    CHECK_EQ(hakmem_heap_of(hak_malloc(10)), NULL);
    CHECK_EQ(hakmem_heap_of(hak_malloc(1000000)), NULL);
    CHECK_EQ(hakmem_heap_of(foreign), NULL);
    CHECK_EQ(hakmem_heap_of(NULL), NULL);
}

TEST(a_large_block_that_moved_is_still_the_heaps)
{
    hakmem_heap *heap = new_heap();
    char *block = hakmem_heap_malloc(heap, 2 * HAK_MIB);
    block[0] = block[2 * HAK_MIB - 1] = 42;
    for (size_t bytes = 3 * HAK_MIB; bytes <= 96 * HAK_MIB; bytes *= 2) {
        void *wall = hakmem_heap_malloc(heap, 200000);
        CHECK(wall != NULL && (block = hakmem_heap_realloc(heap, block, bytes)) != NULL);
        CHECK_EQ(hakmem_heap_of(block), heap);
    }
    CHECK(block[0] == 42 && block[2 * HAK_MIB - 1] == 42);
    CHECK_EQ(heap_stats_now(heap).live_block_count, 7);
    hakmem_heap_destroy(heap);
    CHECK_EQ(hak_large_live_bytes(), 0);
    CHECK(hak_span_heap_is_sound());
}
