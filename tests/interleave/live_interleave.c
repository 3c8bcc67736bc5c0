/* SPDX-License-Identifier: MIT */
/* tests/interleave/live_interleave.c - samples of live blocks, in a table without a lock: each is
 * found whole, and removed once. */
#include "../check.h"
#include "interleave.h"
#include "process/start.h"
#include "profile/live.h"
#include "region/meta.h"

#define BLOCK ((void *)0x10000)
/* Of the same places in the first table. */
#define OTHER ((void *)0x100d8)

static uint32_t removed;

/* The kernel is not asked for memory later. */
static void make(void)
{
    CHECK(hak_process_start());
    hak_meta_prewarm(64 * 1024);
}

static struct live_sample of(uint64_t number)
{
    return (struct live_sample){{number, number}, number, number, number, number, number};
}

static void check(const struct live_sample *sample, uint64_t least, uint64_t most)
{
    MUST(sample->site >= least && sample->site <= most);
    struct live_sample wanted = of(sample->site);
    MUST(sample->sum.count == wanted.sum.count && sample->sum.bytes == wanted.sum.bytes &&
         sample->birth_ns == wanted.birth_ns && sample->heap == wanted.heap &&
         sample->ticket == wanted.ticket && sample->logged_bytes == wanted.logged_bytes);
}

static void add(void *block, uint64_t number)
{
    struct live_sample sample = of(number);
    MUST(hak_live_add(block, &sample, true));
}

static void add_block(void)
{
    add(BLOCK, 1);
}

static void add_other(void)
{
    add(OTHER, 2);
}

static bool remove_from(void *block, uint64_t number)
{
    struct live_sample sample;
    if (!hak_live_remove(block, &sample))
        return false;
    check(&sample, number, number);
    return true;
}

static void remove_block(void)
{
    __atomic_fetch_add(&removed, remove_from(BLOCK, 1), __ATOMIC_RELAXED);
}

static void remove_then_add_other(void)
{
    remove_block();
    add_other();
}

static void resize(void)
{
    struct live_sample sample;
    struct live_place place;
    if (!hak_live_hold(BLOCK, &sample, &place))
        return;
    check(&sample, 1, 1);
    sample = of(2);
    hak_live_let_go(BLOCK, &sample, &place);
}

static void count_ended(const struct live_sample *sample)
{
    check(sample, 1, 1);
    __atomic_fetch_add(&removed, 1, __ATOMIC_RELAXED);
}

static void end_heap(void)
{
    hak_live_remove_heap(1, count_ended);
}

/* What stays of it is of the heap that ends. */
static void add_and_remove_block(void)
{
    add_block();
    MUST(remove_from(BLOCK, 1));
}

static void other_is_left(void)
{
    MUST(removed == 0 && remove_from(OTHER, 2));
}

static void one_was_removed(void)
{
    removed += remove_from(BLOCK, 1);
    MUST(removed == 1);
}

static void each_was_removed(void)
{
    one_was_removed();
    MUST(remove_from(OTHER, 2));
}

static void each_is_as_it_was_left(void)
{
    MUST(remove_from(BLOCK, 2) && remove_from(OTHER, 2));
}

static void remove_then_add_block(void)
{
    remove_block();
    add_block();
}

static void one_is_left(void)
{
    MUST(removed == 1 && remove_from(BLOCK, 1));
}

static const struct harness harnesses[] = {
    {"one adds, one removes", NULL, {add_block, remove_block}, one_was_removed, 2, 2, 0},
    {"two remove", add_block, {remove_block, remove_block}, one_was_removed, 2, 2, 0},
    {"two add", NULL, {add_block, add_other}, each_was_removed, 2, 2, 0},
    {"a place is used again",
     add_block,
     {remove_then_add_other, remove_block},
     each_was_removed,
     2,
     2,
     0},
    {"a sample changes", add_block, {resize, add_other}, each_is_as_it_was_left, 2, 2, 0},
    {"a block is freed and allocated",
     add_block,
     {remove_then_add_block, add_other},
     one_is_left,
     2,
     2,
     0},
    {"another one's heap ends",
     add_and_remove_block,
     {add_other, end_heap},
     other_is_left,
     2,
     1,
     0},
    {"its heap ends", add_block, {end_heap, remove_block}, one_was_removed, 2, 1, 0},
};
#define HARNESS_COUNT (sizeof harnesses / sizeof *harnesses)

TEST(a_sample_is_found_whole_and_removed_once)
{
    make();
    CHECK(interleave_hold(harnesses, HARNESS_COUNT));
}

TEST(every_order_of_the_table_is_needed)
{
    static const struct kept_order kept[] = {
        {"add_in cas acquire: without acquire",
         "a sample overwritten before its last reader has read it: load buffering"},
        {"empty cas release: without release", "its partner"},
        {"hak_live_hold cas acquire: without acquire",
         "the load before it acquires; who resizes a block has met who added it"},
        {"hak_live_let_go store release: without release",
         "who removes a block has met who resized it; only a visitor has not, and may see parts"},
        {NULL, NULL}};
    make();
    CHECK(interleave_needs_orders("src/profile/live.", harnesses, HARNESS_COUNT, kept));
}
