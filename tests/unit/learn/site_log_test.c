/* SPDX-License-Identifier: MIT */
/* tests/unit/learn/site_log_test.c - which sites get a rule: worlds of call sites whose blocks live
 * as long as the test says; time, random numbers and facts are the test's own. */
#include "learn/site_log.h"

#include "check.h"

#include <string.h>

#define GENERATION HAK_SITE_GENERATION_LEAST
#define CLASS 8u
#define SITES 16u
/* Samples a generation. */
#define RATE 400u
#define LIVE_MOST 65536u

static struct site_log past;
static uint64_t volume, state;
static struct site_facts told;

static uint32_t draw(void)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(state >> 33);
}

/* Samples that will be freed, in no order. */
static struct {
    uint64_t ticket;
    uint64_t due;
} live[LIVE_MOST];
static uint32_t live_count;

static void begin_world(uint64_t seed)
{
    memset(&past, 0, sizeof past);
    volume = GENERATION;
    state = seed * 0x9e3779b97f4a7c15ull + 1;
    live_count = 0;
    told = (struct site_facts){.may_act = true,
                               .page_bytes = 4096,
                               .slab_bytes = 300 << 20,
                               .free_bytes = 256 << 20,
                               .block_bytes = 128,
                               .generation_ns = 1000000000,
                               .divert_ps = 2000,
                               .core_second_bytes = (uint64_t)4 << 30};
}

static void read_facts(uint32_t class_index, struct site_facts *facts)
{
    CHECK(class_index < HAK_SITE_CLASSES);
    *facts = told;
}

static void free_due(void)
{
    for (uint32_t i = 0; i < live_count;) {
        if (live[i].due > volume) {
            i++;
            continue;
        }
        hak_site_log_end(&past, live[i].ticket, 1000);
        live[i] = live[--live_count];
    }
}

static struct site_key key_of(uint32_t site)
{
    return (struct site_key){.frames = {0x401000 + 16 * site}, .class_index = CLASS};
}

/* Behind a wrapper, and behind two. */
static struct site_key called_from(uint32_t caller)
{
    struct site_key key = key_of(99);
    key.frames[1] = 0x500000 + 16 * caller;
    return key;
}

static struct site_key called_twice_from(uint32_t wrapper, uint32_t caller)
{
    struct site_key key = called_from(wrapper);
    key.frames[2] = 0x600000 + 16 * caller;
    return key;
}

/* The rules that distinguish so many frames. */
static uint32_t rules_of_frames(uint32_t frames)
{
    uint32_t count = 0;
    for (uint32_t i = 1; i < past.rule_count; i++) {
        uint32_t used = 0;
        while (used < HAK_SITE_FRAMES && past.rules[i].key.frames[used] != 0)
            used++;
        count += used == frames;
    }
    return count;
}

/* One sampled block, which lives for so many thousandths of a generation. */
static void allocate(struct site_key key, uint32_t life)
{
    volume += GENERATION / RATE;
    free_due();
    if (hak_site_log_is_due(&past, volume))
        hak_site_log_turn(&past, volume, GENERATION, read_facts);
    uint64_t ticket = hak_site_log_begin(&past, key, 1000, volume, GENERATION);
    if (ticket != 0 && live_count < LIVE_MOST) {
        live[live_count].ticket = ticket;
        live[live_count++].due = volume + GENERATION / 1000 * life;
    }
}

static enum rule_state state_of(struct site_key key)
{
    return past.rules[hak_site_log_find(&past, key)].state;
}

static bool has_passed_the_gate(void)
{
    for (uint32_t i = 0; i < past.decision_count && i < HAK_SITE_DECISIONS; i++)
        if (past.decisions[i].to == RULE_SHADOW)
            return true;
    return false;
}

/* Sites 0 to 3 keep what they allocate, one in `one_in` of all; the others do not. */
static void live_through(uint32_t generations, uint32_t one_in)
{
    for (uint32_t i = 0; i < generations * RATE; i++) {
        bool is_kept = draw() % one_in == 0;
        uint32_t site = is_kept ? draw() % 4 : 4 + draw() % 12;
        allocate(key_of(site), is_kept ? 5000 + draw() % 20000 : 10 + draw() % 500);
    }
}

