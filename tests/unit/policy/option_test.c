/* SPDX-License-Identifier: MIT */
/* tests/unit/policy/option_test.c - which options change while the program runs, and what follows.
 */
#include "policy/option.h"

#include "check.h"
#include "conf/conf.h"
#include "policy/policy_table.h"

TEST(numbers_of_the_policy_follow)
{
    CHECK_EQ(hak_option_change("limit", "3G"), OPTION_CHANGED);
    CHECK_EQ(hak_policy_read(limit_bytes), 3ull << 30);
    CHECK_EQ(hak_option_change("HAKMEM_LIMIT", "0"), OPTION_CHANGED);
    CHECK_EQ(hak_policy_read(limit_bytes), 0);
}

TEST(a_refused_setting_changes_nothing)
{
    CHECK_EQ(hak_option_change("decay", "soon"), OPTION_WRONG);
    CHECK_EQ(hak_option_change("thread_cache", "1"), OPTION_WRONG);
    CHECK_EQ(hak_option_change("none", "1"), OPTION_UNKNOWN);
    CHECK_EQ(hak_option_change("stats_file", "/tmp/x"), OPTION_FROZEN);
    CHECK_EQ(hak_option_change("mode", "fast"), OPTION_FROZEN);
    CHECK_EQ(hak_policy_read(decay_ms), 125);
}

TEST(guards_change_only_where_they_were_on_at_the_start)
{
    hak_conf.number[CONF_guard_rate] = 0;
    CHECK_EQ(hak_option_change("guard_rate", "1M"), OPTION_FROZEN);
    hak_conf.number[CONF_guard_rate] = 1 << 20;
    CHECK_EQ(hak_option_change("guard_rate", "64K"), OPTION_CHANGED);
    CHECK_EQ(hak_conf_number(guard_rate), 64 << 10);
    CHECK_EQ(hak_option_change("guard_rate", "0"), OPTION_CHANGED);
    CHECK_EQ(hak_option_change("guard_rate", "1M"), OPTION_CHANGED);
    CHECK_EQ(hak_conf_number(guard_rate), 1 << 20);
}

TEST(a_change_of_price_changes_the_options_that_are_not_set)
{
    CHECK_EQ(hak_option_change("retain", "5M"), OPTION_CHANGED);
    CHECK_EQ(hak_option_change("price", "speed"), OPTION_CHANGED);
    CHECK_EQ(hak_policy_read(retain_bytes), 5 << 20);
    CHECK_EQ(hak_policy_read(decay_ms), 1000);
    CHECK_EQ(hak_policy_read(big_cache_from_bytes), 0);
    CHECK_EQ(hak_policy_read(quiet_ms), 2000);
    CHECK_EQ(hak_option_change("price", "even"), OPTION_CHANGED);
    CHECK_EQ(hak_policy_read(decay_ms), 125);
    CHECK_EQ(hak_policy_read(big_cache_from_bytes), 4 << 20);
    CHECK_EQ(hak_policy_read(retain_bytes), 5 << 20);
    CHECK_EQ(hak_option_change("price", "dear"), OPTION_WRONG);
}

TEST(trimming_that_a_threshold_turned_off_is_turned_on_by_the_next)
{
    CHECK_EQ(hak_option_change("decay", "2s"), OPTION_CHANGED);
    hak_option_trim_threshold(-1);
    CHECK_EQ(hak_policy_read(decay_ms), HAK_CONF_NEVER_MS);
    hak_option_trim_threshold(12345);
    CHECK_EQ(hak_policy_read(decay_ms), 2000);
    CHECK_EQ(hak_policy_read(retain_bytes), 12345);
    hak_option_trim_threshold(0);
    CHECK_EQ(hak_policy_read(decay_ms), 2000);
    CHECK_EQ(hak_policy_read(retain_bytes), 0);
}

TEST(a_change_of_price_leaves_the_trim_threshold)
{
    hak_option_trim_threshold(54321);
    CHECK_EQ(hak_option_change("price", "speed"), OPTION_CHANGED);
    CHECK_EQ(hak_policy_read(retain_bytes), 54321);
    CHECK_EQ(hak_policy_read(decay_ms), 1000);
    hak_option_trim_threshold(-1);
    CHECK_EQ(hak_option_change("price", "even"), OPTION_CHANGED);
    CHECK_EQ(hak_policy_read(decay_ms), HAK_CONF_NEVER_MS);
    hak_option_trim_threshold(1);
    CHECK_EQ(hak_policy_read(decay_ms), 125);
}

TEST(an_option_that_is_set_later_replaces_the_trim_threshold)
{
    hak_option_trim_threshold(-1);
    CHECK_EQ(hak_option_change("retain", "5M"), OPTION_CHANGED);
    CHECK_EQ(hak_policy_read(decay_ms), 125);
    CHECK_EQ(hak_policy_read(retain_bytes), 5 << 20);
    hak_option_trim_threshold(-1);
    CHECK_EQ(hak_option_change("decay", "3s"), OPTION_CHANGED);
    CHECK_EQ(hak_policy_read(decay_ms), 3000);
    CHECK_EQ(hak_option_change("price", "speed"), OPTION_CHANGED);
    CHECK_EQ(hak_policy_read(decay_ms), 3000);
    CHECK_EQ(hak_policy_read(retain_bytes), 5 << 20);
}
