/* SPDX-License-Identifier: MIT */
/* tests/unit/learn/site_line_test.c - rules as text: what is read is written again, and nothing
 * else is read. */
#include "learn/site_line.h"

#include "check.h"

#define ACTIVE "site active 128 412 400 app+0x12bb@3f9a0c -\n"
#define MIXED "site mixed 4096 1000 30 libz.so.1+0x0 app+0xfff@1\n"
#define DISTANT "site pinned 64 9 9 libz.so.1+0x0 app+0xfff@1 app+0x8@1\n"

static struct site_line line;

static bool is_written_again(const char *words)
{
    char written[HAK_SITE_LINE_BYTES + 1] = "";
    struct text text = {.start = written, .bytes = HAK_SITE_LINE_BYTES};
    if (hak_site_line_read(&line, words, strlen(words)) != strlen(words))
        return false;
    hak_site_line_write(&text, &line);
    return strcmp(written, words) == 0;
}

TEST(a_place_without_a_module_does_not_last)
{
    const struct site_line lasting = {.places = {{"m", 1, 0}, {"n", 2, 0}}};
    CHECK(hak_site_line_lasts(&lasting));
    for (uint32_t i = 0; i < HAK_SITE_FRAMES; i++) {
        struct site_line other = lasting;
        other.places[i] = (struct site_place){"?", 3, 0};
        CHECK(!hak_site_line_lasts(&other));
    }
}

TEST(a_line_is_written_as_it_was_read)
{
    CHECK(is_written_again(MIXED));
    CHECK_EQ(line.state, RULE_MIXED);
    CHECK_EQ(line.places[1].build_id, 1);
    CHECK(line.places[2].module[0] == '\0');
    CHECK(is_written_again(DISTANT));
    CHECK_EQ(line.places[1].offset, 0xfff);
    CHECK(strcmp(line.places[2].module, "app") == 0);
    CHECK_EQ(line.places[2].offset, 8);
    CHECK(is_written_again(ACTIVE));
    CHECK_EQ(line.state, RULE_ACTIVE);
    CHECK_EQ(line.block_bytes, 128);
    CHECK_EQ(line.judged, 412);
    CHECK_EQ(line.survivors, 400);
    CHECK(strcmp(line.places[0].module, "app") == 0);
    CHECK_EQ(line.places[0].offset, 0x12bb);
    CHECK_EQ(line.places[0].build_id, 0x3f9a0c);
    CHECK(line.places[1].module[0] == '\0');
    CHECK_EQ(hak_site_line_read(&line, ACTIVE MIXED, strlen(ACTIVE MIXED)), strlen(ACTIVE));
}

