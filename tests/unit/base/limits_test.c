/* SPDX-License-Identifier: MIT */
/* tests/unit/base/limits_test.c - the constants fit one another. */
#include "base/bits.h"
#include "base/limits.h"
#include "check.h"

TEST(a_superslab_is_a_huge_page_unless_the_build_is_tiny)
{
    CHECK(hak_is_power_of_two(HAK_SUPERSLAB_BYTES));
    CHECK_EQ(HAK_SUPERSLAB_BYTES, HAK_TINY ? 4 * HAK_GRANULE_BYTES : 2 * HAK_MIB);
}

TEST(a_slab_never_exceeds_a_superslab)
{
    CHECK(HAK_SLAB_GRANULES_MAX <= HAK_SUPERSLAB_GRANULES);
}

TEST(the_window_is_whole_superslabs)
{
    CHECK_EQ(HAK_WINDOW_BYTES_MAX % HAK_SUPERSLAB_BYTES, 0);
    CHECK_EQ(HAK_WINDOW_BYTES_MIN % HAK_SUPERSLAB_BYTES, 0);
    CHECK(HAK_WINDOW_BYTES_MIN <= HAK_WINDOW_BYTES_MAX);
    CHECK_EQ(HAK_WINDOW_BYTES_MAX, HAK_SMALL_WINDOW ? 16 * HAK_GIB : HAK_TIB);
}

TEST(commit_steps_are_whole_superslabs)
{
    CHECK_EQ(HAK_COMMIT_STEP_LEAST % HAK_SUPERSLAB_BYTES, 0);
    CHECK_EQ(HAK_COMMIT_STEP_MOST % HAK_SUPERSLAB_BYTES, 0);
    CHECK(HAK_COMMIT_STEP_LEAST <= HAK_COMMIT_STEP_MOST);
}

TEST(bins_have_room_to_grow_or_stand_still)
{
    CHECK(HAK_BIN_SLOTS_LEAST >= 2);
    CHECK(HAK_BIN_SLOTS_LEAST <= HAK_BIN_SLOTS_MOST);
}
