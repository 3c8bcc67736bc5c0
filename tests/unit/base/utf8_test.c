/* SPDX-License-Identifier: MIT */
/* tests/unit/base/utf8_test.c - characters are told from bytes that are none. */
#include "../../check.h"

#include "base/utf8.h"

TEST(characters_of_one_to_four_bytes_are_known)
{
    CHECK_EQ(hak_utf8_bytes("a"), 1);
    CHECK_EQ(hak_utf8_bytes("\xc3\xa9"), 2);
    CHECK_EQ(hak_utf8_bytes("\xe2\x82\xac"), 3);
    CHECK_EQ(hak_utf8_bytes("\xf0\x9f\x98\x80"), 4);
}

TEST(cut_overlong_and_reserved_forms_are_no_characters)
{
    static const char *const wrong[] = {
        "\x80",         "\xc3", "\xc0\xaf",         "\xe2\x82",         "\xe0\x80\xaf",
        "\xed\xa0\x80", "\xff", "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK_EQ(hak_utf8_bytes(wrong[i]), 0);
}

TEST(what_is_no_character_is_written_over)
{
    char text[] = "\xf6 \xc3\xb6\xed\xa0\x80 \xe2\x82";
    hak_utf8_mend(text);
    CHECK_EQ(strcmp(text, "? \xc3\xb6??? ??"), 0);
}
