/* SPDX-License-Identifier: MIT */
/* tests/unit/conf/conf_test.c - options: kinds, units, ranges, sources and what is said about
 * them. */
#include "check.h"
#include "conf/conf.h"

static bool set(const char *name, const char *value)
{
    return hak_conf_set(name, strlen(name), value, strlen(value), CONF_VARIABLE);
}

TEST(bytes_have_units_of_1024)
{
    CHECK(set("retain", "123"));
    CHECK_EQ(hak_conf_number(retain), 123);
    CHECK(set("retain", "3K"));
    CHECK_EQ(hak_conf_number(retain), 3 << 10);
    CHECK(set("retain", "5m"));
    CHECK_EQ(hak_conf_number(retain), 5 << 20);
    CHECK(set("retain", "2G"));
    CHECK_EQ(hak_conf_number(retain), (int64_t)2 << 30);
    CHECK(set("retain", "1T"));
    CHECK_EQ(hak_conf_number(retain), (int64_t)1 << 40);
    CHECK_EQ(hak_conf.source[CONF_retain], CONF_VARIABLE);
}

TEST(times_are_milliseconds_unless_a_unit_says_otherwise)
{
    CHECK(set("decay", "70"));
    CHECK_EQ(hak_conf_number(decay), 70);
    CHECK(set("decay", "80ms"));
    CHECK_EQ(hak_conf_number(decay), 80);
    CHECK(set("decay", "3s"));
    CHECK_EQ(hak_conf_number(decay), 3000);
    CHECK(set("decay", "0"));
    CHECK_EQ(hak_conf_number(decay), 0);
    CHECK(set("decay", "-1"));
    CHECK_EQ(hak_conf_number(decay), HAK_CONF_NEVER_MS);
    CHECK(set("decay", "5"));
    CHECK(set("decay", "never"));
    CHECK_EQ(hak_conf_number(decay), HAK_CONF_NEVER_MS);
}

TEST(a_choice_is_one_of_its_words)
{
    CHECK(set("foreign", "forward"));
    CHECK_EQ(hak_conf_number(foreign), FOREIGN_FORWARD);
    CHECK(set("foreign", "abort"));
    CHECK_EQ(hak_conf_number(foreign), FOREIGN_ABORT);
    CHECK(set("foreign", "ignore"));
    CHECK_EQ(hak_conf_number(foreign), FOREIGN_IGNORE);
    CHECK(!set("foreign", "for"));
    CHECK(!set("foreign", "forwards"));
    CHECK(!set("foreign", "1"));
    CHECK(!set("foreign", "ignore|forward"));
    CHECK_EQ(hak_conf_number(foreign), FOREIGN_IGNORE);
}

TEST(a_switch_is_also_set_by_numbers_and_words_of_assent)
{
    static const char *const on[] = {"1", "on", "yes", "text"}, *const off[] = {"0", "no", "off"};
    for (int i = 0; i < 4; i++) {
        CHECK(set("stats", on[i]));
        CHECK_EQ(hak_conf_number(stats), STATS_TEXT);
        CHECK(set("stats", off[i % 3]));
        CHECK_EQ(hak_conf_number(stats), STATS_OFF);
    }
    CHECK(!set("stats", "2"));
    CHECK(!set("stats", ""));
}

TEST(a_text_is_kept_as_it_is)
{
    CHECK(set("stats_file", "/tmp/a b:c"));
    CHECK_STR(hak_conf_text(stats_file), "/tmp/a b:c");
    CHECK(set("stats_file", "x"));
    CHECK_STR(hak_conf_text(stats_file), "x");
    CHECK(set("stats_file", ""));
    CHECK_STR(hak_conf_text(stats_file), "");
}

TEST(a_text_may_have_255_characters)
{
    char value[300];
    memset(value, 'a', sizeof value);
    CHECK(hak_conf_set("stats_file", 10, value, 255, CONF_VARIABLE));
    CHECK_EQ(strlen(hak_conf_text(stats_file)), 255);
    CHECK(!hak_conf_set("stats_file", 10, value, 256, CONF_VARIABLE));
    CHECK_EQ(strlen(hak_conf_text(stats_file)), 255);
}

TEST(a_value_that_is_no_number_changes_nothing)
{
    static const char *const wrong[] = {"",
                                        "x",
                                        "K",
                                        "-5",
                                        "1 ",
                                        " 1",
                                        "1KB",
                                        "1.5M",
                                        "0x10",
                                        "1e3",
                                        "99999999999999999999",
                                        "9223372036854775807K"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK(!set("retain", wrong[i]));
        CHECK_EQ(hak_conf_number(retain), 16 * HAK_MIB);
        CHECK_EQ(hak_conf.source[CONF_retain], CONF_BUILT_IN);
    }
    CHECK(!set("decay", "5m"));
    CHECK(!set("decay", "-2"));
    CHECK(!set("decay", "9223372036854775807s"));
    CHECK_EQ(hak_conf_number(decay), 125);
}

