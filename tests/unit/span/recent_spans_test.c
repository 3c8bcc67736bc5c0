/* SPDX-License-Identifier: MIT */
/* tests/unit/span/recent_spans_test.c - a few spans wait in places, and no more than may. */
#include "span/recent_spans.h"

#include "check.h"

#include <stdalign.h>

/* As many as one test makes, at most. */
#define RECORDS 32u

static struct recent_spans recent;
static struct span *unfit;

/* A record alone; nothing looks at its granules. */
static struct span *make(uint32_t count)
{
    static struct {
        alignas(HAK_CACHE_LINE_BYTES) struct span span;
    } records[RECORDS];
    static uint32_t used;
    CHECK(used < RECORDS);
    struct span *span = &records[used++].span;
    span->count = count;
    return span;
}

static struct span *put(uint32_t count)
{
    struct span *span = make(count);
    _Atomic uintptr_t *place = hak_recent_place_for(&recent, count);
    CHECK(place != NULL);
    CHECK_EQ(hak_recent_put(place, span), NULL);
    return span;
}

TEST(the_shortest_that_fits_is_taken)
{
    struct span *six = put(6), *four = put(4), *five = put(5);
    CHECK_EQ(hak_recent_take(&recent, 7, 8, &unfit), NULL);
    CHECK_EQ(hak_recent_take(&recent, 2, 3, &unfit), NULL);
    CHECK_EQ(unfit, NULL);
    CHECK_EQ(hak_recent_count(&recent), 3);
    CHECK_EQ(hak_recent_bytes(&recent), 15 * HAK_GRANULE_BYTES);
    CHECK_EQ(hak_recent_take(&recent, 3, 6, &unfit), four);
    CHECK_EQ(hak_recent_take(&recent, 5, 5, &unfit), five);
    CHECK_EQ(hak_recent_take(&recent, 5, 5, &unfit), NULL);
    CHECK_EQ(hak_recent_take(&recent, 3, 6, &unfit), six);
    CHECK_EQ(hak_recent_count(&recent), 0);
    CHECK_EQ(hak_recent_bytes(&recent), 0);
}

TEST(every_length_is_found_again)
{
    for (uint32_t count = 1; count <= HAK_RECENT_GRANULES_MOST; count++) {
        struct span *span = put(count);
        CHECK_EQ(hak_recent_bytes(&recent), count * HAK_GRANULE_BYTES);
        CHECK_EQ(hak_recent_take(&recent, count, count, &unfit), span);
    }
}

TEST(there_is_no_place_for_a_span_too_many_or_too_long)
{
    for (uint32_t i = 0; i < HAK_RECENT_PLACES; i++)
        put(1);
    CHECK_EQ(hak_recent_place_for(&recent, 1), NULL);
    CHECK(hak_recent_pop(&recent) != NULL);
    CHECK(hak_recent_place_for(&recent, HAK_RECENT_GRANULES_MOST - 3) != NULL);
    CHECK_EQ(hak_recent_place_for(&recent, HAK_RECENT_GRANULES_MOST - 2), NULL);
    while (hak_recent_pop(&recent) != NULL)
        continue;
    CHECK(hak_recent_place_for(&recent, HAK_RECENT_GRANULES_MOST) != NULL);
}

TEST(those_that_came_first_leave_first)
{
    struct span *spans[HAK_RECENT_PLACES];
    CHECK_EQ(hak_recent_pop(&recent), NULL);
    for (uint32_t i = 0; i < HAK_RECENT_PLACES; i++)
        spans[i] = put(i + 1);
    for (uint32_t i = 0; i < 3 * HAK_RECENT_PLACES; i++) {
        uint32_t oldest = i % HAK_RECENT_PLACES;
        CHECK_EQ(hak_recent_pop(&recent), spans[oldest]);
        spans[oldest] = put(oldest + 1);
    }
}

TEST(one_that_came_in_between_is_handed_over)
{
    struct span *three = make(3), *five = make(5);
    _Atomic uintptr_t *place = hak_recent_place_for(&recent, 3);
    CHECK_EQ(hak_recent_put(place, five), NULL);
    CHECK_EQ(hak_recent_put(place, three), five);
    CHECK_EQ(hak_recent_take(&recent, 3, 3, &unfit), three);
}

TEST(one_that_lies_as_asked_is_taken)
{
    struct span *other = put(3), *unaligned = put(5), *aligned = put(5);
    uint32_t base = (uint32_t)(hak_region.base >> HAK_GRANULE_SHIFT);
    other->first = 64 - base % 64;
    unaligned->first = 64 - base % 64 + 1;
    aligned->first = 64 - base % 64 + 32;
    CHECK_EQ(hak_recent_take_aligned(&recent, (struct span_fit){4, 64, 0}, 5, &unfit), NULL);
    CHECK_EQ(hak_recent_take_aligned(&recent, (struct span_fit){4, 2, 0}, 4, &unfit), NULL);
    CHECK_EQ(hak_recent_take_aligned(&recent, (struct span_fit){4, 2, 0}, 5, &unfit), aligned);
    CHECK_EQ(hak_recent_take_aligned(&recent, (struct span_fit){4, 2, 0}, 5, &unfit), NULL);
    CHECK_EQ(unfit, NULL);
    CHECK_EQ(hak_recent_take_aligned(&recent, (struct span_fit){2, 64, 0}, 5, &unfit), other);
    CHECK_EQ(hak_recent_take(&recent, 5, 5, &unfit), unaligned);
}

TEST(one_takes_the_place_of_the_first_and_what_is_too_much_leaves)
{
    struct span *spans[HAK_RECENT_PLACES];
    for (uint32_t i = 0; i < HAK_RECENT_PLACES; i++)
        spans[i] = put(3);
    CHECK_EQ(hak_recent_pop_excess(&recent), NULL);
    struct span *longest = make(HAK_RECENT_GRANULES_MOST);
    CHECK_EQ(hak_recent_keep(&recent, longest), spans[0]);
    for (uint32_t i = 1; i < HAK_RECENT_PLACES; i++)
        CHECK_EQ(hak_recent_pop_excess(&recent), spans[i]);
    CHECK_EQ(hak_recent_pop_excess(&recent), NULL);
    CHECK_EQ(hak_recent_pop(&recent), longest);
}
