/* SPDX-License-Identifier: MIT */
/* bench/workloads/histogram.h - how often each time was measured, log-linear.
 *
 * Owns        64 counts a doubling: a value is known within 1/64 of itself, below 64 exactly.
 * Invariants  the counts add up to `total`; `most` is the exact largest value.
 * Threads     a histogram belongs to one thread; merged when the threads have ended.
 * Tests       tests/tools/test_workloads.py
 */
#ifndef BENCH_WORKLOADS_HISTOGRAM_H
#define BENCH_WORKLOADS_HISTOGRAM_H

#include "bench.h"

#define HISTOGRAM_STEP_SHIFT 6
#define HISTOGRAM_STEPS (1u << HISTOGRAM_STEP_SHIFT)
#define HISTOGRAM_COUNTS ((65 - HISTOGRAM_STEP_SHIFT) * HISTOGRAM_STEPS)

struct histogram {
    uint64_t counts[HISTOGRAM_COUNTS];
    uint64_t total;
    uint64_t most;
};

/* Values below 64 have a count each; above, the leading one and the 6 bits behind it choose. */
static inline uint32_t histogram_index(uint64_t value)
{
    if (value < HISTOGRAM_STEPS) {
        return (uint32_t)value;
    }
    uint32_t shift = 63 - (uint32_t)__builtin_clzll(value) - HISTOGRAM_STEP_SHIFT;
    return (shift + 1) * HISTOGRAM_STEPS + (uint32_t)(value >> shift) % HISTOGRAM_STEPS;
}

/* The least value that is counted at an index. */
static inline uint64_t histogram_value(uint32_t index)
{
    if (index < HISTOGRAM_STEPS) {
        return index;
    }
    uint32_t shift = index / HISTOGRAM_STEPS - 1;
    return (uint64_t)(HISTOGRAM_STEPS + index % HISTOGRAM_STEPS) << shift;
}

static inline void histogram_add(struct histogram *histogram, uint64_t value)
{
    histogram->counts[histogram_index(value)]++;
    histogram->total++;
    histogram->most = value > histogram->most ? value : histogram->most;
}

static inline void histogram_merge(struct histogram *into, const struct histogram *from)
{
    for (uint32_t i = 0; i < HISTOGRAM_COUNTS; i++) {
        into->counts[i] += from->counts[i];
    }
    into->total += from->total;
    into->most = from->most > into->most ? from->most : into->most;
}

/* The value that a share of the measured ones does not exceed, rounded down by at most 1/64. */
static inline uint64_t histogram_quantile(const struct histogram *histogram, double share)
{
    uint64_t wanted = (uint64_t)((double)histogram->total * share);
    uint64_t below = 0;
    for (uint32_t i = 0; i < HISTOGRAM_COUNTS; i++) {
        below += histogram->counts[i];
        if (below > wanted) {
            return histogram_value(i);
        }
    }
    return histogram->most;
}

#endif
