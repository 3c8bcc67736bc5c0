/* SPDX-License-Identifier: MIT */
/* tests/unit/stats/refusal_test.c - one line says that the limit refused, if it was the limit. */
#include "stats/refusal.h"

#include "api/api.h"
#include "base/limits.h"
#include "check.h"
#include "os/confine.h"
#include "policy/policy_table.h"
#include "process/start.h"
#include "region/region.h"

#define SAYS "hakmem: the limit of 64M (option limit) is reached: a request of 104857600 bytes "

static void limit(void)
{
    CHECK(hak_process_start());
    hak_store_relaxed(&hak_policy.limit_bytes, 64 * HAK_MIB);
}

static void refuse(size_t bytes)
{
    void *volatile block = hak_malloc(bytes);
    CHECK(block == NULL);
}

static void refuse_both(size_t first_bytes, size_t bytes)
{
    refuse(first_bytes);
    refuse(bytes);
}

TEST(a_request_that_the_limit_refuses_is_reported_once)
{
    limit();
    CHECK_SAYS(refuse_both(100 * HAK_MIB, 200 * HAK_MIB), SAYS);
    refuse(100 * HAK_MIB);
    CHECK_SAYS_NOTHING(refuse(100 * HAK_MIB));
}

TEST(a_request_that_no_limit_would_admit_is_not_reported)
{
    limit();
    CHECK_SAYS_NOTHING(refuse(PTRDIFF_MAX / 2));
    CHECK_SAYS_NOTHING(refuse(SIZE_MAX));
    CHECK_SAYS_NOTHING(refuse(hak_region.window_bytes + 1));
    hak_store_relaxed(&hak_region.most_bytes, 80 * HAK_MIB);
    CHECK_SAYS_NOTHING(refuse(100 * HAK_MIB));
}

TEST(a_program_that_confined_itself_gets_no_report)
{
    limit();
    hak_os_confine();
    CHECK_SAYS_NOTHING(refuse(100 * HAK_MIB));
}

TEST(the_report_is_left_for_the_first_request_that_the_limit_refuses)
{
    limit();
    CHECK_SAYS(refuse_both(PTRDIFF_MAX / 2, 100 * HAK_MIB), SAYS);
}
