/* SPDX-License-Identifier: MIT */
/* tests/unit/learn/learned_user_test.c - what the user says of a site while the program runs, to
 * the file or to the program. If this fails, a ban that was put into the file is lost when the
 * program ends, or comes back after it was lifted. */
#include "learn/learned_user.h"

#include "check.h"

#include <string.h>

static struct learned_program before, mine, now;

static struct site_line line_of(const char *text)
{
    struct site_line line;
    CHECK_EQ(hak_site_line_read(&line, text, strlen(text)), strlen(text));
    return line;
}

static void put(struct learned_program *program, const char *text)
{
    struct site_line line = line_of(text);
    CHECK(hak_learned_put_site(program, &line));
}

/* The states of the only site as they were read, as the program has it, and as the file has it
 * now; returns what is kept. */
static enum rule_state kept(enum rule_state read, enum rule_state has, enum rule_state told)
{
    struct site_line line = line_of("site watched 128 40 30 alpha+0x12@5 -\n");
    struct learned_program *programs[] = {&before, &mine, &now};
    enum rule_state states[] = {read, has, told};
    for (int i = 0; i < 3; i++) {
        line.state = states[i];
        programs[i]->site_count = 0;
        CHECK(hak_learned_put_site(programs[i], &line));
    }
    hak_learned_heed(&mine, &before, &now);
    CHECK_EQ(mine.site_count, 1);
    return mine.sites[0].state;
}

TEST(what_the_file_was_told_meanwhile_is_kept)
{
    CHECK_EQ(kept(RULE_WATCHED, RULE_CANDIDATE, RULE_FORBIDDEN), RULE_FORBIDDEN);
    CHECK_EQ(kept(RULE_ACTIVE, RULE_ACTIVE, RULE_PINNED), RULE_PINNED);
    CHECK_EQ(kept(RULE_PINNED, RULE_PINNED, RULE_FORBIDDEN), RULE_FORBIDDEN);
    CHECK_EQ(kept(RULE_FORBIDDEN, RULE_FORBIDDEN, RULE_WATCHED), RULE_WATCHED);
}

TEST(what_the_program_was_told_itself_is_kept)
{
    CHECK_EQ(kept(RULE_WATCHED, RULE_PINNED, RULE_FORBIDDEN), RULE_PINNED);
    CHECK_EQ(kept(RULE_FORBIDDEN, RULE_PINNED, RULE_FORBIDDEN), RULE_PINNED);
    CHECK_EQ(kept(RULE_FORBIDDEN, RULE_CANDIDATE, RULE_FORBIDDEN), RULE_CANDIDATE);
}

TEST(what_was_learned_in_the_run_is_kept)
{
    CHECK_EQ(kept(RULE_WATCHED, RULE_ACTIVE, RULE_WATCHED), RULE_ACTIVE);
    CHECK_EQ(kept(RULE_ACTIVE, RULE_RETIRED, RULE_ACTIVE), RULE_RETIRED);
}

TEST(a_site_that_the_program_does_not_list_is_added)
{
    struct site_line line = line_of("site forbidden 128 0 0 alpha+0x12 -\n");
    put(&mine, "site active 128 40 30 alpha+0x34@5 -\n");
    CHECK(hak_learned_put_site(&now, &line));
    hak_learned_heed(&mine, &before, &now);
    CHECK_EQ(mine.site_count, 2);
    CHECK_EQ(mine.sites[0].state, RULE_ACTIVE);
    CHECK_EQ(mine.sites[1].state, RULE_FORBIDDEN);
}

TEST(a_word_about_every_build_replaces_what_is_known_of_each)
{
    put(&mine, "site active 128 40 30 alpha+0x12@5 -\n");
    put(&mine, "site mixed 128 40 30 alpha+0x34@5 -\n");
    put(&mine, "site candidate 128 40 30 alpha+0x12@6 -\n");
    put(&now, "site forbidden 128 0 0 alpha+0x12 -\n");
    hak_learned_heed(&mine, &before, &now);
    CHECK_EQ(mine.site_count, 2);
    CHECK_EQ(mine.sites[0].state, RULE_FORBIDDEN);
    CHECK_EQ(mine.sites[1].state, RULE_MIXED);
}

TEST(what_was_learned_last_makes_room)
{
    struct site_line line = line_of("site active 128 40 30 alpha+0x12@5 -\n");
    for (uint32_t i = 0; i < HAK_LEARNED_SITES_MOST; i++, line.places[0].offset++) {
        line.state = i == HAK_LEARNED_SITES_MOST - 1 ? RULE_PINNED : RULE_ACTIVE;
        CHECK(hak_learned_put_site(&mine, &line));
    }
    put(&now, "site forbidden 128 0 0 beta+0x12 -\n");
    hak_learned_heed(&mine, &before, &now);
    const struct site_line *last = &mine.sites[HAK_LEARNED_SITES_MOST - 1];
    CHECK_EQ(mine.site_count, HAK_LEARNED_SITES_MOST);
    CHECK_EQ(last[0].state, RULE_FORBIDDEN);
    CHECK_EQ(last[-1].state, RULE_PINNED);
    CHECK_EQ(last[-2].places[0].offset, 0x12 + HAK_LEARNED_SITES_MOST - 3);
}

TEST(words_of_the_user_make_no_room)
{
    struct site_line line = line_of("site pinned 128 40 30 alpha+0x12@5 -\n");
    for (uint32_t i = 0; i < HAK_LEARNED_SITES_MOST; i++, line.places[0].offset++)
        CHECK(hak_learned_put_site(&mine, &line));
    put(&now, "site forbidden 128 0 0 beta+0x12 -\n");
    hak_learned_heed(&mine, &before, &now);
    CHECK_EQ(mine.site_count, HAK_LEARNED_SITES_MOST);
    CHECK_EQ(mine.sites[HAK_LEARNED_SITES_MOST - 1].state, RULE_PINNED);
}