TEST(a_value_out_of_range_changes_nothing)
{
    CHECK(!set("thread_cache", "63K"));
    CHECK(!set("thread_cache", "65535"));
    CHECK(!set("thread_cache", "257M"));
    CHECK(!set("thread_cache", "268435457"));
    CHECK_EQ(hak_conf_number(thread_cache), 8 * HAK_MIB);
    CHECK(set("thread_cache", "64K"));
    CHECK(set("thread_cache", "256M"));
}

TEST(a_bad_value_is_reported_in_one_line_with_the_accepted_range)
{
    CHECK_SAYS(set("THREAD_CACHE", "1"), "hakmem: HAKMEM_THREAD_CACHE: bad value '1',"
                                         " accepted: 64K to 256M (units K, M, G, T)\n");
    CHECK_SAYS(set("retain", "4X"), "accepted: 0 to 1T (units K, M, G, T)\n");
    CHECK_SAYS(set("FOREIGN", "maybe"),
               "hakmem: HAKMEM_FOREIGN: bad value 'maybe', accepted: ignore|forward|abort\n");
    CHECK_SAYS(set("DECAY", "soon"), "hakmem: HAKMEM_DECAY: bad value 'soon',"
                                     " accepted: 0ms to never (units ms, s)\n");
}

TEST(a_bad_value_is_quoted_in_part_and_as_plain_text)
{
    CHECK_SAYS(set("decay", "a\nb\x80"), "bad value 'a?b?', accepted");
    CHECK_SAYS(set("decay", ""), "bad value '', accepted");
    CHECK_SAYS(set("decay", "0123456789012345678901234567890123456789x"),
               "bad value '0123456789012345678901234567890123456789...', accepted");
}

TEST(an_unknown_name_is_reported)
{
    CHECK_SAYS(set("NO_SUCH_OPTION", "1"),
               "hakmem: HAKMEM_NO_SUCH_OPTION: there is no such option\n");
    CHECK_SAYS(set("", "1"), "hakmem: HAKMEM_: there is no such option\n");
    CHECK(!set("deca", "1"));
    CHECK(!set("decay_", "1"));
    CHECK_SAYS_NOTHING(set("decay", "1"));
}

TEST(a_wrong_setting_is_quoted_as_it_was_typed)
{
    CHECK_SAYS(hak_conf_read_packed("decay=soon", CONF_PACKED),
               "hakmem: HAKMEM_CONF: decay: bad value 'soon', accepted");
    CHECK_SAYS(hak_conf_read_packed("Dekay = 2s", CONF_PACKED),
               "hakmem: HAKMEM_CONF: Dekay: there is no");
    CHECK_SAYS(set("decay", "soon"), "hakmem: HAKMEM_decay: bad value 'soon'");
}

TEST(the_nearest_name_is_suggested_where_there_is_one)
{
    CHECK_SAYS(set("DEKAY", "1"), ": there is no such option; the nearest is decay\n");
    CHECK_SAYS(set("threadcache", "1"), "; the nearest is thread_cache\n");
    CHECK_SAYS(set("STATS-FILE", "1"), "; the nearest is stats_file\n");
    CHECK_SAYS(set("limits", "1"), "; the nearest is limit\n");
    CHECK_SAYS(set("colour", "1"), ": there is no such option\n");
    CHECK_SAYS(set("x", "1"), ": there is no such option\n");
}

TEST(a_name_may_be_that_of_its_variable)
{
    hak_conf_read_packed("HAKMEM_DECAY=9ms,hakmem_retain:2M", CONF_PACKED);
    CHECK_EQ(hak_conf_number(decay), 9);
    CHECK_EQ(hak_conf_number(retain), 2 * HAK_MIB);
    CHECK_EQ(hak_conf_find("HAKMEM_"), CONF_COUNT);
    CHECK_EQ(hak_conf_find("HAKMEM"), CONF_COUNT);
}

TEST(a_very_long_name_or_value_is_reported_in_a_short_line)
{
    char name[3000];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    CHECK_SAYS(set(name, name), "hakmem: HAKMEM_nnnn");
    CHECK_SAYS(set("stats_file", name), "accepted: less than 256 characters\n");
}

TEST(names_may_be_given_in_upper_case)
{
    CHECK(set("DECAY", "9"));
    CHECK(set("Thread_Cache", "1M"));
    CHECK_EQ(hak_conf_number(decay), 9);
    CHECK_EQ(hak_conf_number(thread_cache), HAK_MIB);
}

