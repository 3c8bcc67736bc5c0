/* SPDX-License-Identifier: MIT */
/* tests/unit/hardened/hardened_realloc_test.c - realloc of large blocks in hardened mode: in
 * place, or by moving pages. */
#include "../../attack/hardened.h"
#include "api/api.h"
#include "faults.h"
#include "os/os_fault.h"
#include "public.h"
#include "span/span_move.h"

#include <errno.h>

static unsigned char byte_at(size_t offset)
{
    return (unsigned char)(offset * 7 + (offset >> 12) + 1);
}

/* One that has nothing free right behind it. */
static unsigned char *take_filled(size_t bytes)
{
    unsigned char *block = (unsigned char *)take_some(bytes);
    char *end = (char *)block + bytes, *other = NULL;
    for (int i = 0; i < 64 && (other < end || other > end + 2 * HAK_GRANULE_BYTES); i++)
        other = take_some(SPAN_BYTES);
    for (size_t i = 0; i < bytes; i++)
        block[i] = byte_at(i);
    return block;
}

/* The first `kept` bytes are as they were, those behind read as zero up to `bytes`. */
static void check_filled(const unsigned char *block, size_t kept, size_t bytes)
{
    CHECK(block != NULL);
    CHECK_EQ(hak_malloc_usable_size((void *)(uintptr_t)block), bytes);
    for (size_t i = 0; i < bytes; i++)
        if (block[i] != (i < kept ? byte_at(i) : 0))
            CHECK_EQ(block[i], i < kept ? byte_at(i) : 0);
}

static size_t moved_bytes(void)
{
    return hak_load_relaxed(&hak_os_counters.moved_bytes);
}

static void need_moves(void)
{
    size_t before = moved_bytes();
    hak_free(hak_realloc(take_filled(SPAN_BYTES), 4 * SPAN_BYTES));
    if (moved_bytes() == before && is_emulated())
        SKIP("the kernel has no mremap that keeps the source mapped");
}

TEST(the_pages_of_a_large_block_move_when_it_cannot_grow_in_place)
{
    need_moves();
    unsigned char *block = take_filled(8 * HAK_MIB);
    size_t before = moved_bytes();
    unsigned char *moved = hak_realloc(block, 20 * HAK_MIB);
    CHECK(moved != block);
    CHECK(moved_bytes() - before >= 8 * HAK_MIB);
    check_filled(moved, 8 * HAK_MIB, 20 * HAK_MIB);
    memset(moved, 'x', 20 * HAK_MIB);
    hak_free(moved);
}

TEST(the_pages_of_a_large_block_move_when_it_shrinks)
{
    need_moves();
    unsigned char *block = take_filled(8 * HAK_MIB);
    size_t before = moved_bytes();
    unsigned char *moved = hak_realloc(block, 2 * HAK_MIB);
    CHECK(moved != block);
    CHECK(moved_bytes() - before >= 2 * HAK_MIB);
    check_filled(moved, 2 * HAK_MIB, 2 * HAK_MIB);
    hak_free(moved);
}

TEST(a_large_block_grows_in_place_into_what_is_free_behind_it)
{
    unsigned char *block = hak_realloc(take_filled(4 * HAK_MIB), 8 * HAK_MIB);
    size_t before = moved_bytes();
    for (size_t bytes = 8 * HAK_MIB; bytes <= 16 * HAK_MIB; bytes += 100000)
        CHECK_EQ(hak_realloc(block, bytes), block);
    CHECK_EQ(moved_bytes(), before);
    check_filled(block, 4 * HAK_MIB, hak_malloc_usable_size(block));
}

TEST(a_large_block_changes_by_some_pages_in_place)
{
    if (hak_os_page_bytes() >= HAK_GRANULE_BYTES)
        SKIP("a page is a granule");
    for (size_t bytes = SPAN_BYTES + 1; bytes < SPAN_BYTES + HAK_GRANULE_BYTES / 2; bytes += 1000) {
        unsigned char *block = take_filled(SPAN_BYTES);
        CHECK_EQ(hak_realloc(block, bytes), block);
        check_filled(block, SPAN_BYTES, bytes);
        CHECK_EQ(hak_realloc(block, SPAN_BYTES - 100), block);
        CHECK_EQ(hak_realloc(block, bytes), block);
        check_filled(block, SPAN_BYTES - 100, bytes);
        hak_free(block);
    }
}

