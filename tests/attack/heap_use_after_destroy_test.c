/* SPDX-License-Identifier: MIT */
/* tests/attack/heap_use_after_destroy_test.c - a heap is used, or destroyed, after its end. */
#include "attack.h"
#include "hakmem/hakmem.h"

static hakmem_heap *destroyed(void)
{
    hakmem_heap *heap = hakmem_heap_new();
    hakmem_heap_destroy(heap);
    return heap;
}

static void *sink;

TEST(a_destroyed_heap_is_not_allocated_from)
{
    const char *said = "hakmem: invalid heap: pointer 0x";
    CHECK_ABORTS(sink = hakmem_heap_malloc(destroyed(), 10), said);
    CHECK_ABORTS(sink = hakmem_heap_calloc(destroyed(), 1, LARGE_BYTES), said);
    CHECK_ABORTS(sink = hakmem_heap_aligned_alloc(destroyed(), 64, 10), said);
    CHECK_ABORTS(sink = hakmem_heap_realloc(destroyed(), NULL, 10), said);
    CHECK_ABORTS(hakmem_heap_trim(destroyed()), "no block, the heap was destroyed\n");
}

TEST(a_heap_is_destroyed_once)
{
    CHECK_REPORTS(hakmem_heap_destroy(destroyed()), "invalid heap destroy",
                  "the heap was destroyed\n");
}

TEST(a_destroyed_heap_is_known_when_its_record_serves_another)
{
    hakmem_heap *old = destroyed();
    hakmem_heap *heap = hakmem_heap_new();
    CHECK_ABORTS(sink = hakmem_heap_malloc(old, 10), "the heap was destroyed\n");
    CHECK_ABORTS(hakmem_heap_destroy(old), "the heap was destroyed\n");
    CHECK(hakmem_heap_malloc(heap, 10) != NULL);
}

static void free_after_destroy(size_t bytes)
{
    hakmem_heap *heap = hakmem_heap_new();
    void *block = hakmem_heap_malloc(heap, bytes);
    hakmem_heap_destroy(heap);
    hak_free(block);
}

TEST(a_block_is_not_freed_after_its_heap)
{
    CHECK_ABORTS(free_after_destroy(100), "hakmem: invalid free: pointer 0x");
    CHECK_ABORTS(free_after_destroy(LARGE_BYTES),
                 "nothing is allocated there: freed before, or never allocated\n");
}