TEST(the_packed_form_sets_several_options)
{
    hak_conf_read_packed("decay:1s,retain:2M,,stats_file:/tmp/x,foreign:abort,", CONF_PACKED);
    CHECK_EQ(hak_conf_number(decay), 1000);
    CHECK_EQ(hak_conf_number(retain), 2 * HAK_MIB);
    CHECK_STR(hak_conf_text(stats_file), "/tmp/x");
    CHECK_EQ(hak_conf_number(foreign), FOREIGN_ABORT);
    CHECK_EQ(hak_conf.source[CONF_decay], CONF_PACKED);
    hak_conf_read_packed("", CONF_PACKED);
    CHECK_SAYS_NOTHING(hak_conf_read_packed(",", CONF_PACKED));
}

TEST(a_wrong_piece_of_the_packed_form_does_not_hide_the_others)
{
    hak_conf_read_packed("decay,retain:lots,:5,thread_cache:1M", CONF_PACKED);
    CHECK_EQ(hak_conf_number(decay), 125);
    CHECK_EQ(hak_conf_number(retain), 16 * HAK_MIB);
    CHECK_EQ(hak_conf_number(thread_cache), HAK_MIB);
    CHECK_SAYS(hak_conf_read_packed("decay,retain:1", CONF_PACKED),
               "hakmem: HAKMEM_CONF: decay: no value given\n");
    CHECK_SAYS(hak_conf_read_packed(":5", CONF_PACKED),
               "hakmem: HAKMEM_CONF: no name given for value '5'\n");
}

static void start_with(const char *packed, const char *decay)
{
    setenv("HAKMEM_CONF", packed, 1);
    setenv("HAKMEM_DECAY", decay, 1);
    hak_conf_start();
}

TEST(a_wrong_variable_leaves_the_value_of_the_packed_form)
{
    CHECK_SAYS(start_with("decay:7", "x"), "hakmem: HAKMEM_DECAY: bad value");
    start_with("decay:7", "x");
    CHECK_EQ(hak_conf_number(decay), 7);
}

TEST(an_empty_variable_is_as_if_it_were_not_set)
{
    setenv("HAKMEM_MODE", "", 1);
    setenv("HAKMEM_STATS_FILE", "", 1);
    CHECK_SAYS_NOTHING(start_with("decay:7,stats_file:/x", ""));
    start_with("decay:7,stats_file:/x", "");
    CHECK_EQ(hak_conf_number(decay), 7);
    CHECK_STR(hak_conf_text(stats_file), ""); /* of a text that is a value */
    setenv("HAKMEM_ABORT_CONF", "1", 1);
    CHECK_EXITS(start_with("", ""), 0);
}

TEST(the_options_can_be_shown_with_their_sources)
{
    setenv("HAKMEM_SHOW_CONF", "1", 1);
    CHECK_SAYS(start_with("foreign:forward", "-1"), "hakmem: decay=-1 (environment)\n");
    CHECK_SAYS(start_with("foreign:forward", "5"), "hakmem: foreign=forward (HAKMEM_CONF)\n");
    CHECK_SAYS(start_with("", "5"), "hakmem: retain=16777216 (built-in)\n");
    CHECK_SAYS(start_with("stats_file:/x", "5"), "hakmem: stats_file=/x (HAKMEM_CONF)\n");
    static const char *const more[] = {"on", "yes"}, *const less[] = {"0", "no", "off", "maybe"};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        setenv("HAKMEM_SHOW_CONF", more[i], 1);
        CHECK_SAYS(start_with("", "5"), "hakmem: retain=16777216 (built-in)\n");
    }
    for (size_t i = 0; i < sizeof less / sizeof *less; i++) {
        setenv("HAKMEM_SHOW_CONF", less[i], 1);
        CHECK_SAYS_NOTHING(start_with("", "5"));
    }
}

TEST(a_wrong_setting_aborts_if_that_is_asked_for)
{
    setenv("HAKMEM_ABORT_CONF", "1", 1);
    CHECK_ABORTS(start_with("", "x"), "hakmem: HAKMEM_DECAY: bad value");
    CHECK_ABORTS(start_with("what:5", "1"), "hakmem: HAKMEM_CONF: what: there is no");
    CHECK_EXITS(start_with("", "5"), 0);
}

TEST(every_value_starts_within_its_range)
{
#define X(name, kind, initial, least, most, choices, meaning)                                      \
    CHECK_EQ(hak_conf_number(name), (int64_t)(initial));                                           \
    CHECK(hak_conf_number(name) >= (int64_t)(least) && hak_conf_number(name) <= (int64_t)(most));  \
    CHECK_EQ(hak_conf.source[CONF_##name], CONF_BUILT_IN);
    HAK_CONF_TABLE(X)
#undef X
}
