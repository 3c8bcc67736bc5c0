/* SPDX-License-Identifier: MIT */
#include "heap/draw.h"

#include "base/bits.h"

_Atomic uint64_t hak_draw_mean_bytes;
_Atomic uint64_t hak_draw_start_ms;

static _Atomic uint64_t sequence_count;
static HAK_TLS uint64_t random_state;

/* Addresses differ from process to process, and sequences begin with their number: that of a thread
 * is not that of the one before, which stood at the same address. */
uint64_t hak_draw_random(void)
{
    uint64_t state = random_state;
    if (HAK_UNLIKELY(state == 0))
        state = hak_bit_mix(((uintptr_t)&random_state << 20) +
                            hak_fetch_add_relaxed(&sequence_count, 1)) |
                1;
    random_state = state + 0x9e3779b97f4a7c15ull;
    return hak_bit_mix(state);
}

/* -ln(u) for a random u between 0 and 1: exponential, of mean 1. */
static double draw_exponential(void)
{
    uint64_t random = hak_draw_random() | 1;
    int zeros = __builtin_clzll(random);
    double part = (double)(random << zeros) / 0x1p63; /* u = part / 2^(zeros + 1), 1 <= part < 2 */
    double z = (part - 1) / (part + 1), square = z * z, sum = 0;
    for (int i = 21; i > 0; i -= 2) /* ln(part) = 2 artanh(z), and z is below 1/3 */
        sum = sum * square + 1.0 / i;
    return (zeros + 1) * 0.69314718055994531 - 2 * z * sum;
}

/* 1 - e^-x: by its series below 1/16, doubled from there. */
static double chance(double x)
{
    int doublings = 0;
    if (x > 44)
        return 1;
    while (x > 0.0625) {
        x /= 2;
        doublings++;
    }
    double sum = x * (1 - x / 2 * (1 - x / 3 * (1 - x / 4 * (1 - x / 5 * (1 - x / 6)))));
    for (; doublings > 0; doublings--)
        sum *= 2 - sum;
    return sum;
}

void hak_draw_start(uint64_t mean_bytes, uint64_t now_ms)
{
    hak_store_relaxed(&hak_draw_start_ms, now_ms);
    hak_store_relaxed(&hak_draw_mean_bytes, mean_bytes);
}

uint32_t hak_draw_distance(size_t bytes, uint32_t most)
{
    double mean = (double)hak_load_relaxed(&hak_draw_mean_bytes);
    double distance = draw_exponential() * mean / (double)bytes;
    return distance >= most ? most + 1 : (uint32_t)distance + 1;
}

bool hak_draw_coin(size_t bytes)
{
    double mean = (double)hak_load_relaxed(&hak_draw_mean_bytes);
    return draw_exponential() * mean < (double)bytes;
}

uint64_t hak_draw_weight(size_t bytes)
{
    uint64_t mean = hak_load_relaxed(&hak_draw_mean_bytes);
    if (mean == 0)
        return 1; /* sampling has just ended */
    double weight = 1 / chance((double)bytes / (double)mean);
    uint64_t whole = (uint64_t)weight;
    double rest = (double)(hak_draw_random() >> 11) / 0x1p53;
    return whole + (rest < weight - (double)whole);
}
