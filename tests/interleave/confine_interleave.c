/* SPDX-License-Identifier: MIT */
/* tests/interleave/confine_interleave.c - once a program is confined nobody asks the kernel any
 * more, and who asked before has ended. */
#include "../check.h"
#include "interleave.h"
#include "os/confine.h"

static uint32_t asked, is_over;

static void ask(void)
{
    if (!hak_os_ask_begin())
        return;
    asked++; /* the call, which the program's filter may not see */
    hak_os_ask_end();
}

static void ask_twice(void)
{
    ask();
    ask();
}

/* The filter sees every call from here on. */
static void confine(void)
{
    hak_os_confine();
    is_over = asked;
}

static void nobody_asked_later(void)
{
    MUST(asked == is_over);
}

static const struct harness harnesses[] = {
    {"one asks", NULL, {ask, confine}, nobody_asked_later, 3, 3, 0},
    {"one asks twice", NULL, {ask_twice, confine}, nobody_asked_later, 3, 3, 0},
};
#define HARNESS_COUNT (sizeof harnesses / sizeof *harnesses)

TEST(nobody_asks_once_the_program_is_confined)
{
    CHECK(interleave_hold(harnesses, HARNESS_COUNT));
}

TEST(every_order_of_confinement_is_needed)
{
    static const struct kept_order kept[] = {
        {"hak_os_ask_end fetch_sub acq_rel: without acquire",
         "it only gives; base/atomic.h has no subtraction that is a release alone"},
        {NULL, NULL}};
    CHECK(interleave_needs_orders("src/os/confine.", harnesses, HARNESS_COUNT, kept));
}
