/* SPDX-License-Identifier: MIT */
/* heap/draw.h - which allocations are sampled: each byte with the same probability.
 *
 * Owns        the mean distance in bytes between two samples, 0 while sampling is off, how often
 *             it is doubled, and the random numbers.
 * Invariants  a request that is counted as `bytes` is sampled with the probability 1 -
 *             e^(-bytes/mean), independent of earlier ones: by its bin's countdown, drawn from the
 *             geometric distribution, or by a separate draw. So sums over samples, each weighted
 *             with the inverse of its probability, have the true sums as their mean, for every size
 *             and site.
 * Argument    A pop that leaves the countdown alone costs nothing: the countdown is the distance to
 *             the next sample. The distribution has no memory: where a distance was not drawn, or
 *             is forgotten (a bin that moved away while its countdown was to be set, one from
 *             before sampling began), the pop that passes 0 draws separately, and a new distance is
 *             drawn then. A countdown is set in the section of an open bin that the thread is still
 *             on; else it stays, and runs out once without a sample of its own, at most 65,536 pops
 *             later. Distances beyond HAK_POPS_NOTED count as none: the countdown runs out, without
 *             a sample, and the next one is drawn. Where samples come faster than allowed, the mean
 *             doubles, and halves again when they come more slowly. A distance is drawn, and its
 *             sample weighted, with the mean of that draw (drawn[] remembers the doublings), so
 *             that a change of the rate biases no sum; it affects only the number of samples. Two
 *             threads may take turns on a processor between the draw and the store of what was
 *             drawn; one of them then uses the other's decision, one sample more or less at each
 *             such interruption.
 * Threads     any, signal handlers too. The mean is read relaxed: a draw while it changes may use
 *             the old or the new one.
 * Tests       tests/unit/heap/draw_test.c, tests/unit/heap/bins_test.c
 */
#ifndef HAK_HEAP_DRAW_H
#define HAK_HEAP_DRAW_H

#include "base/atomic.h"
#include "base/compiler.h"

/* What the countdown of a bin stands for. */
enum draw_state {
    DRAW_NONE,  /* nothing was drawn: the pop that passes 0 draws separately */
    DRAW_LATER, /* it is no sample: the distance is longer than the countdown */
    DRAW_DUE,   /* it is a sample; with one more for each doubling of the mean it was drawn with */
};
#define DRAW_DOUBLINGS_MOST 20u

/* The readers of samples. All read one stream, at the highest rate that one of them requests. */
enum draw_reader { DRAW_FOR_PROFILE, DRAW_FOR_RULES, DRAW_READERS };

/* The rate for rules of call sites: enough samples to follow 2,048 of them over two generations of
 * 64 MiB (learn/site_log.h); fewer once nothing has been decided for a while. */
#define HAK_DRAW_RULES_MEAN_BYTES ((uint64_t)64 << 10)
#define HAK_DRAW_RULES_SAMPLES 4000u
#define HAK_DRAW_RULES_QUIET_SAMPLES 500u

extern _Atomic uint64_t hak_draw_mean_bytes;
extern _Atomic uint64_t hak_draw_means_asked[DRAW_READERS]; /* 0: the reader does not read */
extern _Atomic uint64_t hak_draw_start_ms;                  /* since when the profile reads */
/* The mean that the profile reads at, or did when it stopped; 0: it never read. */
extern _Atomic uint64_t hak_draw_profile_mean_bytes;

HAK_INLINE bool hak_draw_is_on(void)
{
    return HAK_UNLIKELY(hak_load_relaxed(&hak_draw_mean_bytes) != 0);
}

HAK_INLINE bool hak_draw_is_for(enum draw_reader reader)
{
    return hak_load_relaxed(&hak_draw_means_asked[reader]) != 0;
}

/* Samples one byte in about so many from now on for this reader, about so many times a second at
 * most; 0: none, or any number of times. */
void hak_draw_start_for(enum draw_reader reader, uint64_t mean_bytes, uint64_t samples_a_second,
                        uint64_t now_ms);
/* The same for the profile. */
void hak_draw_start(uint64_t mean_bytes, uint64_t samples_a_second, uint64_t now_ms);

/* How often the mean is doubled now. */
uint32_t hak_draw_doublings(void);

/* A sample was taken: doubles the mean or halves it, by how fast they come. */
void hak_draw_pace(uint64_t now_ns);

/* The distance to the next sample in requests that count as `bytes` each, with the mean doubled
 * `times` times: from 1 on, at most `most` + 1, which stands for all beyond. */
uint32_t hak_draw_distance(size_t bytes, uint32_t times, uint32_t most);

/* How many requests such a sample stands for. As a whole number: rounded up or down at random, so
 * that the mean is right. */
uint64_t hak_draw_weight(size_t bytes, uint32_t times);

/* The same for a request that counts as `bytes`; 0: it is no sample. */
uint64_t hak_draw_coin(size_t bytes);

/* A random number of this thread's own sequence. */
uint64_t hak_draw_random(void);

#endif
