/* SPDX-License-Identifier: MIT */
/* tests/interleave/rules_interleave.c - rules for frames that are kept without a lock: a reader
 * finds a whole one or none. */
#include "../check.h"
#include "interleave.h"
#include "os/rules.h"

#define RULE_WORDS (sizeof(struct frame_rule) / sizeof(uint64_t))
/* Two addresses for which there is one place. */
#define FIRST_ADDRESS 0x1000u

/* A file's tables: a function, a second one's place, and that of another file. */
static struct tables {
    uint32_t header[3];
    int32_t pairs[3][2];
    uint32_t common[3], own[3];
} file = {.header = {0x3b031b01, 0, 2},
          .pairs = {{0, 48}, {100, 48}},
          .common = {8, 7, 7},
          .own = {8, 16, 7}},
  other_file;

static uintptr_t second_address;

union whole {
    struct frame_rule rule;
    uint64_t words[RULE_WORDS];
};

static uint64_t number_of(uintptr_t address)
{
    return (address * 0x9e3779b97f4a7c15ull >> 32) % HAK_RULES_MOST;
}

static void find_second_address(void)
{
    second_address = FIRST_ADDRESS + 1;
    while (number_of(second_address) != number_of(FIRST_ADDRESS))
        second_address++;
}

static void keep_of(const struct tables *tables, uintptr_t address, uint64_t word)
{
    struct rule_source source = {(const unsigned char *)tables, address, 0};
    union whole whole;
    for (uint32_t i = 0; i < RULE_WORDS; i++)
        whole.words[i] = word;
    hak_rules_keep(&source, &whole.rule);
}

static void keep(uintptr_t address, uint64_t word)
{
    keep_of(&file, address, word);
}

static void keep_one(void)
{
    keep(FIRST_ADDRESS, 1);
}

static void keep_two(void)
{
    keep(FIRST_ADDRESS, 2);
}

static void keep_other(void)
{
    keep(second_address, 3);
}

static void keep_one_then_other(void)
{
    keep_one();
    keep_other();
}

static void check(const union whole *found, uint64_t least, uint64_t most)
{
    MUST(found->words[0] >= least && found->words[0] <= most);
    for (uint32_t i = 1; i < RULE_WORDS; i++)
        MUST(found->words[i] == found->words[0]);
}

static void find_first(void)
{
    union whole found;
    if (hak_rules_find_lasting((const unsigned char *)&file, FIRST_ADDRESS, &found.rule))
        check(&found, 1, 2);
}

static void find_first_of_file(void)
{
    union whole found;
    if (hak_rules_find_lasting((const unsigned char *)&file, FIRST_ADDRESS, &found.rule))
        check(&found, 2, 2);
}

/* Another library was loaded at the same place: the rule of the first one is not found by it. */
static void find_new(void)
{
    union whole found;
    if (hak_rules_find((const unsigned char *)&file, FIRST_ADDRESS, &found.rule))
        check(&found, 2, 2);
}

static void change_count(void)
{
    keep_one();
    file.header[2]++;
}

static void change_function(void)
{
    keep_one();
    file.pairs[0][0]++;
}

static void change_next(void)
{
    keep_one();
    file.pairs[1][0]++;
}

static void change_own(void)
{
    keep_one();
    file.own[2]++;
}

static void change_common(void)
{
    keep_one();
    file.common[2]++;
}

static void keep_of_other_file(void)
{
    other_file = file;
    keep_of(&other_file, FIRST_ADDRESS, 1);
}

static const struct harness harnesses[] = {
    {"a rule is found", NULL, {keep_one, find_first}, NULL, 2, 2, 0},
    {"a rule is replaced", keep_one, {keep_two, find_first}, NULL, 2, 2, 0},
    {"by that of another address", keep_one, {keep_other, find_first}, NULL, 2, 2, 0},
    {"two keep one", NULL, {keep_one_then_other, keep_two, find_first}, NULL, 1, 1, 0},
    {"a longer table", change_count, {keep_two, find_new}, NULL, 2, 2, 0},
    {"another function", change_function, {keep_two, find_new}, NULL, 2, 2, 0},
    {"another one behind it", change_next, {keep_two, find_new}, NULL, 2, 2, 0},
    {"another entry", change_own, {keep_two, find_new}, NULL, 2, 2, 0},
    {"another common entry", change_common, {keep_two, find_new}, NULL, 2, 2, 0},
    {"another entry, all else old", change_own, {keep_two, find_new}, NULL, 1, 6, 0},
    {"another file", keep_of_other_file, {keep_two, find_new}, NULL, 2, 2, 0},
    {"by the file", keep_of_other_file, {keep_two, find_first_of_file}, NULL, 2, 2, 0},
    {"for another address", keep_other, {keep_one, find_first}, NULL, 2, 2, 0},
};
#define HARNESS_COUNT (sizeof harnesses / sizeof *harnesses)

TEST(a_rule_is_found_whole_or_not_at_all)
{
    find_second_address();
    CHECK(interleave_hold(harnesses, HARNESS_COUNT));
}

TEST(every_order_of_kept_rules_is_needed)
{
    static const struct kept_order kept[] = {{NULL, NULL}};
    find_second_address();
    CHECK(interleave_needs_orders("src/os/rules.", harnesses, HARNESS_COUNT, kept));
}
