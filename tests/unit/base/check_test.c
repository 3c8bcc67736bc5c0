/* SPDX-License-Identifier: MIT */
/* tests/unit/base/check_test.c - checks speak, abort, and cost nothing when they are off. */
#include "base/check.h"
#include "check.h"

static int evaluated_count;

static bool evaluated(bool answer)
{
    evaluated_count++;
    return answer;
}

TEST(a_broken_requirement_aborts_with_its_message)
{
    CHECK_ABORTS(hak_require(1 + 1 == 3, "sums are wrong"), "hakmem: sums are wrong\n");
    CHECK_EXITS(hak_require(1 + 1 == 2, "sums are wrong"), 0);
}

TEST(an_assertion_holds_from_level_1)
{
    if (HAK_CHECK_LEVEL >= 1)
        CHECK_ABORTS(hak_assert(evaluated(false)), "internal check failed: evaluated(false)");
    else
        CHECK_EXITS(hak_assert(evaluated(false)), 0);
}

TEST(an_audit_holds_from_level_2)
{
    if (HAK_CHECK_LEVEL >= 2)
        CHECK_ABORTS(hak_audit(evaluated(false)), "audit failed: evaluated(false)");
    else
        CHECK_EXITS(hak_audit(evaluated(false)), 0);
}

TEST(a_check_evaluates_its_condition_once_or_not_at_all)
{
    hak_require(evaluated(true), "never said");
    CHECK_EQ(evaluated_count, 1);
    hak_assert(evaluated(true));
    hak_audit(evaluated(true));
    CHECK_EQ(evaluated_count, 1 + (HAK_CHECK_LEVEL >= 1) + (HAK_CHECK_LEVEL >= 2));
}
