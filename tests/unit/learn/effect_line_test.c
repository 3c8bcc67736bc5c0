/* SPDX-License-Identifier: MIT */
/* tests/unit/learn/effect_line_test.c - what rules change, as text: what is read is written again,
 * and nothing else is read. */
#include "learn/effect_line.h"

#include "check.h"

#include <string.h>

#define MEASURED "effect 128 40000 8000 32500 26000\n"
#define LONGEST "effect 4096 1000000000000 1000000000000 1000000000000 1000000000000\n"

static struct effect_line line;

static bool is_written_again(const char *words)
{
    char written[HAK_EFFECT_LINE_BYTES + 1] = "";
    struct text text = {.start = written, .bytes = HAK_EFFECT_LINE_BYTES};
    if (hak_effect_line_read(&line, words, strlen(words)) != strlen(words))
        return false;
    hak_effect_line_write(&text, &line);
    return strcmp(written, words) == 0;
}

TEST(a_line_is_written_as_it_was_read)
{
    double share;
    CHECK(is_written_again(LONGEST));
    CHECK(is_written_again("effect 8 0 0 0 0\n"));
    CHECK(!hak_effect_share(&line.effect, &share));
    CHECK(is_written_again(MEASURED));
    CHECK_EQ(line.block_bytes, 128);
    CHECK(hak_effect_share(&line.effect, &share));
    CHECK(share > 0.599 && share < 0.601);
    CHECK_EQ(hak_effect_line_read(&line, MEASURED LONGEST, strlen(MEASURED LONGEST)),
             strlen(MEASURED));
}

TEST(sums_that_forget_are_kept_to_a_thousandth)
{
    struct effect_line seen = {.block_bytes = 64, .effect = {{40, 33}, {9.5, 21}}}, read;
    char written[HAK_EFFECT_LINE_BYTES];
    struct text text = {.start = written, .bytes = sizeof written};
    double before, after;
    for (int i = 0; i < 3; i++)
        hak_effect_forget(&seen.effect, 0.999);
    hak_effect_line_write(&text, &seen);
    CHECK_EQ(hak_effect_line_read(&read, written, text.used), text.used);
    CHECK(hak_effect_share(&seen.effect, &before) && hak_effect_share(&read.effect, &after));
    CHECK(before - after < 0.001 && after - before < 0.001);
}

TEST(malformed_lines_are_not_read)
{
    static const char *const wrong[] = {
        "",
        "effect\n",
        "effects 128 1 1 1 1\n",
        "effect 4097 1 1 1 1\n",
        "effect 128 1 1 1\n",
        "effect 128 1 1 1 1 1\n",
        "effect 128 1 2 1 1\n",
        "effect 128 1 1 1 2\n",
        "effect 128 01 1 1 1\n",
        "effect 128 1  1 1 1\n",
        "effect 128 1 1 1 1",
        "effect 128 1 1 1 1 \n",
        "effect 128 -1 1 1 1\n",
        "effect 128 1000000000001 1 1 1\n",
        "site active 128 1 1 app+0x1 -\n",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK_EQ(hak_effect_line_read(&line, wrong[i], strlen(wrong[i])), 0);
    for (size_t bytes = 0; bytes < strlen(MEASURED); bytes++)
        CHECK_EQ(hak_effect_line_read(&line, MEASURED, bytes), 0);
}
