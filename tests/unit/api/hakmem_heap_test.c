/* SPDX-License-Identifier: MIT */
/* tests/unit/api/hakmem_heap_test.c - heaps by their public functions. */
#include "hakmem/hakmem.h"

#include "api/api.h"
#include "base/limits.h"
#include "check.h"
#include "slab/slab.h"
#include "span/large.h"
#include "span/span_heap.h"

#include <errno.h>
#include <pthread.h>

static hakmem_heap *new_heap(void)
{
    hakmem_heap *heap = hakmem_heap_new();
    CHECK(heap != NULL);
    return heap;
}

static struct hakmem_heap_stats stats_of(hakmem_heap *heap)
{
    struct hakmem_heap_stats stats;
    CHECK_EQ(hakmem_heap_stats_get(heap, &stats, sizeof stats), 0);
    return stats;
}

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

TEST(blocks_of_a_heap_may_be_freed_by_plain_free_and_by_the_heap)
{
    hakmem_heap *heap = new_heap();
    for (size_t bytes = 1; bytes < 2 * HAK_MIB; bytes *= 3) {
        void *first = hakmem_heap_malloc(heap, bytes), *second = hakmem_heap_malloc(heap, bytes);
        CHECK_EQ(hakmem_heap_of(first), heap);
        CHECK_EQ(stats_of(heap).live_block_count, 2);
        hak_free(first);
        hakmem_heap_free(heap, second);
        CHECK_EQ(stats_of(heap).live_block_count, 0);
        CHECK_EQ(stats_of(heap).live_bytes, 0);
    }
    hakmem_heap_free(heap, NULL);
    hakmem_heap_destroy(NULL);
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
        pthread_t thread;
        void *block = hakmem_heap_malloc(heap, i % 2 ? 300 : 300000);
        CHECK_EQ(pthread_create(&thread, NULL, free_block, block), 0);
        CHECK_EQ(pthread_join(thread, NULL), 0);
    }
    CHECK_EQ(stats_of(heap).live_block_count, 0);
    hakmem_heap_destroy(heap);
    CHECK_EQ(hak_large_live_bytes(), 0);
}

TEST(a_heaps_calloc_is_zero_in_memory_that_was_used_before)
{
    hakmem_heap *heap = new_heap();
    for (size_t bytes = 1; bytes < 3 * HAK_MIB; bytes *= 2) {
        unsigned char *block = hakmem_heap_malloc(heap, bytes);
        memset(block, 0xff, bytes);
        hakmem_heap_free(heap, block);
        block = hakmem_heap_calloc(heap, 1, bytes);
        for (size_t i = 0; i < bytes; i++)
            if (block[i] != 0)
                CHECK_FAILED("byte %zu of %zu", i, bytes);
        hakmem_heap_free(heap, block);
    }
    volatile size_t most = SIZE_MAX;
    errno = 0;
    CHECK_EQ(hakmem_heap_calloc(heap, most / 2, 3), NULL);
    CHECK_EQ(errno, ENOMEM);
}

TEST(a_heaps_blocks_have_the_alignment_asked_for)
{
    hakmem_heap *heap = new_heap();
    for (size_t alignment = 1; alignment <= 4 * HAK_MIB; alignment *= 2) {
        for (size_t bytes = 1; bytes < HAK_MIB; bytes *= 7) {
            void *block = hakmem_heap_aligned_alloc(heap, alignment, bytes);
            CHECK(block != NULL);
            CHECK_EQ((uintptr_t)block % alignment, 0);
            CHECK_EQ(hakmem_heap_of(block), heap);
        }
    }
    errno = 0;
    CHECK_EQ(hakmem_heap_aligned_alloc(heap, 24, 8), NULL);
    CHECK_EQ(errno, EINVAL);
}

TEST(realloc_stays_in_the_heap_whoever_calls_it)
{
    hakmem_heap *heap = new_heap();
    unsigned char *block = hakmem_heap_realloc(heap, NULL, 10);
    *block = 42;
    for (size_t bytes = 10; bytes < 3 * HAK_MIB; bytes *= 3) {
        CHECK((block = hakmem_heap_realloc(heap, block, bytes)) != NULL);
        CHECK((block = hak_realloc(block, bytes * 2)) != NULL);
        CHECK_EQ(hakmem_heap_of(block), heap);
        CHECK_EQ(*block, 42);
    }
    CHECK((block = hakmem_heap_realloc(heap, block, 10)) != NULL);
    CHECK_EQ(*block, 42);
    CHECK_EQ(stats_of(heap).live_block_count, 1);
    CHECK_EQ(hakmem_heap_realloc(heap, block, 0), NULL);
    CHECK_EQ(stats_of(heap).live_block_count, 0);
}

TEST(requests_that_cannot_be_served_are_refused_and_change_nothing)
{
    hakmem_heap *heap = new_heap();
    void *block = hakmem_heap_malloc(heap, 100);
    const size_t sizes[] = {SIZE_MAX, (size_t)PTRDIFF_MAX + 1, PTRDIFF_MAX};
    for (int i = 0; i < 3; i++) {
        errno = 0;
        CHECK_EQ(hakmem_heap_malloc(heap, sizes[i]), NULL);
        CHECK_EQ(errno, ENOMEM);
        errno = 0;
        CHECK_EQ(hakmem_heap_realloc(heap, block, sizes[i]), NULL);
        CHECK_EQ(errno, ENOMEM);
    }
    CHECK_EQ(stats_of(heap).live_block_count, 1);
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
    CHECK_EQ(stats_of(heap).live_bytes, 112);
    hak_free(block);
    hakmem_heap_trim(heap);
    CHECK_EQ(stats_of(heap).held_bytes, 0);
    struct hakmem_heap_stats stats;
    CHECK_EQ(hakmem_heap_stats_get(heap, &stats, 0), EINVAL);
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
    CHECK_EQ(stats_of(heap).live_block_count, 7);
    hakmem_heap_destroy(heap);
    CHECK_EQ(hak_large_live_bytes(), 0);
    CHECK(hak_span_heap_is_sound());
}
