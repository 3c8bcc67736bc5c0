/* SPDX-License-Identifier: MIT */
/* tests/unit/stats/glibc_view_test.c - a snapshot in glibc's words loses and doubles nothing. */
#include "check.h"
#include "stats/glibc_view.h"

static struct snapshot sample(void)
{
    struct snapshot snapshot = {.small_live_bytes = 1,
                                .large_live_bytes = 20,
                                .cached_bytes = 300,
                                .withheld_bytes = 4000,
                                .homeward_bytes = 50000,
                                .slab_free_bytes = 600000,
                                .slab_warm_bytes = 7000000,
                                .slab_clean_bytes = 80000000,
                                .span_warm_bytes = 900000000,
                                .span_clean_bytes = 10000000000,
                                .large_live_blocks = 5,
                                .class_count = 2};
    snapshot.classes[0] = (struct snapshot_class){8, 1, 2, 3, 4, 0, 0, 0, 0};
    snapshot.classes[1] = (struct snapshot_class){16, 1, 20, 30, 40, 0, 0, 0, 0};
    return snapshot;
}

TEST(the_arena_is_all_resident_memory_outside_large_blocks)
{
    struct snapshot snapshot = sample();
    struct glibc_view view = hak_glibc_view(&snapshot);
    CHECK_EQ(view.arena_bytes, 907654301);
    CHECK_EQ(view.arena_bytes, view.in_use_bytes + view.fast_bytes + view.rest_bytes);
    CHECK_EQ(view.arena_most_bytes, 10987654301);
    CHECK_EQ(view.in_use_bytes, 1);
    CHECK_EQ(view.releasable_bytes, 907000000);
}

TEST(cached_blocks_are_reported_as_fast_and_free_blocks_as_the_rest)
{
    struct snapshot snapshot = sample();
    struct glibc_view view = hak_glibc_view(&snapshot);
    CHECK_EQ(view.fast_bytes, 54300);
    CHECK_EQ(view.fast_count, 33);
    CHECK_EQ(view.rest_count, 44);
    CHECK_EQ(view.mapped_count, 5);
    CHECK_EQ(view.mapped_bytes, 20);
}
