/* SPDX-License-Identifier: MIT */
/* tests/unit/span/span_bare_test.c - where address space is limited, the addresses of free spans go
 * back, too, and are mapped again, or lost to others. */
#include "check.h"
#include "faults.h"
#include "os/os.h"
#include "os/os_fault.h"
#include "os/os_huge.h"
#include "process/start.h"
#include "region/mappings.h"
#include "region/tag_map.h"
#include "span/span_free.h"
#include "span/span_heap.h"
#include "span/span_purge.h"

#include <string.h>
#include <sys/mman.h>

#define COUNT 64u

static size_t mapped_bytes(void)
{
    return hak_load_relaxed(&hak_region.mapped_bytes);
}

static size_t bare_bytes(void)
{
    return hak_load_relaxed(&hak_span_free.bare_bytes);
}

static void limit(size_t most_bytes)
{
    hak_store_relaxed(&hak_region.most_bytes, most_bytes);
}

/* As much is mapped as can be, and all addresses that are free are given back. */
static void be_short(void)
{
    limit(mapped_bytes());
    hak_span_strip();
}

static struct span *take(uint32_t count)
{
    bool is_zero;
    CHECK(hak_process_start());
    struct span *span = hak_span_take(count, 1, &is_zero);
    CHECK(span != NULL);
    unsigned char *start = hak_granule_address(span->first);
    CHECK(!is_zero || (*start == 0 && start[hak_span_bytes(span) - 1] == 0));
    memset(start, 1, hak_span_bytes(span));
    return span;
}

/* So many spans with used ones between them. */
static void take_apart(struct span **spans, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        spans[i] = take(COUNT);
        take(1);
    }
}

TEST(without_a_limit_addresses_stay_mapped)
{
    struct span *spans[4];
    take_apart(spans, 4);
    size_t mapped = mapped_bytes();
    for (int i = 0; i < 4; i++)
        hak_span_give(spans[i]);
    hak_span_purge(UINT64_MAX, 0, UINT32_MAX);
    CHECK_EQ(mapped_bytes(), mapped);
    CHECK_EQ(bare_bytes(), 0);
}

TEST(under_a_limit_a_share_stays_mapped_and_the_rest_is_returned)
{
    struct span *spans[8];
    size_t bytes = COUNT << HAK_GRANULE_SHIFT;
    take_apart(spans, 8);
    while (hak_span_clean_bytes() != 0)
        take(1);
    limit(16 * 3 * bytes);
    size_t mapped = mapped_bytes(), mappings = hak_mappings_count();
    for (int i = 0; i < 8; i++)
        hak_span_give(spans[i]);
    CHECK_EQ(mapped_bytes(), mapped - 5 * bytes);
    CHECK_EQ(bare_bytes(), 5 * bytes);
    CHECK_EQ(hak_span_warm_bytes(), 3 * bytes);
    CHECK_EQ(hak_mappings_count(), mappings + 5);
    CHECK(hak_span_heap_is_sound());
    for (int i = 0; i < 8; i++)
        spans[i] = take(COUNT);
    CHECK_EQ(mapped_bytes(), mapped);
    CHECK_EQ(hak_mappings_count(), mappings);
    CHECK(hak_span_heap_is_sound());
}

TEST(bare_neighbours_are_one_and_can_be_divided)
{
    struct span *one = take(COUNT), *other = take(COUNT);
    take(1);
    be_short();
    size_t bare = bare_bytes();
    uint32_t place = one->first < other->first ? one->first : other->first;
    hak_span_give(one);
    hak_span_give(other);
    CHECK_EQ(bare_bytes() - bare, 2 * (size_t)COUNT << HAK_GRANULE_SHIFT);
    CHECK_EQ(take(2 * COUNT)->first, place);
    CHECK(hak_span_heap_is_sound());
}

TEST(addresses_that_others_took_are_lost_and_others_serve)
{
    struct span *span = take(COUNT);
    take(1);
    be_short();
    unsigned char *start = hak_granule_address(span->first);
    hak_span_give(span);
    CHECK_EQ(mmap(start + HAK_GRANULE_BYTES, HAK_GRANULE_BYTES, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
             start + HAK_GRANULE_BYTES);
    start[HAK_GRANULE_BYTES] = 7;
    struct span *instead = take(COUNT);
    CHECK((unsigned char *)hak_granule_address(instead->first) != start);
    CHECK_EQ(start[HAK_GRANULE_BYTES], 7);
    CHECK(hak_span_lost_bytes() > 0);
    CHECK(hak_span_heap_is_sound());
}

TEST(a_bare_span_does_not_grow_into_its_neighbour_by_accident)
{
    struct span *one = take(COUNT), *behind = take(COUNT);
    take(1);
    be_short();
    if (behind->first != one->first + COUNT)
        SKIP("the spans are no neighbours");
    hak_span_give(behind);
    CHECK(!hak_span_extend(one, COUNT + 1));
    CHECK(hak_span_heap_is_sound());
}

TEST(when_the_kernel_refuses_to_map_again_addresses_stay_free)
{
    need_faults();
    struct span *span = take(COUNT);
    take(1);
    be_short();
    hak_span_give(span);
    size_t bare = bare_bytes();
    bool is_zero;
    fail_every(1, FAULT_MAP);
    CHECK_EQ(hak_span_take(COUNT, 1, &is_zero), NULL);
    hak_os_fault_every(0);
    CHECK_EQ(bare_bytes(), bare);
    CHECK(hak_span_heap_is_sound());
    take(COUNT);
}

TEST(one_span_that_the_kernel_refuses_does_not_stop_the_others)
{
    need_faults();
    struct span *spans[6];
    size_t bytes = COUNT << HAK_GRANULE_SHIFT;
    hak_store_relaxed(&hak_os_fault.huge_pages, HUGE_NEVER + 1); /* no advice but the purges */
    take_apart(spans, 6);
    while (hak_span_clean_bytes() != 0)
        take(1);
    for (int i = 0; i < 6; i++)
        hak_span_give(spans[i]);
    fail_every(3, FAULT_ADVISE);
    CHECK_EQ(hak_span_purge(UINT64_MAX, 0, UINT32_MAX), 4 * bytes);
    CHECK_EQ(hak_span_warm_bytes(), 2 * bytes);
    hak_os_fault_every(0);
    CHECK(hak_span_heap_is_sound());
    CHECK_EQ(hak_span_purge(UINT64_MAX, 0, UINT32_MAX), 2 * bytes);
}
