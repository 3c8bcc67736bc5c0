/* SPDX-License-Identifier: MIT */
/* tests/unit/conf/conf_value_test.c - what values look like: sets, counts, switches, and what any
 * bytes at all are taken for. */
#include "check.h"
#include "conf/conf_value.h"

static const struct conf_row fruits = {
    .name = "fruits", .kind = CONF_KIND_SET, .most = 15, .choices = "apple|fig|date|on_vine"};
static const struct conf_row dozen = {
    .name = "dozen", .kind = CONF_KIND_COUNT, .least = 2, .most = 12, .choices = ""};
static const struct conf_row lamp = {
    .name = "lamp", .kind = CONF_KIND_CHOICE, .most = 2, .choices = "off|dim|on"};
static const struct conf_row print = {
    .name = "print", .kind = CONF_KIND_CHOICE, .most = 2, .choices = "off|text|json"};

/* The number that a value is read as; -1: it is refused. */
static int64_t reads(const struct conf_row *row, const char *value)
{
    int64_t number;
    return hak_conf_parse(row, value, strlen(value), &number) ? number : -1;
}

static const char *shows(const struct conf_row *row, int64_t number)
{
    static char line[256];
    struct text text = {.start = line, .bytes = sizeof line - 1};
    hak_conf_add_value(&text, row, number, "");
    line[text.used] = '\0';
    return line;
}

static const char *accepts(const struct conf_row *row)
{
    static char line[256];
    struct text text = {.start = line, .bytes = sizeof line - 1};
    hak_conf_add_range(&text, row);
    line[text.used] = '\0';
    return line;
}

TEST(a_set_has_a_bit_for_each_word)
{
    CHECK_EQ(reads(&fruits, "apple"), 1);
    CHECK_EQ(reads(&fruits, "date+apple"), 5);
    CHECK_EQ(reads(&fruits, "on_vine+fig+fig"), 10);
    CHECK_EQ(reads(&fruits, "apple+fig+date+on_vine"), 15);
}

TEST(a_set_may_be_all_or_none)
{
    static const char *const all[] = {"all", "1", "on", "yes"};
    static const char *const none[] = {"none", "0", "off", "no"};
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(reads(&fruits, all[i]), 15);
        CHECK_EQ(reads(&fruits, none[i]), 0);
    }
}