TEST(new_bytes_read_as_zero_where_blocks_of_a_private_heap_were)
{
    enum { COUNT = 40 };
    hakmem_heap *heap = hakmem_heap_new();
    void *dirty[COUNT];
    unsigned char *block = (unsigned char *)take_some(SPAN_BYTES);
    memset(block, 0, SPAN_BYTES);
    for (int i = 0; i < COUNT; i++)
        memset(dirty[i] = hakmem_heap_malloc(heap, SPAN_BYTES), 'd', SPAN_BYTES);
    for (int i = 0; i < COUNT; i++)
        hak_free(dirty[i]);
    for (size_t bytes = SPAN_BYTES; bytes < 6 * HAK_MIB; bytes += bytes / 9) {
        block = hak_realloc(block, bytes);
        check_filled(block, 0, bytes);
    }
    hakmem_heap_destroy(heap);
}

TEST(a_block_that_changes_at_random_keeps_its_contents)
{
    uint32_t state = 1;
    size_t kept = SPAN_BYTES;
    unsigned char *block = take_filled(kept);
    for (int i = 0; i < 300; i++) {
        state = state * 1664525 + 1013904223;
        size_t bytes = HAK_CLASS_BYTES_MAX + 1 + (state >> 8) % (3 * HAK_MIB);
        if (i % 3 != 0)
            bytes = kept + (state >> 8) % 100000;
        if (i % 5 == 0)
            hak_free(take_some(bytes));
        block = hak_realloc(block, bytes);
        check_filled(block, hak_least(kept, bytes), bytes);
        for (size_t j = hak_least(kept, bytes); j < bytes; j++)
            block[j] = byte_at(j);
        kept = bytes;
    }
    hak_free(block);
}

TEST(the_old_place_of_a_moved_block_is_withheld_not_live)
{
    static const size_t sizes[] = {2 * HAK_MIB, 500000, 570000};
    unsigned char *block = take_filled(HAK_MIB);
    hak_thread_flush();
    struct hakmem_stats before = stats_now();
    size_t old_bytes = HAK_MIB;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        block = hak_realloc(block, sizes[i]);
        struct hakmem_stats after = stats_now();
        CHECK_EQ(after.large_live_block_count, before.large_live_block_count);
        size_t rest_bytes = before.large_live_bytes - old_bytes;
        CHECK(after.large_live_bytes + HAK_GRANULE_BYTES > rest_bytes + sizes[i]);
        CHECK(after.large_live_bytes < rest_bytes + sizes[i] + 3 * HAK_GRANULE_BYTES);
    }
    CHECK(stats_now().remote_free_bytes >= old_bytes);
    hak_thread_flush();
    CHECK_EQ(stats_now().remote_free_bytes, 0);
    hak_free(block);
    hak_thread_flush();
    CHECK_EQ(stats_now().large_live_block_count, before.large_live_block_count - 1);
}

TEST(the_old_place_is_not_used_again_at_once)
{
    unsigned char *block = take_filled(HAK_MIB);
    unsigned char *moved = hak_realloc(block, 3 * HAK_MIB);
    CHECK(moved != block);
    for (int i = 0; i < 10; i++) {
        char *other = take_some(HAK_MIB);
        CHECK(other >= (char *)block + HAK_MIB || other + HAK_MIB <= (char *)block);
    }
}

TEST(where_pages_cannot_move_they_are_copied)
{
    need_faults();
    need_moves();
    for (uint32_t loses = 0; loses < 2; loses++) {
        unsigned char *block = take_filled(HAK_MIB);
        hak_store_relaxed(&hak_os_fault.loses_targets, loses);
        fail_every(1, FAULT_MOVE);
        unsigned char *copied = hak_realloc(block, 2 * HAK_MIB);
        unsigned char *shrunk = hak_realloc(copied, SPAN_BYTES);
        hak_os_fault_every(0);
        CHECK(copied != block && shrunk != copied);
        check_filled(shrunk, SPAN_BYTES, SPAN_BYTES);
        CHECK_ABORTS(hak_free(block), "hakmem: double free: pointer 0x");
        hak_free(shrunk);
    }
}

TEST(a_block_that_cannot_grow_is_as_it_was)
{
    unsigned char *block = take_filled(8 * HAK_MIB);
    CHECK_EQ(hakmem_option_set("limit", "32M"), 0);
    errno = 0;
    CHECK(hak_realloc(block, 64 * HAK_MIB) == NULL);
    CHECK_EQ(errno, ENOMEM);
    check_filled(block, 8 * HAK_MIB, 8 * HAK_MIB);
    CHECK_ABORTS((block[8 * HAK_MIB] = 'x', hak_free(block)), "hakmem: overflow: pointer 0x");
    hak_free(block);
}

TEST(a_block_that_realloc_gave_back_in_place_may_be_freed_with_its_size)
{
    static const size_t sizes[] = {1000, SPAN_BYTES};
    for (size_t i = 0; i < 2; i++) {
        void *block = volatile_block(hak_aligned_alloc(64, sizes[i]));
        CHECK_EQ(hak_realloc(block, sizes[i] - 1), block);
        hak_free_sized(block, sizes[i] - 1);
        void *wide = volatile_block(hak_aligned_alloc(HAK_MIB, sizes[i]));
        hak_free_sized(hak_realloc(wide, sizes[i] - 1), sizes[i] - 1);
    }
}

