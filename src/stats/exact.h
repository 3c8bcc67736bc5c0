/* SPDX-License-Identifier: MIT */
/* stats/exact.h - requests, counted one by one: stats=exact.
 *
 * Owns        how many blocks of which sizes were requested, and how many were freed.
 * Invariants  with stats=exact no bin has slots, so that every call is counted here; without it
 *             nothing is counted or shown: there are no estimates. What a call does inside -
 *             realloc that allocates, copies and frees - is one call. Requests refused for what
 *             they say (a wrong alignment, more than PTRDIFF_MAX) are not among them; those that
 *             memory did not suffice for are, and once more for each time that operator new tries
 *             again. Blocks that hakmem_heap_destroy frees count as no free.
 * Threads     any, past their end and in signal handlers too: relaxed additions, nothing is
 *             ordered by them. A child of fork goes on from its parent's numbers.
 * Tests       tests/preload/exact_preload.py
 */
#ifndef HAK_STATS_EXACT_H
#define HAK_STATS_EXACT_H

#include "misuse/harden.h"

/* Counts a request, where requests are counted; true when hardened mode serves it. Starts the
 * process if need be. */
bool hak_exact_request_slow(size_t bytes);
HAK_INLINE bool hak_exact_request(size_t bytes)
{
    uint32_t set = hak_load_relaxed(&hak_harden);
    bool is_counted = (set & (HARDEN_COUNTED | HARDEN_UNSTARTED)) != 0;
    return HAK_UNLIKELY(set != 0) && (!is_counted || hak_exact_request_slow(bytes));
}

/* The same for a free and a realloc of a block. */
void hak_exact_free(void);
void hak_exact_realloc(size_t bytes);

struct snapshot;
/* Writes the counts into a snapshot. */
void hak_exact_read(struct snapshot *snapshot);

#endif