TEST(sites_that_are_alike_pass_the_gate_in_fewer_than_one_in_twenty_of_1000_programs)
{
    uint32_t passed = 0;
    for (uint64_t seed = 1; seed <= 1000; seed++) {
        begin_world(seed);
        uint32_t survivors = 5 + draw() % 90;
        for (uint32_t i = 0; i < 20 * RATE; i++)
            allocate(key_of(draw() % SITES), draw() % 100 < survivors ? 3000 : 100);
        passed += has_passed_the_gate();
    }
    CHECK(passed <= 50);
}

TEST(sites_that_are_alike_in_a_program_that_changes_pass_no_gate_either)
{
    uint32_t passed = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        begin_world(seed);
        for (uint32_t i = 0; i < 20 * RATE; i++) {
            bool is_phase_of_keeping = i / RATE % 4 == 0;
            uint32_t site = is_phase_of_keeping ? draw() % 3 : draw() % SITES;
            allocate(key_of(site), is_phase_of_keeping && draw() % 2 ? 3000 : 100);
        }
        passed += has_passed_the_gate();
    }
    CHECK(passed <= 10);
}

TEST(sites_of_long_lived_blocks_are_found_and_no_others)
{
    uint32_t found = 0, wrong = 0;
    for (uint64_t seed = 1; seed <= 25; seed++) {
        begin_world(seed);
        live_through(60, 50);
        for (uint32_t site = 0; site < SITES; site++) {
            if (site < 4)
                found += state_of(key_of(site)) == RULE_ACTIVE;
            else
                wrong +=
                    state_of(key_of(site)) >= RULE_SHADOW && state_of(key_of(site)) <= RULE_RETIRED;
        }
    }
    CHECK(found >= 99);
    CHECK_EQ(wrong, 0);
}

TEST(the_same_program_leads_to_the_same_decisions)
{
    static struct site_decision before[HAK_SITE_DECISIONS];
    begin_world(7);
    live_through(40, 50);
    memcpy(before, past.decisions, sizeof before);
    CHECK(past.decision_count >= 12);
    begin_world(7);
    live_through(40, 50);
    CHECK(memcmp(before, past.decisions, sizeof before) == 0);
}

/* The decisions so far, a line each: generation, site, and what it became. */
static const char *decisions(void)
{
    static char lines[HAK_SITE_DECISIONS * 40];
    size_t used = 0;
    CHECK(past.decision_count <= HAK_SITE_DECISIONS);
    for (uint32_t i = 0; i < past.decision_count; i++) {
        const struct site_decision *decision = &past.decisions[i];
        used += (size_t)snprintf(
            lines + used, sizeof lines - used, "%u %u %s\n",
            (unsigned)(decision->volume / GENERATION),
            (unsigned)((past.rules[decision->rule].key.frames[0] - key_of(0).frames[0]) / 16),
            hak_rule_state_word((enum rule_state)decision->to));
    }
    return lines;
}

/* Four sites keep, then none does. A change of this list is reviewed like one of the API. */
TEST(a_replayed_program_leads_to_the_recorded_decisions)
{
    begin_world(7);
    live_through(12, 20);
    for (uint32_t i = 0; i < 6 * RATE; i++)
        allocate(key_of(draw() % SITES), 100);
    CHECK_STR(decisions(), "3 3 candidate\n"
                           "3 0 candidate\n"
                           "3 1 candidate\n"
                           "3 2 candidate\n"
                           "4 3 shadow\n"
                           "4 0 shadow\n"
                           "5 3 canary\n"
                           "5 0 canary\n"
                           "5 1 shadow\n"
                           "5 2 shadow\n"
                           "6 1 canary\n"
                           "6 2 canary\n"
                           "6 3 active\n"
                           "6 0 active\n"
                           "7 1 active\n"
                           "7 2 active\n"
                           "16 1 retired\n"
                           "16 2 retired\n"
                           "16 3 retired\n"
                           "16 0 retired\n"
                           "18 1 candidate\n"
                           "18 2 candidate\n"
                           "18 3 candidate\n"
                           "18 0 candidate\n");
}

