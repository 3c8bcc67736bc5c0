/* SPDX-License-Identifier: MIT */
/* tests/unit/profile/site_rules_test.c - rules that the user or a file brings meet their sites, and
 * divert them. Addresses are those of this program's code; nothing is allocated there. */
#include "profile/site_rules.h"

#include "check.h"
#include "heap/route.h"
#include "process/start.h"
#include "stats/counters.h"

#define CLASS 8u
#define PINNED "site pinned 128 0 0 nowhere+0x12bb -\n"

static void sample(uintptr_t address, uintptr_t above)
{
    uintptr_t frames[HAK_RULES_FRAMES] = {address, above};
    uintptr_t stacks[HAK_RULES_FRAMES] = {4096, 4096 + 64};
    uint64_t ticket = hak_rules_begin(frames, stacks, above == 0 ? 1 : 2, CLASS, 10);
    hak_rules_end(ticket, 10);
}

/* A rule for the last site that was made firm, wherever this program lies. */
static struct site_line only_rule(void)
{
    struct site_line line, more;
    CHECK(hak_rules_line(0, &line));
    CHECK(!hak_rules_line(1, &more));
    return line;
}

TEST(a_rule_waits_for_its_site)
{
    struct site_line line, listed;
    CHECK(hak_process_start());
    CHECK(hak_site_line_read(&line, PINNED, strlen(PINNED)) != 0);
    CHECK(!hak_rules_line(0, &listed));
    CHECK(hak_rules_bring(&line));
    CHECK(hak_rules_bring(&line));
    listed = only_rule();
    CHECK(hak_site_line_is_same(&line, &listed));
    CHECK(!hak_route_is_on());
}

TEST(there_is_room_for_so_many_and_no_more)
{
    struct site_line line;
    hak_site_line_read(&line, PINNED, strlen(PINNED));
    for (uint32_t i = 0; i < HAK_RULES_BROUGHT_MOST; i++) {
        line.place.offset = i;
        CHECK(hak_rules_bring(&line));
    }
    line.place.offset = HAK_RULES_BROUGHT_MOST;
    CHECK(!hak_rules_bring(&line));
}

TEST(a_pinned_site_is_diverted_from_its_first_sample_on_and_back)
{
    struct site_line line = {.state = RULE_PINNED, .block_bytes = 128};
    uintptr_t address = (uintptr_t)&only_rule + 5;
    CHECK(hak_process_start());
    /* What is not known by name is told by its address. */
    strcpy(line.place.module, "?");
    line.place.offset = 0x1234;
    CHECK(hak_rules_bring(&line));
    sample(address, 0);
    CHECK(!hak_route_is_on());
    sample(0x1234, 0);
    CHECK(hak_route_is_on());
    struct os_caller caller = {.address = 0x1234};
    CHECK_EQ(hak_route_find(CLASS, caller), PARTITION_LONG);
    CHECK_EQ(only_rule().state, RULE_PINNED);
    CHECK_EQ(hak_load_relaxed(&hak_stat_globals.rules_begun), 1);
    CHECK_EQ(hak_load_relaxed(&hak_stat_globals.rules_ended), 0);
    line.state = RULE_FORBIDDEN;
    CHECK(hak_rules_bring(&line));
    CHECK(!hak_route_is_on());
    CHECK_EQ(hak_load_relaxed(&hak_stat_globals.rules_ended), 1);
    line.state = RULE_WATCHED;
    CHECK(hak_rules_bring(&line));
    CHECK(!hak_rules_line(0, &line));
}

TEST(classes_without_a_twin_have_no_rules)
{
    uintptr_t frames[] = {0x1234}, stacks[] = {4096};
    CHECK_EQ(hak_rules_begin(frames, stacks, 1, HAK_SITE_CLASSES, 1), 0);
}
