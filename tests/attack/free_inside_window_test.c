/* SPDX-License-Identifier: MIT */
/* tests/attack/free_inside_window_test.c - a pointer into free memory of hakmem is freed. */
#include "attack.h"

#include "region/region.h"

static void free_the_end_of_the_window(void)
{
    CHECK(hak_malloc(64) != NULL);
    size_t committed_bytes = hak_load_relaxed(&hak_region.committed_bytes);
    hak_free((void *)(hak_region.base + committed_bytes - HAK_GRANULE_BYTES));
}

TEST(a_pointer_into_the_window_where_no_slab_is_is_reported)
{
    CHECK_ABORTS(free_the_end_of_the_window(), "hakmem: invalid free: pointer 0x");
    CHECK_ABORTS(free_the_end_of_the_window(), "no block, nothing is allocated there\n");
}
