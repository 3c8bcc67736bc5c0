/* SPDX-License-Identifier: MIT */
/* tests/unit/base/bits_test.c - arithmetic on bits, sizes and alignments. */
#include "base/bits.h"
#include "check.h"

TEST(each_single_bit_is_lowest_and_highest)
{
    for (uint32_t bit = 0; bit < 64; bit++) {
        CHECK_EQ(hak_bit_lowest(1ull << bit), bit);
        CHECK_EQ(hak_bit_highest(1ull << bit), bit);
    }
}

TEST(lowest_and_highest_ignore_the_bits_between)
{
    CHECK_EQ(hak_bit_lowest(0xf0f0), 4);
    CHECK_EQ(hak_bit_highest(0xf0f0), 15);
    CHECK_EQ(hak_bit_lowest(~0ull), 0);
    CHECK_EQ(hak_bit_highest(~0ull), 63);
}

TEST(bits_are_counted_as_the_compiler_counts_them)
{
    uint64_t word = 88172645463325252ull;
    for (int round = 0; round < 1000; round++) {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        CHECK_EQ(hak_bit_count(word), __builtin_popcountll(word));
    }
    CHECK_EQ(hak_bit_count(0), 0);
    CHECK_EQ(hak_bit_count(~0ull), 64);
}

TEST(bits_are_found_by_rank)
{
    for (uint32_t rank = 0; rank < 64; rank++)
        CHECK_EQ(hak_bit_of_rank(~0ull, rank), rank);
    CHECK_EQ(hak_bit_of_rank(0x8000000000000011, 0), 0);
    CHECK_EQ(hak_bit_of_rank(0x8000000000000011, 1), 4);
    CHECK_EQ(hak_bit_of_rank(0x8000000000000011, 2), 63);
}

TEST(a_low_mask_may_be_empty_or_whole)
{
    CHECK_EQ(hak_bit_low_mask(0), 0);
    CHECK_EQ(hak_bit_low_mask(1), 1);
    CHECK_EQ(hak_bit_low_mask(63), ~0ull >> 1);
    CHECK_EQ(hak_bit_low_mask(64), ~0ull);
}

TEST(zero_is_no_power_of_two)
{
    CHECK_EQ(hak_power_of_two_up(0), 1);
    CHECK_EQ(hak_power_of_two_up(1), 1);
    CHECK_EQ(hak_power_of_two_up(5), 8);
    CHECK_EQ(hak_power_of_two_up(8), 8);
    CHECK_EQ(hak_power_of_two_up(((size_t)1 << 62) + 1), (size_t)1 << 63);
    CHECK(!hak_is_power_of_two(0));
    CHECK(!hak_is_power_of_two(6));
    for (uint32_t shift = 0; shift < 64; shift++)
        CHECK(hak_is_power_of_two((size_t)1 << shift));
}

TEST(aligning_leaves_aligned_values_alone)
{
    for (size_t alignment = 1; alignment <= 4096; alignment *= 2) {
        CHECK_EQ(hak_align_up(0, alignment), 0);
        CHECK_EQ(hak_align_up(alignment, alignment), alignment);
        CHECK_EQ(hak_align_down(alignment, alignment), alignment);
        CHECK_EQ(hak_align_up(alignment + 1, alignment), alignment == 1 ? 2 : 2 * alignment);
        CHECK_EQ(hak_align_down(2 * alignment - 1, alignment), alignment);
    }
}

TEST(clamp_keeps_values_between_its_bounds)
{
    CHECK_EQ(hak_clamp(5, 10, 20), 10);
    CHECK_EQ(hak_clamp(15, 10, 20), 15);
    CHECK_EQ(hak_clamp(25, 10, 20), 20);
    CHECK_EQ(hak_least(1, 2), 1);
    CHECK_EQ(hak_most(1, 2), 2);
}

TEST(a_share_is_rounded_and_never_overflows)
{
    CHECK_EQ(hak_share(1, 3, 1000), 333);
    CHECK_EQ(hak_share(2, 3, 1000), 667);
    CHECK_EQ(hak_share(0, 0, 1000), 0);
    CHECK_EQ(hak_share(5, 0, 1000), 0);
    CHECK_EQ(hak_share(UINT64_MAX, UINT64_MAX, 1000), 1000);
    CHECK_EQ(hak_share(UINT64_MAX / 2, UINT64_MAX, 1000), 500);
}
