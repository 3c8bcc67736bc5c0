/* SPDX-License-Identifier: MIT */
#include "learn/match_line.h"

#include "base/bits.h"
#include "learn/line_reader.h"
#include "learn/rating.h"

#define FIRST_WORD "match "
#define RATING_MOST 9999u
#define ONE 1000u

const struct match_knob hak_match_knobs[KNOB_COUNT] = {
#define X(row, count, usual, second, third, fourth, what)                                          \
    {#row, what, count, {usual, second, third, fourth}},
    HAK_KNOB_TABLE(X)
#undef X
};
#define X(row, count, usual, second, third, fourth, what) +(count) - 1
hak_static_assert(0 HAK_KNOB_TABLE(X) <= HAK_MATCH_LINES_MOST, "a program has room for its lines");
#undef X

/* A number, and the character behind it. */
static uint32_t read_number(struct line_reader *reader, uint32_t most, const char *behind)
{
    uint32_t number = (uint32_t)hak_line_read_number(reader, 10, most);
    hak_line_read_word(reader, behind);
    return number;
}

static uint32_t read_row(struct line_reader *reader)
{
    for (uint32_t i = 0; i < KNOB_COUNT; i++) {
        struct line_reader ahead = *reader;
        hak_line_read_word(&ahead, hak_match_knobs[i].name);
        hak_line_read_word(&ahead, " ");
        if (ahead.is_right) {
            *reader = ahead;
            return i;
        }
    }
    reader->is_right = false;
    return 0;
}

static bool find_arm(uint32_t knob, uint32_t value, uint32_t *arm)
{
    for (uint32_t i = 1; i < hak_match_knobs[knob].count; i++)
        if (hak_match_knobs[knob].values[i] == value) {
            *arm = i;
            return true;
        }
    return false;
}

size_t hak_match_line_read(struct match_line *line, const char *text, size_t bytes)
{
    struct line_reader reader = {text, text + bytes, true};
    hak_line_read_word(&reader, FIRST_WORD);
    line->knob = read_row(&reader);
    if (!find_arm(line->knob, read_number(&reader, UINT32_MAX / 16, " "), &line->arm))
        return 0;
    line->rating = read_number(&reader, RATING_MOST, " ");
    line->matches = read_number(&reader, HAK_MATCH_COUNT_MOST, " ");
    /* More cannot be won or lost than was played. */
    line->won = read_number(&reader, line->matches, " ");
    line->lost = read_number(&reader, line->matches - line->won, " ");
    line->gain = read_number(&reader, HAK_MATCH_EVIDENCE_MOST, " ");
    line->harm = read_number(&reader, HAK_MATCH_EVIDENCE_MOST, "\n");
    return reader.is_right && line->matches != 0 ? (size_t)(reader.at - text) : 0;
}

void hak_match_line_write(struct text *text, const struct match_line *line)
{
    hak_text_add(text, FIRST_WORD);
    hak_text_add(text, hak_match_knobs[line->knob].name);
    hak_text_add_bounded(text, hak_match_knobs[line->knob].values[line->arm], UINT32_MAX);
    hak_text_add_bounded(text, line->rating, RATING_MOST);
    hak_text_add_bounded(text, line->matches, HAK_MATCH_COUNT_MOST);
    hak_text_add_bounded(text, line->won, HAK_MATCH_COUNT_MOST);
    hak_text_add_bounded(text, line->lost, HAK_MATCH_COUNT_MOST);
    hak_text_add_bounded(text, line->gain, HAK_MATCH_EVIDENCE_MOST);
    hak_text_add_bounded(text, line->harm, HAK_MATCH_EVIDENCE_MOST);
    hak_text_add(text, "\n");
}

/* Halves the logarithm of evidence above the stake; evidence below it stays. */
static uint32_t halve_evidence(uint32_t evidence)
{
    return evidence <= ONE ? evidence : (uint32_t)hak_root((uint64_t)evidence * ONE);
}

bool hak_match_line_halve(struct match_line *line)
{
    line->matches /= 2;
    line->won = line->won / 2;
    line->lost = (uint32_t)hak_least(line->lost / 2, line->matches - line->won);
    line->rating = (line->rating + HAK_RATING_START / ONE) / 2;
    line->gain = halve_evidence(line->gain);
    line->harm = halve_evidence(line->harm);
    return line->matches != 0;
}

static uint32_t times(uint32_t evidence, uint32_t other)
{
    return (uint32_t)hak_least((uint64_t)evidence * other / ONE, HAK_MATCH_EVIDENCE_MOST);
}

/* Runs are independent: evidence of both is their product. */
void hak_match_line_add(struct match_line *line, const struct match_line *other)
{
    line->rating = (line->rating + other->rating) / 2;
    line->matches = (uint32_t)hak_least(line->matches + other->matches, HAK_MATCH_COUNT_MOST);
    line->won = (uint32_t)hak_least(line->won + other->won, line->matches);
    line->lost = (uint32_t)hak_least(line->lost + other->lost, line->matches - line->won);
    line->gain = times(line->gain, other->gain);
    line->harm = times(line->harm, other->harm);
}

static uint32_t evidence_of(const struct wager *wager)
{
    return (uint32_t)hak_least(hak_wager_value(wager) * ONE / HAK_WAGER_ONE,
                               HAK_MATCH_EVIDENCE_MOST);
}

void hak_match_line_from(struct match_line *line, const struct arm *arm)
{
    int32_t points = arm->rating / (int32_t)ONE;
    line->rating = points < 0 ? 0 : (uint32_t)hak_least((uint32_t)points, RATING_MOST);
    line->matches = (uint32_t)hak_least(arm->matches, HAK_MATCH_COUNT_MOST);
    line->won = (uint32_t)hak_least(arm->won, line->matches);
    line->lost = (uint32_t)hak_least(arm->lost, line->matches - line->won);
    line->gain = evidence_of(&arm->gain);
    line->harm = evidence_of(&arm->harm);
}

void hak_match_line_to(const struct match_line *line, struct arm *arm)
{
    arm->rating = (int32_t)(line->rating * ONE);
    arm->matches = line->matches;
    arm->won = line->won;
    arm->lost = line->lost;
    arm->spread = (uint64_t)line->matches * HAK_SPREAD_FIRST; /* as if nothing were known of it */
    hak_wager_begin(&arm->gain, (uint64_t)line->gain * HAK_WAGER_ONE / ONE);
    hak_wager_begin(&arm->harm, (uint64_t)line->harm * HAK_WAGER_ONE / ONE);
}