TEST(malformed_lines_are_not_read)
{
    static const char *const wrong[] = {
        "",
        "site\n",
        "sites active 128 1 1 app+0x1 -\n",
        "site lively 128 1 1 app+0x1 -\n",
        "site active 128 1 2 app+0x1 -\n",
        "site active 4097 1 1 app+0x1 -\n",
        "site active 0128 1 1 app+0x1 -\n",
        "site active 128 1 1 app+0x01 -\n",
        "site active 128 1 1 app+0x1@0 -\n",
        "site active 128 1 1 - -\n",
        "site active 128 1 1 app+0X1 -\n",
        "site active 128 1 1 app+0x1 \n",
        "site active 128 1 1 app+0x1 -",
        "site active 128  1 1 app+0x1 -\n",
        "site active 128 1 1 app+0x1000000000000 -\n",
        "site active 128 1 1 a b+0x1 -\n",
        "site active 128 1 1 app+0xA -\n",
        "site active 128 1 1 app+0x1@11111111111111111 -\n",
        "site active 128 1 1 app+0x1 - -\n",
        "site active 128 1 1 app+0x1 - app+0x2\n",
        "site active 128 1 1 app+0x1 app+0x2 -\n",
        "site active 128 1 1 app+0x1 app+0x2 \n",
        "site active 128 1 1 app+0x1 app+0x2 app+0x3 \n",
        "site active 128 1 1 app+0x1 app+0x2 app+0x3 app+0x4\n",
        "site active 128 1 1 app+0x1 app+0x2  app+0x3\n",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK_EQ(hak_site_line_read(&line, wrong[i], strlen(wrong[i])), 0);
    for (size_t bytes = 0; bytes < strlen(MIXED); bytes++)
        CHECK_EQ(hak_site_line_read(&line, MIXED, bytes), 0);
    for (size_t bytes = 0; bytes < strlen(DISTANT); bytes++)
        CHECK_EQ(hak_site_line_read(&line, DISTANT, bytes), 0);
}

TEST(the_longest_line_fits)
{
    struct site_line longest = {.state = RULE_FORBIDDEN,
                                .block_bytes = 4096,
                                .judged = HAK_SITE_COUNT_MOST,
                                .survivors = HAK_SITE_COUNT_MOST};
    struct site_place *place = &longest.places[0];
    hak_site_module_name(place->module,
                         "/a/very/long/name-of-a-library-that-nobody-wants-to-read-twice.so");
    CHECK_EQ(strlen(place->module), HAK_SITE_MODULE_BYTES - 1);
    place->offset = HAK_SITE_OFFSET_MOST;
    place->build_id = UINT64_MAX;
    longest.places[1] = longest.places[2] = *place;
    char written[HAK_SITE_LINE_BYTES + 1] = "";
    struct text text = {.start = written, .bytes = HAK_SITE_LINE_BYTES};
    hak_site_line_write(&text, &longest);
    CHECK(text.used < HAK_SITE_LINE_BYTES);
    CHECK(is_written_again(written));
}

TEST(names_of_modules_are_words)
{
    char name[HAK_SITE_MODULE_BYTES];
    hak_site_module_name(name, "/opt/my app+x@2/the app+1@2");
    CHECK(strcmp(name, "the?app?1?2") == 0);
    hak_site_module_name(name, "/");
    CHECK(strcmp(name, "?") == 0);
    hak_site_module_name(name, "-");
    CHECK(strcmp(name, "?") == 0);
}

TEST(a_place_is_read_with_and_without_its_build)
{
    struct site_place place;
    CHECK(hak_site_place_read(&place, "app+0x12bb"));
    CHECK_EQ(place.offset, 0x12bb);
    CHECK_EQ(place.build_id, 0);
    CHECK(hak_site_place_read(&place, "app+0x12bb@3f"));
    CHECK_EQ(place.build_id, 0x3f);
    CHECK(!hak_site_place_read(&place, "app+0x12bb x"));
    CHECK(!hak_site_place_read(&place, "app"));
}

TEST(a_site_of_another_build_is_another_site)
{
    struct site_line one, other;
    hak_site_line_read(&one, ACTIVE, strlen(ACTIVE));
    other = one;
    other.state = RULE_RETIRED;
    CHECK(hak_site_line_is_same(&one, &other));
    other.places[0].build_id++;
    CHECK(!hak_site_line_is_same(&one, &other));
    other.places[0].build_id = 0;
    CHECK(hak_site_line_is_same(&one, &other));
    other.block_bytes = 64;
    CHECK(!hak_site_line_is_same(&one, &other));
}

TEST(a_site_is_above_its_wrappers_and_nothing_else)
{
    struct site_line distant, caller, wrapper, other;
    hak_site_line_read(&distant, DISTANT, strlen(DISTANT));
    caller = wrapper = distant;
    memset(&caller.places[2], 0, sizeof caller.places[2]);
    memset(&wrapper.places[1], 0, 2 * sizeof wrapper.places[1]);
    CHECK(hak_site_line_is_above(&distant, &caller));
    CHECK(hak_site_line_is_above(&distant, &wrapper));
    CHECK(hak_site_line_is_above(&caller, &wrapper));
    CHECK(!hak_site_line_is_above(&caller, &distant));
    CHECK(!hak_site_line_is_above(&wrapper, &caller));
    CHECK(!hak_site_line_is_above(&wrapper, &wrapper));
    CHECK(!hak_site_line_is_above(&distant, &distant));
    other = caller;
    other.block_bytes = 128;
    CHECK(!hak_site_line_is_above(&distant, &other));
    other = caller;
    other.places[1].offset++;
    CHECK(!hak_site_line_is_above(&distant, &other));
    CHECK(!hak_site_line_is_same(&caller, &distant));
}