/* No block of so many bytes or more, up to the largest of a class, can be had any more. */
static void use_up(size_t bytes_least)
{
    CHECK_EQ(hakmem_option_set("limit", "1M"), 0);
    for (size_t bytes = bytes_least; bytes <= HAK_CLASS_BYTES_MAX; bytes += bytes / 9)
        while (hak_malloc(bytes) != NULL)
            ;
}

struct shrink {
    size_t alignment; /* 0: ordinary */
    size_t from_bytes, bytes;
};

static const struct shrink shrinks[] = {
    {0, 2000, 100},          {64, 100000, 40000},  {0, 3 * HAK_MIB, 200000},
    {0, 4 * HAK_MIB, 40000}, {0, SPAN_BYTES, 100}, {HAK_MIB, 2 * HAK_MIB, SPAN_BYTES},
    {HAK_MIB, HAK_MIB, 100},
};
enum { SHRINKS = sizeof shrinks / sizeof *shrinks };

/* Those blocks, shrunk where they are because there is no memory for another. */
static void shrink_in_place(unsigned char **blocks)
{
    for (size_t i = 0; i < SHRINKS; i++) {
        const struct shrink *shrink = &shrinks[i];
        blocks[i] = (unsigned char *)take_some(shrink->from_bytes);
        if (shrink->alignment != 0)
            blocks[i] = (unsigned char *)volatile_block(
                hak_aligned_alloc(shrink->alignment, shrink->from_bytes));
        for (size_t j = 0; j < shrink->from_bytes; j++)
            blocks[i][j] = byte_at(j);
    }
    use_up(100);
    for (size_t i = 0; i < SHRINKS; i++) {
        CHECK_EQ(hak_realloc(blocks[i], shrinks[i].bytes), blocks[i]);
        check_filled(blocks[i], shrinks[i].bytes, shrinks[i].bytes);
    }
}

TEST(a_block_that_shrinks_without_memory_for_another_has_its_new_size)
{
    unsigned char *blocks[SHRINKS];
    shrink_in_place(blocks);
    for (size_t i = 0; i < SHRINKS; i++)
        hak_free_sized(blocks[i], shrinks[i].bytes);
}

TEST(an_overflow_behind_the_new_size_of_a_block_that_shrank_in_place_is_reported)
{
    unsigned char *blocks[SHRINKS];
    shrink_in_place(blocks);
    for (size_t i = 0; i < SHRINKS; i++) {
        unsigned char *block = blocks[i], *end = block + shrinks[i].bytes;
        CHECK_ABORTS((*end = (unsigned char)(*end + 1), hak_free(block)), "hakmem: overflow: ");
        CHECK_ABORTS(hak_free_sized(block, shrinks[i].from_bytes), "another size");
    }
}

TEST(a_block_that_shrank_in_place_can_grow_and_be_freed_as_any_other)
{
    unsigned char *blocks[SHRINKS];
    shrink_in_place(blocks);
    CHECK_EQ(hakmem_option_set("limit", "0"), 0);
    for (size_t i = 0; i < SHRINKS; i++) {
        blocks[i] = hak_realloc(blocks[i], shrinks[i].from_bytes);
        check_filled(blocks[i], shrinks[i].bytes, shrinks[i].from_bytes);
        hak_free_sized(blocks[i], shrinks[i].from_bytes);
    }
    hak_thread_flush();
    CHECK_ABORTS(hak_free(blocks[0]), "hakmem: double free: pointer 0x");
}

TEST(many_blocks_that_move_leave_the_heap_as_it_was)
{
    unsigned char *blocks[8] = {NULL};
    for (int round = 0; round < 40; round++) {
        for (size_t i = 0; i < 8; i++) {
            size_t bytes = SPAN_BYTES + (size_t)((round * 5 + (int)i * 3) % 11) * 300000;
            size_t old_bytes = blocks[i] == NULL ? 0 : hak_malloc_usable_size(blocks[i]);
            blocks[i] = hak_realloc(blocks[i], bytes);
            CHECK(old_bytes == 0 || blocks[i][hak_least(old_bytes, bytes) - 1] ==
                                        byte_at(hak_least(old_bytes, bytes) - 1));
            for (size_t j = 0; j < bytes; j++)
                blocks[i][j] = byte_at(j);
        }
    }
    for (size_t i = 0; i < 8; i++)
        hak_free(blocks[i]);
    hak_malloc_trim(0);
    CHECK_EQ(stats_now().large_live_block_count, 0);
    CHECK_EQ(hak_span_piece_count(), 0);
}
