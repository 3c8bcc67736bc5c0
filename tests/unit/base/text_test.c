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

TEST(text_that_does_not_fit_is_cut)
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

static const char *size_of(uint64_t bytes)
{
    text.used = 0;
    memset(buffer, 0, sizeof buffer);
    hak_text_add_size(&text, bytes);
    return buffer;
}

TEST(sizes_have_the_largest_unit_that_they_reach_and_one_decimal)
{
    CHECK_STR(size_of(0), "0 B");
    CHECK_STR(size_of(1023), "1023 B");
    CHECK_STR(size_of(1024), "1.0 KiB");
    CHECK_STR(size_of(1536), "1.5 KiB");
    CHECK_STR(size_of(12902400), "12.3 MiB");
    CHECK_STR(size_of(UINT64_C(3) << 30), "3.0 GiB");
    CHECK_STR(size_of(UINT64_C(1) << 40), "1.0 TiB");
    CHECK_STR(size_of(UINT64_MAX), "16.0 EiB");
}

TEST(fractions_keep_their_zeros)
{
    hak_text_add_fraction(&text, 1234, 2);
    hak_text_add(&text, " ");
    hak_text_add_fraction(&text, 7, 1);
    hak_text_add(&text, " ");
    hak_text_add_fraction(&text, 2003, 3);
    CHECK_STR(buffer, "12.34 0.7 2.003");
}

TEST(columns_are_filled_from_the_left_or_the_right)
{
    hak_text_add(&text, "a");
    hak_text_pad(&text, 4);
    size_t from = text.used;
    hak_text_add(&text, "bcd");
    hak_text_right(&text, from, 10);
    from = text.used;
    hak_text_add(&text, "longer");
    hak_text_right(&text, from, 12);
    hak_text_pad(&text, 3);
    CHECK_STR(buffer, "a      bcdlonger");
    hak_text_pad(&text, 1000);
    CHECK_EQ(text.used, text.bytes);
}

TEST(a_number_is_read_up_to_what_is_no_digit_of_its_base)
{
    CHECK_EQ(hak_text_number("65530\n", 10), 65530);
    CHECK_EQ(hak_text_number("12ab", 10), 12);
    CHECK_EQ(hak_text_number("12abg", 16), 0x12ab);
    CHECK_EQ(hak_text_number("7fff:0", 16), 0x7fff);
    CHECK_EQ(hak_text_number("-1", 10), 0);
}
