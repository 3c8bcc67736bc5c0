/* SPDX-License-Identifier: MIT */
/* tests/unit/region/huge_wish_test.c - what was asked of the kernel is known, once, and taken back.
 * If this fails, memory that is used again comes back in huge pages. */
#include "region/huge_wish.h"

#include "check.h"
#include "os/os.h"
#include "process/start.h"
#include "region/mappings.h"

#define S HAK_SUPERSLAB_GRANULES

static struct granule_range window(void)
{
    CHECK(hak_process_start());
    struct granule_range range = hak_region_grow(8 * S);
    CHECK(range.count >= 8 * S && range.first == 0);
    return range;
}

static uint64_t advices(void)
{
    return hak_load_relaxed(&hak_os_counters.advise_count);
}

/* Calls of the kernel by which this part is refused. */
static uint64_t refusals(uint32_t first, uint32_t count)
{
    uint64_t before = advices();
    hak_huge_refuse((struct granule_range){first, count});
    return advices() - before;
}

static struct granule_range wish(uint32_t first, uint32_t count)
{
    return hak_huge_wish((struct granule_range){first, count});
}

static void skip_without_huge_pages(void)
{
    if (!hak_os_refuse_huge_pages(hak_granule_address(0), HAK_SUPERSLAB_BYTES))
        SKIP("the kernel has no huge pages");
}

TEST(whole_superslabs_are_asked_for)
{
    window();
    skip_without_huge_pages();
    CHECK_EQ(wish(1, S - 1).count, 0);
    CHECK_EQ(wish(1, 2 * S - 2).count, 0);
    CHECK_EQ(wish(S - 1, S).count, 0);
    struct granule_range got = wish(1, 4 * S);
    CHECK_EQ(got.first, S);
    CHECK_EQ(got.count, 3 * S);
    got = wish(4 * S, 4 * S);
    CHECK_EQ(got.first, 4 * S);
    CHECK_EQ(got.count, 4 * S);
}

TEST(what_was_asked_for_is_refused_once)
{
    window();
    skip_without_huge_pages();
    CHECK_EQ(refusals(0, 8 * S), 0);
    wish(0, 8 * S);
    CHECK_EQ(refusals(2 * S - 1, 2), 1); /* two superslabs in one call */
    CHECK_EQ(refusals(S, 2 * S), 0);
    CHECK_EQ(refusals(0, 8 * S), 2);
    CHECK_EQ(refusals(0, 8 * S), 0);
}

TEST(the_mappings_of_the_process_limit_it)
{
    window();
    skip_without_huge_pages();
    uint32_t half = hak_mappings_most() / 2;
    CHECK(hak_mappings_take(half - 3));
    struct granule_range got = wish(0, 8 * S);
    CHECK_EQ(got.first, 0);
    CHECK_EQ(got.count, 2 * S);
    CHECK_EQ(refusals(0, 8 * S), 1);
    hak_mappings_give(half - 3);
}
