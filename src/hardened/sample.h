/* SPDX-License-Identifier: MIT */
/* hardened/sample.h - which allocations are guarded, and how the API handles such blocks.
 *
 * Owns        when the next one is due, and when the last one was.
 * Invariants  at most one per tick of the kernel's coarse clock, so that the cost of its few system
 *             calls is negligible; where guard_rate is below HAK_SAMPLE_RATE_BRISK, all that are
 *             due. Never for a thread without a cache, inside a slow path or a lock, nor where
 *             there is a limit, which would not count them.
 * Threads     any.
 * Tests       tests/unit/hardened/sample_test.c, tests/attack/
 */
#ifndef HAK_HARDENED_SAMPLE_H
#define HAK_HARDENED_SAMPLE_H

#include "heap/cache.h"
#include "misuse/guarded.h"
#include "misuse/sampled_guard.h"
#include "os/frames.h"

#define HAK_SAMPLE_RATE_BRISK (64 * HAK_KIB)

/* True when the cache has handed out so much that one is due. */
HAK_INLINE bool hak_sample_is_due(const struct cache *cache)
{
    return cache != NULL && HAK_UNLIKELY(hak_load_relaxed(&cache->guard_left_bytes) <= 0);
}

/* A guarded block for a request of the calling thread, whose heap it is, and zero; NULL: an
 * ordinary one will do. */
void *hak_sample_take(struct cache *cache, size_t bytes, size_t alignment, struct os_caller caller);

/* free of an address that is held. */
void hak_sample_free(void *block, struct os_caller caller);

#endif
