/* SPDX-License-Identifier: MIT */
/* tests/attack/hardened_impossible_size_test.c - more is asked for than there can be. */
#include "hardened.h"

#include <errno.h>

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
