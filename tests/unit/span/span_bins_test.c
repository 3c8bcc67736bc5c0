/* SPDX-License-Identifier: MIT */
/* tests/unit/span/span_bins_test.c - free spans are found by their length: the smallest that fits,
 * of equals the one in front. */
#include "base/bits.h"
#include "check.h"
#include "process/start.h"
#include "span/span_bins.h"

#define SPANS_MOST 1024

static struct span spans[SPANS_MOST];
static struct span_bins bins;
static uint32_t count;

static struct span *add(uint32_t first, uint32_t granules)
{
    CHECK(count < SPANS_MOST);
    struct span *span = &spans[count++];
    *span = (struct span){.first = first, .count = granules};
    hak_span_bins_insert(&bins, span);
    return span;
}

static struct span *find(uint32_t granules)
{
    return hak_span_bins_find(&bins, (struct span_fit){.count = granules, .alignment = 1});
}

TEST(counts_up_to_64_have_a_bin_each_and_longer_ones_eight_a_doubling)
{
    for (uint32_t i = 1; i <= 64; i++)
        CHECK_EQ(hak_span_bin_of(i), i - 1);
    uint32_t bin = HAK_SPAN_BIN_EXACT;
    for (uint32_t start = 64; start < 1u << 16; start *= 2)
        for (uint32_t i = 0; i < 8; i++, bin++) {
            uint32_t least = start + i * (start / 8);
            CHECK_EQ(hak_span_bin_of(least + (least == 64)), bin);
            CHECK_EQ(hak_span_bin_of(least + start / 8 - 1), bin);
        }
}

TEST(the_smallest_that_fits_serves_and_of_equals_the_one_in_front)
{
    add(40, 79);
    struct span *behind = add(30, 74), *front = add(10, 74), *between = add(20, 74);
    struct span *longer = add(5, 77);
    add(0, 72);
    CHECK_EQ(find(73), front);
    hak_span_bins_remove(&bins, front);
    CHECK_EQ(find(73), between);
    hak_span_bins_remove(&bins, between);
    CHECK_EQ(find(73), behind);
    CHECK_EQ(find(75), longer);
    CHECK_EQ(find(80), NULL);
}

TEST(shorter_spans_are_never_found_and_longer_ones_in_any_bin_are)
{
    for (uint32_t i = 0; i < 5; i++) {
        static const uint32_t lengths[] = {3, 63, 64, 200, 5000};
        struct span *only = add(100, lengths[i]);
        for (uint32_t wanted = 1; wanted <= lengths[i]; wanted++)
            CHECK_EQ(find(wanted), only);
        for (uint32_t wanted = lengths[i] + 1; wanted < 2 * lengths[i] + 80; wanted++)
            CHECK_EQ(find(wanted), NULL);
        hak_span_bins_remove(&bins, only);
        CHECK_EQ(find(1), NULL);
    }
}

TEST(an_empty_bin_is_passed_and_one_with_others_is_kept)
{
    struct span *one = add(1, 7), *other = add(20, 7), *longer = add(40, 9);
    hak_span_bins_remove(&bins, one);
    CHECK_EQ(find(7), other);
    CHECK(hak_span_bins_has(&bins, hak_span_bin_of(7)));
    hak_span_bins_remove(&bins, other);
    CHECK(!hak_span_bins_has(&bins, hak_span_bin_of(7)));
    CHECK_EQ(find(7), longer);
}

/* The newest spans of a bin are looked at first. */
TEST(behind_many_of_a_bin_that_are_too_short_one_with_room_is_found)
{
    struct span *fits = add(1, 79);
    for (uint32_t i = 0; i < 500; i++)
        add(100 + i * 100, 72);
    add(60000, 80);
    CHECK_EQ(find(75), fits);
}

TEST(behind_many_that_are_not_aligned_one_with_room_is_found)
{
    struct span *fits = add(64, 32);
    for (uint32_t i = 0; i < 40; i++)
        add(1001 + i * 32, 32);
    struct span_fit fit = {.count = 32, .alignment = 32};
    CHECK_EQ(hak_span_bins_find(&bins, fit), fits);
}

/* By trying each granule. */
static uint32_t place_of(const struct span *span, struct span_fit fit)
{
    size_t base = hak_region.base >> HAK_GRANULE_SHIFT;
    for (uint32_t at = span->first; at + fit.count <= span->first + span->count; at++)
        if ((base + at - fit.phase) % fit.alignment == 0)
            return at;
    return UINT32_MAX;
}

TEST(a_fit_lies_at_the_first_granule_of_its_alignment_and_phase)
{
    CHECK(hak_process_start());
    for (uint32_t first = 16; first < 32; first++)
        for (uint32_t granules = 1; granules < 24; granules++) {
            struct span span = {.first = first, .count = granules};
            for (uint32_t alignment = 1; alignment <= 8; alignment *= 2)
                for (uint32_t phase = 0; phase < alignment; phase++)
                    for (uint32_t wanted = 1; wanted < 12; wanted++) {
                        struct span_fit fit = {wanted, alignment, phase};
                        CHECK_EQ(hak_span_place(&span, fit), place_of(&span, fit));
                    }
        }
}
