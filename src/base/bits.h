/* SPDX-License-Identifier: MIT */
/* base/bits.h - arithmetic on bits, sizes and alignments.
 *
 * Owns        nothing; pure functions.
 * Invariants  none needs an instruction beyond the baseline of the target.
 * Tests       tests/unit/base/bits_test.c
 */
#ifndef HAK_BASE_BITS_H
#define HAK_BASE_BITS_H

#include "base/compiler.h"

/* Index of the lowest set bit; `word` is not 0. */
HAK_INLINE uint32_t hak_bit_lowest(uint64_t word)
{
    return (uint32_t)__builtin_ctzll(word);
}

/* Index of the highest set bit; `word` is not 0. */
HAK_INLINE uint32_t hak_bit_highest(uint64_t word)
{
    return 63u - (uint32_t)__builtin_clzll(word);
}

/* Number of set bits, without the popcnt instruction that the baseline lacks. */
HAK_INLINE uint32_t hak_bit_count(uint64_t word)
{
    word -= (word >> 1) & 0x5555555555555555ull;
    word = (word & 0x3333333333333333ull) + ((word >> 2) & 0x3333333333333333ull);
    word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0full;
    return (uint32_t)((word * 0x0101010101010101ull) >> 56);
}

/* Index of the set bit with `rank` set bits below it; `word` has more than those. */
HAK_INLINE uint32_t hak_bit_of_rank(uint64_t word, uint32_t rank)
{
    for (; rank != 0; rank--)
        word &= word - 1;
    return hak_bit_lowest(word);
}

/* Mixes all bits into all bits (the finalizer of SplitMix64). */
HAK_INLINE uint64_t hak_bit_mix(uint64_t word)
{
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9ull;
    word = (word ^ word >> 27) * 0x94d049bb133111ebull;
    return word ^ word >> 31;
}

/* The largest whole number whose square is no more. */
HAK_INLINE uint64_t hak_root(uint64_t square)
{
    uint64_t root = 0;
    for (uint64_t bit = UINT64_C(1) << 31; bit != 0; bit >>= 1)
        if ((root | bit) * (root | bit) <= square)
            root |= bit;
    return root;
}

/* `count` low bits set; count is 0 to 64. */
HAK_INLINE uint64_t hak_bit_low_mask(uint32_t count)
{
    return count >= 64 ? ~0ull : (1ull << count) - 1;
}

HAK_INLINE bool hak_is_power_of_two(size_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

/* The least power of two that is no less; `value` is at most the largest one. */
HAK_INLINE size_t hak_power_of_two_up(size_t value)
{
    return value <= 1 ? 1 : (size_t)1 << (hak_bit_highest(value - 1) + 1);
}

/* `value` rounded up to a multiple of `alignment`, a power of two; the caller excludes overflow. */
HAK_INLINE size_t hak_align_up(size_t value, size_t alignment)
{
    return (value + alignment - 1) & ~(alignment - 1);
}

HAK_INLINE size_t hak_align_down(size_t value, size_t alignment)
{
    return value & ~(alignment - 1);
}

HAK_INLINE size_t hak_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

HAK_INLINE size_t hak_most(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* The bytes of `count` things; SIZE_MAX, which no request gets, when that is more. */
HAK_INLINE size_t hak_product(size_t count, size_t bytes)
{
    size_t total;
    return __builtin_mul_overflow(count, bytes, &total) ? SIZE_MAX : total;
}

/* By how much `whole` is more than `part`; 0: it is not. */
HAK_INLINE size_t hak_excess(size_t whole, size_t part)
{
    return whole > part ? whole - part : 0;
}

/* part * scale / whole, rounded; 0 for a whole of 0. Numbers beyond all memory cost precision. */
HAK_INLINE uint64_t hak_share(uint64_t part, uint64_t whole, uint64_t scale)
{
    uint64_t product;
    while (__builtin_mul_overflow(part, scale, &product) ||
           __builtin_add_overflow(product, whole / 2, &product)) {
        part >>= 1;
        whole >>= 1;
    }
    return whole == 0 ? 0 : product / whole;
}

HAK_INLINE size_t hak_clamp(size_t value, size_t least, size_t most)
{
    return hak_most(least, hak_least(value, most));
}

#endif
