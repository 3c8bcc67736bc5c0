/* SPDX-License-Identifier: MIT */
/* tests/unit/base/text_test.c - lines are built piece by piece and never overrun. */
#include "base/text.h"
#include "check.h"

static char buffer[64];
static struct text text = {.start = buffer, .bytes = sizeof buffer - 1};

TEST(pieces_follow_one_another)
{
    hak_text_add(&text, "a ");
    hak_text_add_bytes(&text, "bcdef", 2);
    hak_text_add(&text, "");
    hak_text_add_bytes(&text, "x", 0);
    hak_text_add(&text, " g");
    CHECK_STR(buffer, "a bc g");
    CHECK_EQ(text.used, 6);
}

TEST(numbers_are_written_in_base_10_and_16)
{
    hak_text_add_number(&text, 0, 10);
    hak_text_add(&text, " ");
    hak_text_add_number(&text, 1234567890, 10);
    hak_text_add(&text, " ");
    hak_text_add_number(&text, 0xfedcba98, 16);
    hak_text_add(&text, " ");
    hak_text_add_number(&text, UINT64_MAX, 10);
    CHECK_STR(buffer, "0 1234567890 fedcba98 18446744073709551615");
}

TEST(what_does_not_fit_is_cut)
{
    memset(buffer, '#', sizeof buffer);
    text.bytes = 5;
    hak_text_add(&text, "abc");
    hak_text_add_number(&text, 12345, 10);
    hak_text_add(&text, "z");
    hak_text_add_bytes(&text, "yy", 2);
    CHECK_EQ(text.used, 5);
    CHECK_EQ(memcmp(buffer, "abc12#", 6), 0);
}
