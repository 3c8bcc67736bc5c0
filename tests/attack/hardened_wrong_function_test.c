/* SPDX-License-Identifier: MIT */
/* tests/attack/hardened_wrong_function_test.c - a block is freed by the function of another
 * kind. */
#include "hardened.h"

static void new_and_free(size_t bytes)
{
    hak_free(volatile_block(hak_new(bytes)));
}

static void new_and_delete_array(size_t bytes)
{
    hak_delete_array(volatile_block(hak_new(bytes)));
}

static void new_array_and_delete(size_t bytes)
{
    hak_delete(volatile_block(hak_new_array(bytes)));
}

static void malloc_and_delete(size_t bytes)
{
    hak_delete(take_some(bytes));
}

static void new_and_resize(size_t bytes)
{
    CHECK(hak_realloc(volatile_block(hak_new(bytes)), 2 * bytes) == NULL);
}

TEST(a_block_of_8_bytes_freed_by_another_kind_of_function_is_reported)
{
    CHECK_ABORTS(new_and_free(TINY_BYTES), "allocated by operator new, but freed in another way\n");
    CHECK_ABORTS(new_and_delete_array(TINY_BYTES), "hakmem: mismatched free: pointer 0x");
    CHECK_ABORTS(new_array_and_delete(TINY_BYTES),
                 "allocated by operator new[], but freed in another way\n");
    CHECK_ABORTS(malloc_and_delete(TINY_BYTES), "allocated by malloc, but freed in another way\n");
    CHECK_ABORTS(new_and_resize(TINY_BYTES), "hakmem: mismatched free: pointer 0x");
}

TEST(a_block_of_4096_bytes_freed_by_another_kind_of_function_is_reported)
{
    CHECK_ABORTS(new_and_free(PAGE_BYTES), "allocated by operator new, but freed in another way\n");
    CHECK_ABORTS(new_and_delete_array(PAGE_BYTES), "hakmem: mismatched free: pointer 0x");
    CHECK_ABORTS(new_array_and_delete(PAGE_BYTES),
                 "allocated by operator new[], but freed in another way\n");
    CHECK_ABORTS(malloc_and_delete(PAGE_BYTES), "allocated by malloc, but freed in another way\n");
    CHECK_ABORTS(new_and_resize(PAGE_BYTES), "hakmem: mismatched free: pointer 0x");
}

TEST(a_block_of_256_kib_freed_by_another_kind_of_function_is_reported)
{
    CHECK_ABORTS(new_and_free(SPAN_BYTES), "allocated by operator new, but freed in another way\n");
    CHECK_ABORTS(new_and_delete_array(SPAN_BYTES), "hakmem: mismatched free: pointer 0x");
    CHECK_ABORTS(new_array_and_delete(SPAN_BYTES),
                 "allocated by operator new[], but freed in another way\n");
    CHECK_ABORTS(malloc_and_delete(SPAN_BYTES), "allocated by malloc, but freed in another way\n");
    CHECK_ABORTS(new_and_resize(SPAN_BYTES), "hakmem: mismatched free: pointer 0x");
}
