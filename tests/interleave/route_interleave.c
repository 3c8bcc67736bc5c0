/* SPDX-License-Identifier: MIT */
/* tests/interleave/route_interleave.c - the table of diverted sites is replaced while requests look
 * them up: a site of both tables is diverted all the time, one of neither never. */
#include "../check.h"
#include "heap/route.h"
#include "interleave.h"

#define CLASS 3u
#define SITE(number) (0x10000u + (number) * 0x100u)
enum { STAYS, COMES, GOES, NEVER, HALF, ALWAYS, WRAPPER, CALLER, OTHER_CALLER };

/* A frame of the wrapper: what it goes on with, and the return address of its caller. */
static struct {
    alignas(64) uintptr_t words[8];
} stacks[2] = {{{0, 0, 0, SITE(CALLER)}}, {{0, 0, 0, SITE(OTHER_CALLER)}}};

#define LASTING                                                                                    \
    {{SITE(STAYS)}, CLASS, ROUTE_LONG, 0}, {{SITE(HALF)}, CLASS, ROUTE_HALF, 0},                   \
        {{SITE(ALWAYS)}, CLASS, ROUTE_ALWAYS, 0}, {{SITE(WRAPPER)}, CLASS, ROUTE_SPLIT, 8},        \
        {{SITE(WRAPPER), SITE(CALLER)}, CLASS, ROUTE_LONG, 0}
static const struct route before[] = {LASTING, {{SITE(GOES)}, CLASS, ROUTE_LONG, 0}};
static const struct route after[] = {{{SITE(COMES)}, CLASS, ROUTE_LONG, 0}, LASTING};
#define ROUTE_COUNT (sizeof before / sizeof *before)

static bool is_diverted(uint32_t number)
{
    return hak_route_find(CLASS, (struct os_caller){.address = SITE(number)}) == PARTITION_LONG;
}

static bool is_diverted_from(uint32_t stack)
{
    struct os_caller caller = {.address = SITE(WRAPPER), .frame = (uintptr_t)&stacks[stack]};
    return hak_route_find(CLASS, caller) == PARTITION_LONG;
}

static void begin(void)
{
    MUST(hak_route_publish(before, ROUTE_COUNT) == ROUTE_COUNT);
}

static void publish(void)
{
    MUST(hak_route_publish(after, ROUTE_COUNT) == ROUTE_COUNT);
}

static void look_up(void)
{
    MUST(hak_route_has(CLASS) && !hak_route_has(CLASS + 1));
    MUST(is_diverted(STAYS) && !is_diverted(NEVER));
    is_diverted(COMES);
    is_diverted(GOES);
}

static void look_up_behind_a_wrapper(void)
{
    MUST(is_diverted_from(0) && !is_diverted_from(1));
}

static void has_changed(void)
{
    MUST(is_diverted(STAYS) && is_diverted(COMES) && !is_diverted(GOES) && !is_diverted(NEVER));
    MUST(is_diverted_from(0) && !is_diverted_from(1));
}

static void hold(void)
{
    hak_route_hold(HOLD_HALF);
    hak_route_hold(HOLD_ALL);
}

/* What is held back half of the time is held back first. */
static void look_up_what_is_held(void)
{
    MUST(is_diverted(ALWAYS));
    if (!is_diverted(STAYS))
        MUST(!is_diverted(HALF));
    MUST(is_diverted(ALWAYS));
}

static void is_held(void)
{
    MUST(!is_diverted(STAYS) && !is_diverted(HALF) && is_diverted(ALWAYS));
}

static const struct harness harnesses[] = {
    {"the table changes", begin, {publish, look_up}, has_changed, 2, 2, 0},
    {"and wrappers", begin, {publish, look_up_behind_a_wrapper}, has_changed, 3, 2, 0},
    {"requests are held back", begin, {hold, look_up_what_is_held}, is_held, 3, 3, 0},
    {"and the table changes", begin, {hold, publish, look_up_what_is_held}, NULL, 2, 1, 0},
};
#define HARNESS_COUNT (sizeof harnesses / sizeof *harnesses)

TEST(a_site_of_both_tables_is_diverted_all_the_time)
{
    CHECK(interleave_hold(harnesses, HARNESS_COUNT));
}
