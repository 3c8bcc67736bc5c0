/* SPDX-License-Identifier: MIT */
/* tests/attack/hardened_resized_overflow_test.c - bytes behind a large block are written after it
 * was resized. */
#include "hardened.h"
#include "os/os.h"

#define FAR_BYTES (16 * SPAN_BYTES)

static char *resized(size_t bytes)
{
    char *block = take_some(SPAN_BYTES);
    memset(block, 'x', SPAN_BYTES);
    return volatile_block(hak_realloc(block, bytes));
}

static void overflow_by_1(size_t bytes)
{
    char *block = resized(bytes);
    memset(block, 'x', bytes + 1);
    hak_free(block);
}

static void overflow_and_resize(size_t bytes)
{
    char *block = resized(bytes);
    memset(block, 'x', bytes + 1);
    CHECK(hak_realloc(block, 2 * bytes) == NULL);
}

/* A canary of 8 bytes at least ends the last page; machines have pages of up to 64 KiB. */
static void overflow_by_a_page(size_t bytes)
{
    char *block = resized(bytes);
    size_t page = hak_os_page_bytes();
    block[hak_align_up(bytes + 8, page)] = 'x';
}

static void underflow_by_1(size_t bytes)
{
    char *block = resized(bytes);
    block[-1] = 'x';
}

static void check_ends(size_t bytes)
{
    CHECK_ABORTS(overflow_by_1(bytes), "hakmem: overflow: pointer 0x");
    CHECK_ABORTS(overflow_by_1(bytes), "the bytes behind it were overwritten\n");
    CHECK_ABORTS(overflow_and_resize(bytes), "hakmem: overflow: pointer 0x");
    CHECK_FAULTS(overflow_by_a_page(bytes));
    CHECK_FAULTS(underflow_by_1(bytes));
}

TEST(an_overflow_behind_256_kib_that_grew_by_a_page_is_found)
{
    check_ends(SPAN_BYTES + PAGE_BYTES + 1);
}

TEST(an_overflow_behind_256_kib_that_shrank_by_a_page_is_found)
{
    check_ends(SPAN_BYTES - PAGE_BYTES + 1);
}

TEST(an_overflow_behind_256_kib_that_grew_to_4_mib_is_found)
{
    check_ends(FAR_BYTES);
}

TEST(an_overflow_behind_256_kib_that_shrank_to_160_kib_is_found)
{
    check_ends(SPAN_BYTES * 5 / 8);
}
