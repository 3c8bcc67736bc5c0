/* SPDX-License-Identifier: MIT */
/* tests/unit/policy/policy_test.c - the numbers that decide. */
#include "cache/lifecycle.h"
#include "check.h"
#include "conf/conf.h"
#include "policy/policy_table.h"

static bool is_within(uint64_t value, uint64_t least, uint64_t most)
{
    return value >= least && value <= most;
}

TEST(every_row_starts_with_its_initial_value_within_its_clamps){
#define X(name, initial, least, most, meaning)                                                     \
    CHECK_EQ(hak_policy_read(name), (uint64_t)(initial));                                          \
    CHECK(is_within(hak_policy_read(name), (uint64_t)(least), (uint64_t)(most)));
    HAK_POLICY_TABLE(X)
#undef X
}

TEST(rows_that_are_options_start_as_the_options_say)
{
    CHECK_EQ(hak_policy_read(decay_ms), (uint64_t)hak_conf_number(decay));
    CHECK_EQ(hak_policy_read(retain_bytes), (uint64_t)hak_conf_number(retain));
    CHECK_EQ(hak_policy_read(thread_cache_bytes), (uint64_t)hak_conf_number(thread_cache));
}

TEST(options_reach_the_policy_when_the_process_starts)
{
    setenv("HAKMEM_CONF", "decay:-1,retain:5M,thread_cache:128K", 1);
    CHECK(hak_process_start());
    CHECK_EQ(hak_policy_read(decay_ms), HAK_CONF_NEVER_MS);
    CHECK_EQ(hak_policy_read(retain_bytes), 5 * HAK_MIB);
    CHECK_EQ(hak_policy_read(thread_cache_bytes), 128 * HAK_KIB);
}