TEST(a_site_that_stops_keeping_is_retired_within_four_generations)
{
    begin_world(3);
    live_through(60, 50);
    CHECK_EQ(state_of(key_of(0)), RULE_ACTIVE);
    uint32_t samples = 0;
    for (; state_of(key_of(0)) != RULE_RETIRED; samples++)
        allocate(key_of(draw() % SITES), 100);
    CHECK(samples <= 2 * RATE /* of before are judged first */ + 4 * RATE);
}

TEST(a_retired_site_waits_longer_each_time)
{
    uint16_t last = 0;
    begin_world(3);
    for (int time = 0; time < 3; time++) {
        live_through(150, 20);
        CHECK_EQ(state_of(key_of(0)), RULE_ACTIVE);
        for (uint32_t i = 0; state_of(key_of(0)) != RULE_RETIRED; i++) {
            allocate(key_of(draw() % SITES), 100);
            CHECK(i < 10 * RATE);
        }
        uint16_t wait = past.rules[hak_site_log_find(&past, key_of(0))].wait_generations;
        CHECK(wait > last);
        last = wait;
    }
}

TEST(a_wrapper_is_mixed_and_its_callers_are_distinguished)
{
    begin_world(5);
    for (uint32_t i = 0; i < 60 * RATE; i++) {
        bool is_kept = draw() % 20 == 0;
        allocate(called_from(is_kept ? draw() % 2 : 2 + draw() % 6), is_kept ? 20000 : 100);
    }
    CHECK_EQ(state_of(key_of(99)), RULE_MIXED);
    for (uint32_t caller = 0; caller < 8; caller++)
        CHECK_EQ(state_of(called_from(caller)), caller < 2 ? RULE_ACTIVE : RULE_WATCHED);
}

TEST(a_wrapper_behind_a_wrapper_is_mixed_and_the_callers_above_both_are_distinguished)
{
    begin_world(5);
    for (uint32_t i = 0; i < 60 * RATE; i++) {
        bool is_kept = draw() % 20 == 0;
        allocate(called_twice_from(7, is_kept ? draw() % 2 : 2 + draw() % 6),
                 is_kept ? 20000 : 100);
    }
    CHECK_EQ(state_of(key_of(99)), RULE_MIXED);
    CHECK_EQ(state_of(called_from(7)), RULE_MIXED);
    for (uint32_t caller = 0; caller < 8; caller++) {
        struct site_key key = called_twice_from(7, caller);
        CHECK_EQ(state_of(key), caller < 2 ? RULE_ACTIVE : RULE_WATCHED);
        const struct site_rule *rule = &past.rules[hak_site_log_find(&past, key)];
        CHECK_EQ(rule->wrapper, hak_site_log_find(&past, called_from(7)));
        CHECK_EQ(past.rules[rule->wrapper].wrapper, hak_site_log_find(&past, key_of(99)));
    }
    /* The callers' callers are no wrappers, whatever they do. */
    for (uint32_t i = 0; i < 20 * RATE; i++)
        allocate(called_twice_from(7, 2 + draw() % 6), draw() % 3 == 0 ? 20000 : 100);
    for (uint32_t caller = 0; caller < 8; caller++)
        CHECK(state_of(called_twice_from(7, caller)) != RULE_MIXED);
}

TEST(a_caller_whose_blocks_stay_or_go_together_is_not_split)
{
    begin_world(5);
    for (uint32_t i = 0; i < 60 * RATE; i++) {
        bool is_kept = draw() % 20 == 0;
        allocate(called_twice_from(is_kept ? 7 : 8, draw() % 4), is_kept ? 20000 : 100);
    }
    CHECK_EQ(state_of(key_of(99)), RULE_MIXED);
    CHECK_EQ(state_of(called_twice_from(7, 0)), RULE_ACTIVE);
    CHECK_EQ(state_of(called_twice_from(8, 0)), RULE_WATCHED);
    CHECK_EQ(rules_of_frames(2), 2);
    CHECK_EQ(rules_of_frames(3), 0);
}

TEST(a_site_whose_caller_is_not_known_is_not_split)
{
    begin_world(5);
    for (uint32_t i = 0; i < 60 * RATE; i++) {
        bool is_kept = draw() % 5 < 3;
        allocate(key_of(1), is_kept ? 20000 : 100);
        allocate(key_of(2), 100);
    }
    CHECK_EQ(state_of(key_of(1)), RULE_ACTIVE);
    CHECK_EQ(rules_of_frames(2), 0);
}

