/* SPDX-License-Identifier: MIT */
/* tests/unit/profile/site_rules_test.c - rules that the user or a file brings meet their sites, and
 * divert them. Addresses are those of this program's code; nothing is allocated there. */
#include "profile/site_rules.h"

#include "base/float_state.h"
#include "check.h"
#include "heap/route.h"
#include "os/unwind.h"
#include "process/start.h"
#include "stats/counters.h"

#define CLASS 8u
#define PINNED "site pinned 128 0 0 nowhere+0x12bb -\n"

static void sample_from(const uintptr_t *frames, const uintptr_t *stacks, uint32_t count)
{
    hak_rules_end(hak_rules_begin(frames, stacks, count, CLASS, 10), 10);
}

static void sample(uintptr_t address, uintptr_t above)
{
    sample_from((uintptr_t[]){address, above}, (uintptr_t[]){4096, 4096 + 64}, above == 0 ? 1 : 2);
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
        line.places[0].offset = i;
        CHECK(hak_rules_bring(&line));
    }
    line.places[0].offset = HAK_RULES_BROUGHT_MOST;
    CHECK(!hak_rules_bring(&line));
}

TEST(a_pinned_site_is_diverted_from_its_first_sample_on_and_back)
{
    struct site_line line = {.state = RULE_PINNED, .block_bytes = 128};
    uintptr_t address = (uintptr_t)&only_rule + 5;
    CHECK(hak_process_start());
    /* What is not known by name is told by its address. */
    strcpy(line.places[0].module, "?");
    line.places[0].offset = 0x1234;
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

TEST(a_site_that_comes_after_thousands_of_others_meets_its_rule)
{
    struct site_line line = {.state = RULE_PINNED, .block_bytes = 128, .places[0] = {"?", 0x99, 0}};
    CHECK(hak_process_start());
    CHECK(hak_rules_bring(&line));
    for (uintptr_t site = 0; site < 4 * HAK_SITE_RULES_MOST; site++) {
        uint64_t ticket = hak_rules_begin(&(uintptr_t){0x1000 + site}, &(uintptr_t){4096}, 1, CLASS,
                                          HAK_SITE_GENERATION_LEAST / 1000);
        hak_rules_end(ticket, HAK_SITE_GENERATION_LEAST / 1000);
    }
    CHECK(!hak_route_is_on());
    sample(0x99, 0);
    CHECK(hak_route_is_on());
    CHECK_EQ(only_rule().places[0].offset, 0x99);
}

TEST(learning_traps_nothing_and_leaves_the_flags_of_floating_point)
{
    CHECK(hak_process_start());
    struct float_state before = hak_float_begin();
    hak_float_end(HAK_FLOAT_TRAPS);
    struct float_state none = hak_float_begin();
    hak_float_end(none);
    for (uintptr_t i = 0; i < 4096; i++) { /* every eighth site keeps its blocks */
        uintptr_t address = 0x1000 + i % 8;
        uint64_t ticket = hak_rules_begin(&address, &(uintptr_t){4096}, 1, CLASS,
                                          HAK_SITE_GENERATION_LEAST / 1000);
        if (i % 8 != 0)
            hak_rules_end(ticket, HAK_SITE_GENERATION_LEAST / 1000);
    }
    struct float_state after = hak_float_begin();
    hak_float_end(before);
    CHECK_EQ(after.control, none.control);
    CHECK_EQ(after.flags, none.flags);
    CHECK_EQ(only_rule().places[0].offset, 0x1000);
}

/* What a file or the user says of callers; their code is known by no name. */
#define SITE 0x1234u
#define CALLER 0x2345u
#define DISTANT 0x3456u
static const uintptr_t frames[] = {SITE, CALLER, DISTANT};
static const uintptr_t stacks[] = {4096, 4096 + 64, 4096 + 64 + 32};

static void bring(enum rule_state state, uint32_t count)
{
    struct site_line line = {.state = state, .block_bytes = 128};
    CHECK(hak_process_start());
    for (uint32_t i = 0; i < count; i++) {
        strcpy(line.places[i].module, "?");
        line.places[i].offset = frames[i];
    }
    CHECK(hak_rules_bring(&line));
}

static enum hak_partition find_on(const uintptr_t *stack)
{
    return hak_route_find(CLASS, (struct os_caller){SITE, (uintptr_t)(stack - 2)});
}

TEST(a_rule_of_a_caller_of_a_caller_splits_both_wrappers)
{
    static _Alignas(4096) uintptr_t page[512];
    uintptr_t *stack = &page[2]; /* where the pointer is after the request */
    stack[7] = CALLER;
    stack[7 + 1 + 3] = DISTANT;
    bring(RULE_PINNED, 3);
    for (int i = 0; i < 3; i++) {
        CHECK(!hak_route_is_on());
        sample_from(frames, stacks, 3);
    }
    CHECK_EQ(hak_load_relaxed(&hak_route_sites), HAK_OS_RETURNS_ON_STACK);
    if (!HAK_OS_RETURNS_ON_STACK)
        return;
    CHECK_EQ(find_on(stack), PARTITION_LONG);
    stack[7 + 1 + 3]++;
    CHECK_EQ(find_on(stack), PARTITION_ORDINARY);
    stack[7] = 0;
    CHECK_EQ(find_on(stack), PARTITION_ORDINARY);
}

TEST(a_known_site_is_split_when_its_caller_gets_a_rule)
{
    CHECK(hak_process_start());
    sample_from(frames, stacks, 3);
    bring(RULE_PINNED, 2);
    CHECK(!hak_route_is_on());
    sample_from(frames, stacks, 3);
    CHECK_EQ(hak_load_relaxed(&hak_route_sites), HAK_OS_RETURNS_ON_STACK);
}

TEST(a_rule_that_the_user_takes_back_splits_nothing)
{
    struct site_line line;
    bring(RULE_WATCHED, 2);
    sample_from(frames, stacks, 3);
    CHECK(hak_rules_line(0, &line)); /* the one that was brought: it has not met its site */
    CHECK(!hak_rules_line(1, &line));
}

TEST(a_caller_that_stands_elsewhere_each_time_is_not_told)
{
    static const uintptr_t others[] = {4096, 4096 + 72, 4096 + 72 + 32};
    struct site_line line;
    bring(RULE_ACTIVE, 2);
    sample_from(frames, stacks, 3);
    for (int i = 0; i < 10; i++)
        sample_from(frames, others, 3);
    CHECK(!hak_route_is_on());
    CHECK(hak_rules_line(0, &line));
    CHECK_EQ(line.state, RULE_MIXED);
    CHECK(hak_rules_line(1, &line)); /* still waits */
    CHECK_EQ(line.state, RULE_ACTIVE);
    CHECK(!hak_rules_line(2, &line));
}

TEST(callers_of_one_wrapper_act_beside_each_other)
{
    struct site_line line = {.state = RULE_PINNED, .block_bytes = 128};
    uintptr_t from[] = {SITE, 0};
    CHECK(hak_process_start());
    sample_from(frames, stacks, 1);
    for (uint32_t i = 0; i < 40; i++) {
        strcpy(line.places[0].module, "?");
        line.places[0].offset = SITE;
        strcpy(line.places[1].module, "?");
        line.places[1].offset = from[1] = 0x5000 + 16 * i;
        CHECK(hak_rules_bring(&line));
        sample_from(from, stacks, 2);
    }
    CHECK_EQ(hak_load_relaxed(&hak_route_sites), HAK_OS_RETURNS_ON_STACK ? 40 : 0);
}

TEST(what_learned_rules_change_is_told_of_each_size_and_nothing_of_the_user)
{
    struct effect_line effect;
    bring(RULE_PINNED, 1);
    sample_from(frames, stacks, 1);
    CHECK(hak_route_is_on());
    CHECK(!hak_rules_effect(0, &effect));
    bring(RULE_ACTIVE, 1);
    CHECK(hak_rules_effect(0, &effect));
    CHECK_EQ(effect.block_bytes, 128);
    CHECK(effect.effect.pages[false] == 0 && effect.effect.pages[true] == 0);
    CHECK(!hak_rules_effect(1, &effect));
    bring(RULE_FORBIDDEN, 1);
    CHECK(!hak_rules_effect(0, &effect));
}

TEST(classes_without_a_twin_have_no_rules)
{
    CHECK_EQ(hak_rules_begin(frames, stacks, 1, HAK_SITE_CLASSES, 1), 0);
}
