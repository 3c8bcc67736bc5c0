/* SPDX-License-Identifier: MIT */
/* tests/preload/lines.c - blocks shorter than a cache line that two threads on two processors keep
 * using by turns of malloc and free. If this fails, two busy threads write to one line for as long
 * as both live, and each write of one waits for the other's. */
#include "program.h"

#define LINE_BYTES 64u
/* More than lie between two looks at a bin (HAK_POPS_NOTED). */
#define CALLS 200000u

static uintptr_t line_of(const void *block)
{
    return (uintptr_t)block / LINE_BYTES;
}

static _Atomic unsigned ready;

/* On a processor of its own; returns the block that it ended with. */
static void *use_by_turns(void *block)
{
    run_on_processor(ready++);
    while (ready < 2)
        sched_yield();
    for (unsigned i = 0; i < CALLS; i++) {
        free(block);
        block = malloc(8);
        *(volatile char *)block = (char)i;
    }
    return block;
}

/* Both live until both have ended. */
static void check_apart(void)
{
    char *first, *second = malloc(8);
    unsigned tries = 0;
    do { /* two of one line; the next two, if this thread was moved between them */
        first = second;
        second = malloc(8);
    } while (line_of(first) != line_of(second) && tries++ < 100);
    CHECK(line_of(first) == line_of(second)); /* or there is nothing to see */
    pthread_t threads[2] = {start_thread(use_by_turns, first), start_thread(use_by_turns, second)};
    void *one = join_thread(threads[0]), *other = join_thread(threads[1]);
    CHECK(line_of(one) != line_of(other));
}

TEST(threads_that_were_given_blocks_of_one_line_soon_have_lines_of_their_own)
{
    check_is_served();
    cpu_set_t all;
    CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    if (CPU_COUNT(&all) < 2)
        SKIP("one processor");
    check_apart();
}