TEST(callers_of_callers_leave_room_for_other_sites)
{
    begin_world(1);
    for (uint32_t wrapper = 0; wrapper < 8; wrapper++) {
        hak_site_log_set(&past, hak_site_log_find(&past, key_of(99)), RULE_MIXED, volume);
        uint32_t rule = hak_site_log_find(&past, called_from(wrapper));
        hak_site_log_set(&past, rule, RULE_MIXED, volume);
    }
    for (uint32_t caller = 0; caller < 100000; caller++)
        allocate(called_twice_from(caller % 8, caller), 100);
    CHECK_EQ(past.rule_count, HAK_SITE_RULES_MOST / 4 * 3);
    for (uint32_t caller = 0; caller < HAK_SITE_RULES_MOST; caller++)
        hak_site_log_find(&past, called_twice_from(0, 200000 + caller));
    CHECK_EQ(hak_site_log_find(&past, called_twice_from(0, 300000)), 0);
    for (uint32_t site = 0; site < 100000; site++)
        allocate(site % 2 == 0 ? key_of(200 + site) : called_from(8 + site), 100);
    CHECK_EQ(past.rule_count, HAK_SITE_RULES_MOST);
    CHECK(state_of(key_of(200)) == RULE_WATCHED && rules_of_frames(1) > 100);
    CHECK(rules_of_frames(2) > 100);
}

TEST(rules_that_may_not_act_only_observe)
{
    begin_world(11);
    told.may_act = false;
    live_through(60, 50);
    CHECK_EQ(state_of(key_of(0)), RULE_SHADOW);
}

TEST(a_rule_that_costs_more_than_it_saves_does_not_act)
{
    begin_world(11);
    told.free_bytes = 64 << 10;
    live_through(60, 50);
    CHECK_EQ(state_of(key_of(0)), RULE_SHADOW);
    told.free_bytes = 256 << 20;
    live_through(10, 50);
    CHECK_EQ(state_of(key_of(0)), RULE_ACTIVE);
    told.divert_ps = 10000000;
    uint32_t generations = 0;
    for (; state_of(key_of(0)) != RULE_RETIRED; generations++)
        live_through(1, 50);
    CHECK(generations <= HAK_RULE_GRACE + 2);
}

/* Pages are in use for as long with the rule as while it is held back. */
static void tell_pages(double used, double used_while_held)
{
    for (int i = 0; i < 2; i++) {
        past.classes[CLASS].effect.pages[i] += 10;
        past.classes[CLASS].effect.used[i] += 10 * (i == 0 ? used : used_while_held);
    }
}

TEST(a_rule_that_changes_nothing_is_retired_though_its_blocks_survive)
{
    begin_world(11);
    told.slab_bytes = 30 << 20;
    told.free_bytes = 26 << 20;
    live_through(60, 50);
    CHECK_EQ(state_of(key_of(0)), RULE_ACTIVE);
    for (int generation = 0; generation < 40; generation++) {
        tell_pages(0.2, 0.7);
        live_through(1, 50);
        CHECK_EQ(state_of(key_of(0)), RULE_ACTIVE);
    }
    uint32_t generations = 0;
    for (; state_of(key_of(0)) != RULE_RETIRED; generations++) {
        CHECK(generations < 80);
        tell_pages(0.7, 0.7);
        live_through(1, 50);
    }
    CHECK(past.rules[hak_site_log_find(&past, key_of(0))].recent_survivors > 0);
}

TEST(slabs_of_blocks_that_stay_must_be_used)
{
    begin_world(11);
    live_through(60, 50);
    CHECK_EQ(state_of(key_of(0)), RULE_ACTIVE);
    told.long_bytes = 8 << 20;
    told.long_used_bytes = 3 << 20;
    live_through(2, 50);
    CHECK_EQ(state_of(key_of(0)), RULE_RETIRED);
}

