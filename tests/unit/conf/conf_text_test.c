/* SPDX-License-Identifier: MIT */
/* tests/unit/conf/conf_text_test.c - settings in a text: lines of a file, and the packed form. */
#include "check.h"
#include "conf/conf_text.h"

#include <sys/mman.h>

typedef bool next_fn(struct conf_text *text, struct conf_pair *pair);

static char said[4096];

/* All pairs of a text, as `line:name=value;`, with ? where there is no value. */
static const char *read_all(next_fn *next, const char *start, size_t bytes)
{
    struct conf_text text = {.at = start, .end = start + bytes};
    struct conf_pair pair;
    size_t used = 0;
    while (next(&text, &pair)) {
        used += (size_t)snprintf(said + used, sizeof said - used, "%u:%.*s=%.*s;", pair.line,
                                 (int)pair.name_bytes, pair.name,
                                 pair.value != NULL ? (int)pair.value_bytes : 1,
                                 pair.value != NULL ? pair.value : "?");
    }
    said[used] = '\0';
    return said;
}

static const char *lines(const char *text)
{
    return read_all(hak_conf_next_line, text, strlen(text));
}

static const char *packed(const char *text)
{
    return read_all(hak_conf_next_packed, text, strlen(text));
}

TEST(a_file_has_one_setting_a_line)
{
    CHECK_STR(lines("decay = 1s\nretain=2M\n"), "1:decay=1s;2:retain=2M;");
    CHECK_STR(lines("decay = 1s"), "1:decay=1s;");
    CHECK_STR(lines(""), "");
    CHECK_STR(lines("\n\n \t\n\r\n"), "");
}

TEST(white_space_around_names_and_values_is_nothing)
{
    CHECK_STR(lines(" \tdecay\t =\t 1s \t\r\n"), "1:decay=1s;");
    CHECK_STR(lines("stats_file = /a b\n"), "1:stats_file=/a b;");
    CHECK_STR(lines("stats_file =\n"), "1:stats_file=;");
    CHECK_STR(lines("stats_file =   \n"), "1:stats_file=;");
}

TEST(a_comment_begins_a_line_or_follows_white_space)
{
    CHECK_STR(lines("# decay = 1s\n  # more\ndecay = 2s # two\n"), "3:decay=2s;");
    CHECK_STR(lines("stats_file = /a#b\n"), "1:stats_file=/a#b;");
    CHECK_STR(lines("decay = # nothing\n"), "1:decay=;");
    CHECK_STR(lines("#"), "");
}

TEST(a_missing_value_is_distinguished_from_an_empty_one)
{
    CHECK_STR(lines("decay\nretain 5\n= 5\n"), "1:decay=?;2:retain 5=?;3:=5;");
    CHECK_STR(lines("a = b = c\n"), "1:a=b = c;");
}

TEST(the_packed_form_is_split_at_commas_and_the_first_colon_or_equals_sign)
{
    CHECK_STR(packed("decay:1s,stats_file:/a:b=c"), "0:decay=1s;0:stats_file=/a:b=c;");
    CHECK_STR(packed("decay=1s,stats_file=/a:b=c"), "0:decay=1s;0:stats_file=/a:b=c;");
    CHECK_STR(packed(",,decay:,retain,:5,=,"), "0:decay=;0:retain=?;0:=5;0:=;");
    CHECK_STR(packed(""), "");
    CHECK_STR(packed(" decay = 1 , retain\t:\t5 , ,"), "0:decay=1;0:retain=5;");
}

TEST(a_line_may_have_a_colon_instead_of_the_equals_sign)
{
    CHECK_STR(lines("decay: 1s\nstats_file : /a=b\nmode:\n"),
              "1:decay=1s;2:stats_file=/a=b;3:mode=;");
    CHECK_STR(lines("stats_file = /a:b"), "1:stats_file=/a:b;");
}

/* A page that ends at one that may not be read. */
static char *edge(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *start = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(start != MAP_FAILED && mprotect(start + page, page, PROT_NONE) == 0);
    return start + page - bytes;
}

/* Every pair lies inside its text, whatever the bytes, and every text comes to an end. */
static void walk(next_fn *next, const char *start, size_t bytes)
{
    struct conf_text text = {.at = start, .end = start + bytes};
    struct conf_pair pair;
    size_t pairs = 0;
    while (next(&text, &pair)) {
        CHECK(++pairs <= bytes);
        CHECK(pair.name >= start && pair.name + pair.name_bytes <= start + bytes);
        if (pair.value != NULL)
            CHECK(pair.value >= start && pair.value + pair.value_bytes <= start + bytes);
    }
    CHECK(text.at == text.end);
}

TEST(any_bytes_are_read_to_their_end_and_no_further)
{
    static const char letters[] = "\n\n=#: ,\t\rab\x00\xff";
    uint64_t state = 88172645463325252u;
    for (size_t bytes = 0; bytes < 40; bytes++) {
        char *start = edge(bytes);
        for (int round = 0; round < 500; round++) {
            for (size_t i = 0; i < bytes; i++) {
                state ^= state << 13, state ^= state >> 7, state ^= state << 17;
                start[i] = letters[state % (sizeof letters - 1)];
            }
            walk(hak_conf_next_line, start, bytes);
            walk(hak_conf_next_packed, start, bytes);
        }
    }
}
