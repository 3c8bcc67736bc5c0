/* SPDX-License-Identifier: MIT */
/* tests/unit/learn/match_line_test.c - what matches showed, from run to run. */
#include "learn/match_line.h"

#include "check.h"
#include "learn/rating.h"

static char written[256];

static size_t write_line(const struct match_line *line)
{
    struct text text = {.start = written, .bytes = sizeof written};
    hak_match_line_write(&text, line);
    return text.used;
}

static const struct match_line known = {KNOB_flush_keep_percent, 2, 1544, 40, 30, 4, 90000, 12};

TEST(a_line_is_read_as_it_was_written)
{
    struct match_line line;
    size_t bytes = write_line(&known);
    static const char wanted[] = "match flush_keep_percent 75 1544 40 30 4 90000 12\n";
    CHECK_EQ(bytes, sizeof wanted - 1);
    CHECK(memcmp(written, wanted, bytes) == 0);
    CHECK_EQ(hak_match_line_read(&line, written, bytes), bytes);
    CHECK(memcmp(&line, &known, sizeof line) == 0);
    for (size_t cut = 0; cut < bytes; cut++)
        CHECK_EQ(hak_match_line_read(&line, written, cut), 0);
}

TEST(the_longest_line_fits)
{
    struct match_line line = {.rating = UINT32_MAX, .gain = UINT32_MAX, .harm = UINT32_MAX};
    line.matches = line.won = line.lost = UINT32_MAX;
    for (line.knob = 0; line.knob < KNOB_COUNT; line.knob++)
        for (line.arm = 0; line.arm < HAK_ARMS_MOST; line.arm++)
            CHECK(write_line(&line) <= HAK_MATCH_LINE_BYTES);
}

TEST(malformed_lines_are_refused)
{
    static const char *const wrong[] = {
        "match flush_keep_percent 50 1500 4 2 1 1000 1000\n", /* the usual value */
        "match flush_keep_percent 74 1500 4 2 1 1000 1000\n",
        "match flush_keep 75 1500 4 2 1 1000 1000\n",
        "match flush_keep_percent 75 1500 4 3 2 1000 1000\n", /* more won and lost than played */
        "match flush_keep_percent 75 1500 0 0 0 1000 1000\n",
        "match flush_keep_percent 75 01500 4 2 1 1000 1000\n",
        "match flush_keep_percent 75 1500 4 2 1 1000 1000 \n",
        "match flush_keep_percent 75 1500 4 2 1 10000000 1000\n",
        "match flush_keep_percent 75 1500 4 2 1 1000\n",
        "match  flush_keep_percent 75 1500 4 2 1 1000 1000\n",
        "matches flush_keep_percent 75 1500 4 2 1 1000 1000\n",
    };
    struct match_line line;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK_EQ(hak_match_line_read(&line, wrong[i], strlen(wrong[i])), 0);
}

TEST(half_of_evidence_is_its_root_and_losses_stay)
{
    struct match_line line = known;
    CHECK(hak_match_line_halve(&line));
    CHECK_EQ(line.matches, 20);
    CHECK_EQ(line.gain, 9486); /* 90 to 1: 9.48 to 1 */
    CHECK_EQ(line.harm, 12);
    CHECK_EQ(line.rating, 1522);
    line.matches = 1;
    CHECK(!hak_match_line_halve(&line));
}

TEST(independent_runs_multiply_their_evidence)
{
    struct match_line line = known;
    hak_match_line_add(&line, &(struct match_line){0, 2, 1500, 10, 4, 4, 500, 2000});
    CHECK_EQ(line.matches, 50);
    CHECK_EQ(line.won, 34);
    CHECK_EQ(line.gain, 45000);
    CHECK_EQ(line.harm, 24);
    hak_match_line_add(&line, &(struct match_line){0, 2, 1500, 9999, 9999, 0, 9999999, 9999999});
    CHECK_EQ(line.matches, HAK_MATCH_COUNT_MOST);
    CHECK(line.won + line.lost <= line.matches);
    CHECK_EQ(line.gain, HAK_MATCH_EVIDENCE_MOST);
}

TEST(a_value_goes_on_where_it_was)
{
    struct arm arm = {.rating = 0}, again = {.rating = 0};
    struct match_line line = known, after = known;
    hak_match_line_to(&known, &arm);
    hak_match_line_from(&line, &arm);
    CHECK_EQ(line.matches, known.matches);
    CHECK_EQ(line.rating, known.rating);
    CHECK(line.gain <= known.gain && line.gain >= known.gain - 1);
    hak_match_line_to(&line, &again);
    hak_match_line_from(&after, &again);
    CHECK(after.gain <= line.gain); /* rounding gives nothing away */
    CHECK_EQ(arm.spread, (uint64_t)known.matches * HAK_SPREAD_FIRST);
}
