/* SPDX-License-Identifier: MIT */
/* span/span_lock.h - the lock of the free spans.
 *
 * Owns        the lock of rank SPAN.
 * Invariants  held for every access to free spans, their bins and groups of large blocks, to the
 *             log of span/big_cache.h, and to the pace of span/huge_blocks.c; never across a system
 *             call.
 * Threads     any.
 * Tests       tests/race/span_race.c
 */
#ifndef HAK_SPAN_SPAN_LOCK_H
#define HAK_SPAN_SPAN_LOCK_H

#include "os/lock.h"

extern struct hak_lock hak_span_lock_word;

HAK_INLINE void hak_span_lock(void)
{
    hak_lock_take(&hak_span_lock_word);
}

HAK_INLINE void hak_span_unlock(void)
{
    hak_lock_give(&hak_span_lock_word);
}

/* Some thread holds it at this moment. */
HAK_INLINE bool hak_span_lock_is_busy(void)
{
    return hak_load_relaxed(&hak_span_lock_word.state) != 0;
}

#endif
