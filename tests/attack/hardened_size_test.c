/* SPDX-License-Identifier: MIT */
/* tests/attack/hardened_size_test.c - nothing is asked for, and more than there can be. */
#include "hardened.h"

#include <errno.h>

static void free_twice(void)
{
    void *block = take_some(0);
    hak_free(block);
    hak_free(block);
}

TEST(a_block_of_no_bytes_cannot_be_read_or_written)
{
    CHECK_FAULTS((void)*(volatile char *)take_some(0));
    CHECK_FAULTS(*(volatile char *)take_some(0) = 'x');
}

TEST(a_block_of_no_bytes_is_freed_once)
{
    CHECK_ABORTS(free_twice(), "hakmem: double free: pointer 0x");
    CHECK_ABORTS(hak_free(take_some(0) + 1), "hakmem: double free: pointer 0x");
}

TEST(blocks_of_no_bytes_are_blocks)
{
    char *first = take_some(0), *second = take_some(0);
    CHECK(first != second);
    CHECK_EQ(hak_malloc_usable_size(first), 0);
    char *grown = hak_realloc(first, 100);
    memset(grown, 'x', 100);
    hak_free(grown);
    hak_free(second);
    CHECK_ABORTS(hak_free(first), "hakmem: double free: pointer 0x");
}

TEST(requests_that_no_memory_can_serve_are_refused)
{
    static const size_t sizes[] = {SIZE_MAX,         SIZE_MAX - 7, SIZE_MAX - 4096,
                                   SIZE_MAX / 2 + 1, SIZE_MAX / 2, (size_t)1 << 47};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        errno = 0;
        CHECK(hak_malloc(sizes[i]) == NULL);
        CHECK_EQ(errno, ENOMEM);
        CHECK(hak_calloc(sizes[i], 3) == NULL);
        CHECK(hak_aligned_alloc(4096, sizes[i]) == NULL);
        void *block = hak_malloc(10);
        CHECK(hak_realloc(block, sizes[i]) == NULL);
        hak_free(block);
    }
    CHECK(hak_aligned_alloc(SIZE_MAX / 2 + 1, 8) == NULL);
}
