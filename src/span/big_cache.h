/* SPDX-License-Identifier: MIT */
/* span/big_cache.h - how much freed memory of large blocks is kept, and for how long.
 *
 * Owns        the log of spans (learn/keep_time.h), and whether the slack above the peak is
 *             doubled.
 * Invariants  what is served is logged whatever its length, since what leaves is: free spans join;
 *             but for what costs nothing (hak_big_cache_is_free).
 *             Without a log the numbers are those of the policy table; the slack is at most
 *             doubled.
 * Threads     what writes is under the SPAN lock; the bounds are read without it.
 * Tests       tests/unit/span/big_cache_test.c
 */
#ifndef HAK_SPAN_BIG_CACHE_H
#define HAK_SPAN_BIG_CACHE_H

#include "base/compiler.h"
#include "learn/keep_time.h"

/* False while few large blocks were ever live together and none of their freed memory was needed
 * again: then it is not kept, since a small program's first large blocks are often its last ones
 * (docs/adr/0020-first-large-blocks.md). */
bool hak_big_cache_is_needed(void);

/* The user wishes that free memory stays: nothing of it goes back early. */
bool hak_big_cache_is_wished(void);

/* While it is not needed: a freed block's granules were purged, or the kernel refused; a block
 * needs granules, so the cache is needed if one of that length was purged. */
void hak_big_cache_note_given_up(uint32_t count, bool is_gone);
void hak_big_cache_note_wanted(uint32_t count);

/* The maximum of warm free spans, given the live memory and its peak. */
size_t hak_big_cache_most_bytes(size_t live_bytes, size_t peak_bytes);

/* How long a free span stays warm. */
uint64_t hak_big_cache_keep_ms(void);

/* Reads the log, and starts it with that of another run; outside the SPAN lock. */
void hak_big_cache_learned(struct keep_evidence *seen);
bool hak_big_cache_begin(const struct keep_evidence *seen);

/* A span was served, of which so many granules were warm and free since `freed_ms`;
 * `warm_bytes` were warm before. */
struct big_serve {
    uint64_t now_ms;
    uint64_t freed_ms;
    size_t warm_bytes;
    uint32_t count;
    uint32_t warm_count;
};
void hak_big_cache_served(const struct big_serve *serve);

/* Whether a warm span that was freed then costs nothing, so that the log need not know that it was
 * served. Any thread. */
bool hak_big_cache_is_free(uint64_t freed_ms, uint64_t now_ms);

/* Why a free span is purged. */
enum big_leave { LEAVES_AGED, LEAVES_EVICTED, LEAVES_TRIMMED };
void hak_big_cache_left(uint32_t count, uint64_t freed_ms, uint64_t now_ms, enum big_leave why);

#endif