TEST(a_set_is_refused_whole_for_one_wrong_word)
{
    static const char *const wrong[] = {"",        "+",      "apple+",    "+apple",    "apple++fig",
                                        "appl",    "apples", "apple fig", "apple|fig", "apple+none",
                                        "all+fig", "APPLE",  "2",         "-1",        "apple,fig"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK_EQ(reads(&fruits, wrong[i]), -1);
}

TEST(a_set_is_shown_as_it_can_be_given)
{
    CHECK_STR(shows(&fruits, 0), "none");
    CHECK_STR(shows(&fruits, 15), "all");
    for (int64_t mask = 0; mask <= 15; mask++)
        CHECK_EQ(reads(&fruits, shows(&fruits, mask)), mask);
    CHECK_STR(accepts(&fruits),
              "none, all, or words with + between them of apple|fig|date|on_vine");
}

TEST(a_count_is_a_plain_number)
{
    CHECK_EQ(reads(&dozen, "2"), 2);
    CHECK_EQ(reads(&dozen, "12"), 12);
    static const char *const wrong[] = {"",   "1",  "13",  "3K",    "-3",
                                        "3 ", "+3", "0x3", "never", "99999999999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK_EQ(reads(&dozen, wrong[i]), -1);
    CHECK_STR(shows(&dozen, 7), "7");
    CHECK_STR(accepts(&dozen), "2 to 12");
}

TEST(yes_is_the_word_on_where_a_choice_has_it)
{
    CHECK_EQ(reads(&lamp, "on"), 2);
    CHECK_EQ(reads(&lamp, "yes"), 2);
    CHECK_EQ(reads(&lamp, "1"), 2);
    CHECK_EQ(reads(&lamp, "no"), 0);
    CHECK_EQ(reads(&print, "1"), 1);
    CHECK_EQ(reads(&print, "yes"), 1);
    CHECK_EQ(reads(&print, "0"), 0);
    CHECK_EQ(reads(&print, ""), -1);
}

TEST(every_option_shows_its_default_as_it_can_be_given)
{
    for (int i = 0; i < CONF_COUNT; i++) {
        const struct conf_row *row = &hak_conf_rows[i];
        if (row->kind == CONF_KIND_TEXT)
            continue;
        CHECK_EQ(reads(row, shows(row, row->initial)), row->initial);
        CHECK_EQ(reads(row, shows(row, row->least)), row->least);
        CHECK_EQ(reads(row, shows(row, row->most)), row->most);
    }
}

TEST(the_most_of_a_set_is_all_its_words_and_of_a_choice_its_last)
{
    for (int i = 0; i < CONF_COUNT; i++) {
        const struct conf_row *row = &hak_conf_rows[i];
        int64_t words = *row->choices == '\0' ? 0 : 1;
        for (const char *at = row->choices; *at != '\0'; at++)
            words += *at == '|';
        if (row->kind == CONF_KIND_SET)
            CHECK_EQ(row->most, ((int64_t)1 << words) - 1);
        else if (row->kind == CONF_KIND_CHOICE)
            CHECK_EQ(row->most, words - 1);
        else if (row->kind != CONF_KIND_TEXT)
            CHECK_EQ(words, 0);
    }
}

TEST(a_text_with_a_zero_in_it_is_refused)
{
    int64_t number;
    CHECK(hak_conf_parse(&hak_conf_rows[CONF_stats_file], "abc", 3, &number));
    CHECK(!hak_conf_parse(&hak_conf_rows[CONF_stats_file], "a\0c", 3, &number));
}

TEST(a_fence_names_blocks_or_is_refused)
{
    static const char *const right[] = {"",        "none", "all", "48",          "0",
                                        "16..64K", "4..4", "1T",  "server+0x1f", "/a b+c+0x0"};
    static const char *const wrong[] = {"some", "alle",  "32..16", "10..",  "..10", "..",   "2T",
                                        "-1",   "+0x10", "a+0x",   "a+0xG", "a+10", "none "};
    for (size_t i = 0; i < sizeof right / sizeof *right; i++)
        CHECK_EQ(reads(&hak_conf_rows[CONF_fence], right[i]), 0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK_EQ(reads(&hak_conf_rows[CONF_fence], wrong[i]), -1);
    CHECK_STR(accepts(&hak_conf_rows[CONF_fence]),
              "none, all, a size, SIZE..SIZE (units K, M, G, T), or FILE+0xOFFSET of a call");
}

TEST(a_fence_is_read_up_to_its_end)
{
    struct conf_fence fence;
    CHECK(hak_conf_parse_fence("16..640", 6, &fence));
    CHECK_EQ(fence.bytes_least, 16);
    CHECK_EQ(fence.bytes_most, 64);
    CHECK(!hak_conf_parse_fence("16..640", 4, &fence));
    CHECK(!hak_conf_parse_fence("none", 4, &fence));
    CHECK(hak_conf_parse_fence("a+0x12 ", 6, &fence));
    CHECK(fence.is_call);
}

TEST(a_signal_that_cannot_be_had_is_refused)
{
    static const char *const right[] = {"", "USR2", "SIGUSR2", "12", "64", "SIGVTALRM"};
    static const char *const wrong[] = {"KILL", "9", "65", "USR3", "SIG", "SIGVTALRMSIGVTALRM"};
    for (size_t i = 0; i < sizeof right / sizeof *right; i++)
        CHECK_EQ(reads(&hak_conf_rows[CONF_stats_signal], right[i]), 0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK_EQ(reads(&hak_conf_rows[CONF_stats_signal], wrong[i]), -1);
}

/* What is accepted is in range, whatever the bytes; nothing is read past their end. */
TEST(any_bytes_are_refused_or_in_range)
{
    static const char letters[] = "0123456789+-kKmMgGtTs|onyesffallne,: \x80\xff";
    uint64_t state = 88172645463325252u;
    uint32_t right_count = 0;
    for (int round = 0; round < 200000; round++) {
        char value[24];
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        size_t bytes = state % (sizeof value - 1);
        for (size_t i = 0; i < bytes; i++)
            value[i] = letters[(state >> (i * 2 + 3)) % sizeof letters];
        const struct conf_row *row = &hak_conf_rows[state / 7 % CONF_COUNT];
        int64_t number = 0, other = 0;
        value[bytes] = '7'; /* a digit, for what reads too far */
        bool is_right = hak_conf_parse(row, value, bytes, &number);
        value[bytes] = '\0';
        CHECK_EQ(hak_conf_parse(row, value, bytes, &other), is_right);
        if (!is_right)
            continue;
        CHECK_EQ(other, number);
        CHECK(number >= row->least);
        CHECK(number <= row->most);
        right_count++;
    }
    CHECK(right_count > 0);
}

TEST(a_distance_counts_letters_that_are_changed_removed_or_added)
{
    CHECK_EQ(hak_conf_distance("decay", 5, "decay"), 0);
    CHECK_EQ(hak_conf_distance("DECAY", 5, "decay"), 0);
    CHECK_EQ(hak_conf_distance("dekay", 5, "decay"), 1);
    CHECK_EQ(hak_conf_distance("stauts", 6, "stats"), 1);
    CHECK_EQ(hak_conf_distance("deca", 4, "decay"), 1);
    CHECK_EQ(hak_conf_distance("", 0, "top"), 3);
}
