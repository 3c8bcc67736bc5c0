/* SPDX-License-Identifier: MIT */
#include "heap/draw.h"

#include "base/bits.h"
#include "base/float_state.h"

_Atomic uint64_t hak_draw_mean_bytes;
_Atomic uint64_t hak_draw_means_asked[DRAW_READERS];
_Atomic uint64_t hak_draw_start_ms;
_Atomic uint64_t hak_draw_profile_mean_bytes;

/* A pace is kept by the time at which it would be reached if each sample took its share: 67 ms
 * ahead of now is too fast, and with each doubling a quarter of that more (docs/adr/0035). */
#define AHEAD_MOST_NS ((uint64_t)1 << 26)
#define AHEAD_MORE_NS (AHEAD_MOST_NS / 4)

static _Atomic uint64_t rates_asked[DRAW_READERS];
static _Atomic uint64_t sample_ns; /* a sample's share of the pace; 0: no pace */
static _Atomic uint64_t paced_ns;  /* the samples so far reach until then */
static _Atomic uint32_t mean_doublings;

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

/* Even numbers below 2^53. */
#define EVEN_BITS 53
static uint64_t draw_even(void)
{
    return hak_draw_random() >> (64 - EVEN_BITS);
}

/* 1 - e^-x: by its series below 1/16, doubled from there. */
static double chance_within(double x)
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

void hak_draw_start_for(enum draw_reader reader, uint64_t mean_bytes, uint64_t samples_a_second,
                        uint64_t now_ms)
{
    uint64_t mean = 0, rate = 0;
    bool is_paced = true;
    hak_store_relaxed(&rates_asked[reader], samples_a_second);
    hak_store_relaxed(&hak_draw_means_asked[reader], mean_bytes);
    for (int i = 0; i < DRAW_READERS; i++) {
        uint64_t asked = hak_load_relaxed(&hak_draw_means_asked[i]);
        uint64_t rate_asked = hak_load_relaxed(&rates_asked[i]);
        if (asked == 0)
            continue;
        mean = mean == 0 ? asked : hak_least(mean, asked);
        rate = hak_most(rate, rate_asked);
        is_paced = is_paced && rate_asked != 0;
    }
    hak_store_relaxed(&mean_doublings, 0);
    hak_store_relaxed(&sample_ns, is_paced && rate != 0 ? 1000000000 / rate : 0);
    if (reader == DRAW_FOR_PROFILE)
        hak_store_relaxed(&hak_draw_start_ms, now_ms);
    if (hak_draw_is_for(DRAW_FOR_PROFILE))
        hak_store_relaxed(&hak_draw_profile_mean_bytes, mean);
    hak_store_relaxed(&hak_draw_mean_bytes, mean);
}

void hak_draw_start(uint64_t mean_bytes, uint64_t samples_a_second, uint64_t now_ms)
{
    hak_draw_start_for(DRAW_FOR_PROFILE, mean_bytes, samples_a_second, now_ms);
}

uint32_t hak_draw_doublings(void)
{
    return hak_load_relaxed(&mean_doublings);
}

static uint64_t mean_after(uint32_t times)
{
    return hak_load_relaxed(&hak_draw_mean_bytes) << times;
}

static HAK_NOINLINE uint32_t distance_of(size_t bytes, uint64_t mean, uint32_t most)
{
    double distance = draw_exponential() * (double)mean / (double)bytes;
    return distance >= most ? most + 1 : (uint32_t)distance + 1;
}

uint32_t hak_draw_distance(size_t bytes, uint32_t times, uint32_t most)
{
    struct float_state state = hak_float_begin();
    uint32_t distance = distance_of(bytes, mean_after(times), most);
    hak_float_end(state);
    return distance;
}

/* 1 / chance as a whole number: rounded up or down at random. */
static uint64_t weigh(double chance)
{
    double weight = 1 / chance;
    uint64_t whole = (uint64_t)weight;
    return whole + ((double)draw_even() / 0x1p53 < weight - (double)whole);
}

/* Where the draw, `even`, is within the chance: its weight; else 0. */
static HAK_NOINLINE uint64_t weight_of(size_t bytes, uint64_t mean, uint64_t even)
{
    double chance = chance_within((double)bytes / (double)mean);
    return (double)even / 0x1p53 < chance ? weigh(chance) : 0;
}

static uint64_t draw_weight(size_t bytes, uint64_t mean, uint64_t even)
{
    struct float_state state = hak_float_begin();
    uint64_t weight = weight_of(bytes, mean, even);
    hak_float_end(state);
    return weight;
}

/* In whole numbers as long as it is surely no sample. */
uint64_t hak_draw_coin(size_t bytes)
{
    uint64_t mean = mean_after(hak_draw_doublings()), even = draw_even();
    if (HAK_LIKELY((unsigned __int128)even * mean >= (unsigned __int128)bytes << EVEN_BITS) ||
        mean == 0)
        return 0; /* as the chance is below bytes / mean */
    return draw_weight(bytes, mean, even);
}

uint64_t hak_draw_weight(size_t bytes, uint32_t times)
{
    uint64_t mean = mean_after(times);
    return mean == 0 ? 1 /* sampling has just ended */ : draw_weight(bytes, mean, 0);
}

/* Two threads at once may count one sample, or one doubling, for both. */
void hak_draw_pace(uint64_t now_ns)
{
    uint64_t share_ns = hak_load_relaxed(&sample_ns), until_ns = hak_load_relaxed(&paced_ns);
    uint32_t times = hak_load_relaxed(&mean_doublings);
    if (until_ns <= now_ns) {
        until_ns = now_ns;
        if (times > 0)
            hak_store_relaxed(&mean_doublings, times - 1);
    } else if (until_ns - now_ns > AHEAD_MOST_NS + times * AHEAD_MORE_NS &&
               times < DRAW_DOUBLINGS_MOST) {
        hak_store_relaxed(&mean_doublings, times + 1);
    }
    hak_store_relaxed(&paced_ns, until_ns + share_ns);
}
