/* SPDX-License-Identifier: MIT */
/* tests/unit/base/compiler_test.c - what the code asks of the compiler does what it says. */
#include "base/compiler.h"
#include "check.h"

static HAK_TLS int of_this_thread = 7;

struct own_line {
    HAK_CACHE_ALIGNED char byte;
};

TEST(a_hint_does_not_change_the_condition)
{
    CHECK(HAK_LIKELY(8) == 1);
    CHECK(HAK_UNLIKELY(8) == 1);
    CHECK(HAK_LIKELY(0) == 0);
    CHECK(HAK_UNLIKELY(0) == 0);
}

TEST(cache_aligned_members_have_a_line_to_themselves)
{
    CHECK_EQ(alignof(struct own_line), HAK_CACHE_LINE_BYTES);
    CHECK_EQ(sizeof(struct own_line), HAK_CACHE_LINE_BYTES);
}

TEST(thread_locals_start_with_their_value)
{
    CHECK_EQ(of_this_thread, 7);
}

TEST(tests_stand_beside_libc_s_malloc)
{
    CHECK_EQ(HAK_INTERPOSE, 0);
}
