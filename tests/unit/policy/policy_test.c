/* SPDX-License-Identifier: MIT */
/* tests/unit/policy/policy_test.c - the numbers that decide. */
#include "check.h"
#include "conf/conf.h"
#include "policy/policy_table.h"
#include "process/start.h"

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

TEST(the_price_moves_its_rows_and_those_of_the_options_that_it_implies)
{
    setenv("HAKMEM_PRICE", "compact", 1);
    setenv("HAKMEM_RETAIN", "3M", 1);
    CHECK(hak_process_start());
#define X(row, speed, even, compact) CHECK_EQ(hak_policy_read(row), (uint64_t)(compact));
    HAK_POLICY_PRICE_TABLE(X)
#undef X
    CHECK(hak_policy_read(thread_cache_bytes) < 2 * HAK_MIB);
    CHECK(hak_policy_read(decay_ms) < 125);
    CHECK_EQ(hak_policy_read(retain_bytes), 3 * HAK_MIB);
}

TEST(an_even_price_is_what_the_rows_start_with)
{
#define X(row, speed, even, compact) CHECK_EQ(hak_policy_read(row), (uint64_t)(even));
    HAK_POLICY_PRICE_TABLE(X)
#undef X
}

/* Clamps hold whatever the price; from speed to compact nothing gets larger. */
static void check_price(uint64_t speed, uint64_t even, uint64_t compact, uint64_t least,
                        uint64_t most)
{
    CHECK(is_within(compact, least, even));
    CHECK(is_within(even, compact, speed));
    CHECK(is_within(speed, even, most));
}

TEST(every_price_is_within_the_clamps_and_speed_is_never_leaner)
{
    enum {
#define X(name, initial, least, most, meaning) ROW_##name,
        HAK_POLICY_TABLE(X) ROW_COUNT
#undef X
    };
    static const uint64_t clamps[ROW_COUNT][2] = {
#define X(name, initial, least, most, meaning) [ROW_##name] = {least, most},
        HAK_POLICY_TABLE(X)
#undef X
    };
    /* Of one row less keeps more: from so many bytes on something is kept. */
#define X(row, speed, even, compact)                                                               \
    if (ROW_##row == ROW_big_cache_from_bytes)                                                     \
        check_price(compact, even, speed, clamps[ROW_##row][0], clamps[ROW_##row][1]);             \
    else                                                                                           \
        check_price(speed, even, compact, clamps[ROW_##row][0], clamps[ROW_##row][1]);
    HAK_POLICY_PRICE_TABLE(X)
#undef X
}

TEST(how_long_spans_are_kept_is_learned_unless_learning_is_off)
{
    CHECK(hak_process_start());
    CHECK_EQ(hak_policy_read(big_cache_episodes), 32);
}

TEST(without_learning_no_number_of_episodes_is_enough)
{
    setenv("HAKMEM_LEARN", "none", 1);
    CHECK(hak_process_start());
    CHECK_EQ(hak_policy_read(big_cache_episodes), HAK_TIB);
}

TEST(without_its_word_big_cache_is_not_learned)
{
    setenv("HAKMEM_LEARN", "decay+sites", 1);
    CHECK(hak_process_start());
    CHECK_EQ(hak_policy_read(big_cache_episodes), HAK_TIB);
}
