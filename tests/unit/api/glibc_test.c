/* SPDX-License-Identifier: MIT */
/* tests/unit/api/glibc_test.c - functions of other systems' C libraries, by their manuals. */
#include "api/api.h"
#include "base/limits.h"
#include "check.h"
#include "slab/size_class.h"
#include "unit/lent.h"

#include <errno.h>

/* macOS, malloc_good_size(3): what is returned can be allocated without padding. */
TEST(a_good_size_is_used_whole_and_is_good_itself)
{
    for (size_t bytes = 0; bytes < 8 * HAK_MIB; bytes = bytes * 9 / 8 + 1) {
        size_t good = hak_malloc_good_size(bytes);
        CHECK(good >= bytes);
        CHECK_EQ(hak_malloc_good_size(good), good);
        void *block = hak_malloc(good);
        CHECK(block != NULL);
        if (good <= HAK_CLASS_BYTES_MAX)
            CHECK(may_be_so_long(good, hak_malloc_usable_size(block)));
        CHECK(hak_malloc_usable_size(block) >= good);
        hak_free(block);
    }
}

TEST(a_good_size_of_an_impossible_request_is_the_request)
{
    CHECK_EQ(hak_malloc_good_size(SIZE_MAX), SIZE_MAX);
    CHECK_EQ(hak_malloc_good_size(HAK_REQUEST_BYTES_MAX + 1), HAK_REQUEST_BYTES_MAX + 1);
    CHECK(hak_malloc_good_size(HAK_REQUEST_BYTES_MAX) >= HAK_REQUEST_BYTES_MAX);
}

/* FreeBSD, realloc(3). */
TEST(reallocf_keeps_the_contents)
{
    char *block = hak_reallocf(NULL, 10);
    CHECK(block != NULL);
    strcpy(block, "contents");
    block = hak_reallocf(block, 100000);
    CHECK_STR(block, "contents");
    hak_free(block);
}

TEST(reallocf_frees_a_block_that_it_cannot_resize)
{
    char *block = hak_malloc(HAK_MIB);
    errno = 0;
    CHECK(hak_reallocf(block, SIZE_MAX) == NULL);
    CHECK_EQ(errno, ENOMEM);
    CHECK_ABORTS(hak_free(block), "hakmem: "); /* it is free already */
}

TEST(reallocf_to_0_bytes_frees_once)
{
    CHECK(hak_reallocf(hak_malloc(HAK_MIB), 0) == NULL);
    CHECK(hak_reallocf(hak_malloc(10), 0) == NULL);
    CHECK(hak_reallocf(NULL, SIZE_MAX) == NULL);
}