TEST(rules_of_the_user_stay)
{
    begin_world(2);
    uint32_t pinned = hak_site_log_find(&past, key_of(9));
    uint32_t forbidden = hak_site_log_find(&past, key_of(0));
    hak_site_log_set(&past, pinned, RULE_PINNED, volume);
    hak_site_log_set(&past, forbidden, RULE_FORBIDDEN, volume);
    live_through(60, 50);
    CHECK_EQ(past.rules[pinned].state, RULE_PINNED);
    CHECK_EQ(past.rules[forbidden].state, RULE_FORBIDDEN);
    CHECK(past.rules[forbidden].survivors > 10);
}

TEST(a_hundred_thousand_sites_find_no_more_room_than_there_is)
{
    begin_world(1);
    for (uint32_t site = 0; site < 100000; site++)
        allocate(key_of(site), 100);
    CHECK_EQ(past.rule_count, HAK_SITE_RULES_MOST);
    for (uint32_t site = 0; site < HAK_SITE_RULES_MOST; site++) /* in no time */
        hak_site_log_find(&past, key_of(200000 + site));
    CHECK_EQ(past.rule_count, HAK_SITE_RULES_MOST);
    CHECK_EQ(hak_site_log_find(&past, key_of(300000)), 0);
    CHECK(sizeof past <= 256 * 1024);
}

/* Sites that pass by: each has one block, which is freed soon. */
static void pass_by(uint32_t first, uint32_t count)
{
    for (uint32_t site = first; site < first + count; site++)
        allocate(key_of(site), 100);
}

TEST(sites_that_came_when_rules_were_full_are_learned_when_others_are_over)
{
    begin_world(3);
    pass_by(1000, 100000);
    for (uint32_t i = 0; i < 40 * RATE; i++)
        allocate(key_of(i % 4), i % 4 == 1 ? 20000 : 100);
    CHECK_EQ(state_of(key_of(1)), RULE_ACTIVE);
}

TEST(what_is_referred_to_is_not_forgotten)
{
    begin_world(4);
    uint32_t said = hak_site_log_find(&past, key_of(1)), kept = hak_site_log_find(&past, key_of(2));
    uint32_t wrapper = hak_site_log_find(&past, key_of(99));
    hak_site_log_set(&past, said, RULE_FORBIDDEN, volume);
    hak_site_log_set(&past, wrapper, RULE_MIXED, volume);
    uint32_t caller = hak_site_log_find(&past, called_from(1));
    hak_site_log_set(&past, caller, RULE_PINNED, volume);
    hak_site_log_set(&past, wrapper, RULE_WATCHED, volume);
    uint64_t ticket = hak_site_log_begin(&past, key_of(2), 1000, volume, GENERATION);
    pass_by(1000, 20000);
    CHECK_EQ(hak_site_log_find(&past, key_of(1)), said);
    CHECK_EQ(hak_site_log_find(&past, key_of(2)), kept);
    CHECK_EQ(past.rules[kept].kept_blocks, 1000);
    CHECK_EQ(hak_site_log_find(&past, key_of(99)), wrapper);
    CHECK_EQ(past.rules[caller].wrapper, wrapper);
    hak_site_log_end(&past, ticket, 1000);
    pass_by(30000, 20000);
    CHECK_EQ(past.rules[said].state, RULE_FORBIDDEN);
    CHECK(past.rules[kept].key.frames[0] != key_of(2).frames[0]);
    for (uint32_t i = 1; i < past.rule_count; i++)
        CHECK(past.rules[i].is_free || hak_site_log_find(&past, past.rules[i].key) == i ||
              i == caller);
}

TEST(kept_blocks_are_those_that_survived_and_live)
{
    begin_world(1);
    uint64_t tickets[10];
    for (int i = 0; i < 10; i++)
        tickets[i] = hak_site_log_begin(&past, key_of(1), 1000, volume, GENERATION);
    for (int i = 0; i < 4; i++)
        hak_site_log_end(&past, tickets[i], 1000);
    volume += 2 * GENERATION;
    hak_site_log_begin(&past, key_of(2), 1000, volume, GENERATION);
    const struct site_rule *rule = &past.rules[hak_site_log_find(&past, key_of(1))];
    CHECK_EQ(rule->judged, 10);
    CHECK_EQ(rule->survivors, 6);
    CHECK_EQ(rule->kept_blocks, 6000);
    hak_site_log_end(&past, tickets[9], 1000);
    CHECK_EQ(rule->kept_blocks, 5000);
}
