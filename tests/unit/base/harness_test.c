/* SPDX-License-Identifier: MIT */
/* tests/unit/base/harness_test.c - the harness fails when it should. */
#include "check.h"

static void check_nothing(void)
{
}

static void skip_myself(void)
{
    SKIP("on purpose");
}

static void abort_with(const char *message)
{
    if (write(STDERR_FILENO, message, strlen(message)) > 0)
        abort();
}

static void expect_another_message(void)
{
    CHECK_ABORTS(abort_with("hakmem: wrong\n"), "right");
}

static void expect_an_abort_of_nothing(void)
{
    CHECK_ABORTS(check_nothing(), "");
}

static void expect_an_exit_of_an_abort(void)
{
    CHECK_EXITS(abort(), 0);
}

TEST(a_true_check_passes)
{
    CHECK(1 + 1 == 2);
    CHECK_EQ(-1, ~0);
    CHECK_EQ(&check_first, (void *)&check_first);
    CHECK_STR("same", "same");
}

TEST(a_false_check_ends_the_test)
{
    CHECK_EXITS(CHECK(1 + 1 == 3), 1);
    CHECK_EXITS(CHECK_EQ(1, 2), 1);
    CHECK_EXITS(CHECK_STR("this", "that"), 1);
}

TEST(a_test_without_a_check_fails)
{
    struct check_test empty = {"check_nothing", check_nothing, NULL};
    CHECK_EXITS(check_count = 0; _exit(check_run(&empty)), 1);
}

TEST(a_skipped_test_says_so)
{
    CHECK_EXITS(skip_myself(), CHECK_SKIPPED);
}

TEST(an_abort_is_recognised_by_signal_and_message)
{
    CHECK_ABORTS(abort_with("hakmem: wrong\n"), "hakmem: wrong");
    CHECK_EXITS(expect_another_message(), 1);
    CHECK_EXITS(expect_an_abort_of_nothing(), 1);
    CHECK_EXITS(expect_an_exit_of_an_abort(), 1);
}

TEST(a_long_message_does_not_block_the_child)
{
    static char long_message[200000];
    memset(long_message, 'x', sizeof long_message - 1);
    CHECK_ABORTS(abort_with(long_message), "xxxx");
}
