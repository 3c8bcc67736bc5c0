/* SPDX-License-Identifier: MIT */
#include "../../attack/hardened.h"
#include "cache/heap.h"
#include "hakmem/hakmem.h"

TEST(the_usable_size_is_what_was_asked_for)
{
    for (size_t bytes = 1; bytes < 400000; bytes += bytes / 3 + 1) {
        char *block = take_some(bytes);
        CHECK_EQ(hak_malloc_usable_size(block), bytes);
        memset(block, 'x', bytes);
        hak_free(block);
    }
}

TEST(a_block_that_is_resized_keeps_its_contents_and_loses_no_canary)
{
    size_t bytes = 1;
    char *block = take_some(bytes);
    block[0] = 'a';
    for (int i = 0; i < 2000; i++) {
        size_t wished = 1 + (size_t)i * 7919 % 300000;
        block = hak_realloc(block, wished);
        CHECK(block != NULL && block[0] == 'a');
        if (wished > bytes)
            CHECK_EQ(block[bytes - 1], bytes == 1 ? 'a' : 'z');
        memset(block + 1, 'z', wished - 1);
        bytes = wished;
    }
    hak_free(block);
}

TEST(blocks_are_aligned_as_asked_and_end_before_a_guard)
{
    for (size_t alignment = 1; alignment <= 4 * HAK_MIB; alignment *= 2) {
        char *block = volatile_block(hak_aligned_alloc(alignment, 100));
        CHECK_EQ((uintptr_t)block % alignment, 0);
        char *large = volatile_block(hak_aligned_alloc(alignment, SPAN_BYTES));
        CHECK_EQ((uintptr_t)large % alignment, 0);
        memset(large, 'x', SPAN_BYTES);
        hak_free(block);
        hak_free(large);
    }
}

TEST(no_bin_ever_has_a_magazine)
{
    others_take(64);
    others_free(FIRST_HALF);
    others_free(SECOND_HALF);
    const struct heap *heap = (const struct heap *)(void *)hak_thread;
    for (uint32_t i = 0; i < HAK_CLASS_COUNT; i++)
        CHECK(heap->magazines[i].slots == NULL);
}

TEST(blocks_of_private_heaps_are_checked_by_their_bitmaps)
{
    hakmem_heap *heap = hakmem_heap_new();
    void *small = hakmem_heap_malloc(heap, 100), *large = hakmem_heap_malloc(heap, SPAN_BYTES);
    CHECK(hakmem_heap_of(small) == heap && hakmem_heap_of(large) == heap);
    CHECK_ABORTS((hak_free(small), hak_free(small)), "hakmem: double free: pointer 0x");
    CHECK_ABORTS(hak_free((char *)large + 64), "hakmem: invalid free: pointer 0x");
    CHECK(hak_realloc(small, 5000) != NULL);
    hak_free(large);
    void *own = take_some(SPAN_BYTES);
    CHECK(hakmem_heap_of(own) == NULL && hakmem_is_owned(own) == 1);
    hakmem_heap_destroy(heap);
}
