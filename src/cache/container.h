/* SPDX-License-Identifier: MIT */
/* cache/container.h - living within what a container allows.
 *
 * Owns        the one look at the control group, when the heap first passes 32 MiB: small programs
 *             never pay for it. memory.high, or nine tenths of memory.max, is the soft limit unless
 *             the option gives one; a quota of CPU time bounds what threads keep at hand, and with
 *             a quota of one CPU or less nobody spins. Also how long tasks waited for memory.
 * Invariants  what cannot be read changes nothing.
 * Threads     one thread looks, without a lock; the pressure is the background thread's.
 * Tests       tests/unit/cache/container_test.c
 */
#ifndef HAK_CACHE_CONTAINER_H
#define HAK_CACHE_CONTAINER_H

#include "base/atomic.h"
#include "base/limits.h"
#include "region/region.h"

#define HAK_CONTAINER_FROM_BYTES (32 * HAK_MIB)

/* Where all paths begin: "", but in tests. */
extern const char *hak_container_root;

extern _Atomic uint32_t hak_container_was_read;

/* Looks once, when the heap with `more_bytes` is large enough. */
void hak_container_look_slow(void);
HAK_INLINE void hak_container_look(size_t more_bytes)
{
    if (HAK_UNLIKELY(hak_load_relaxed(&hak_container_was_read) == 0) &&
        (more_bytes >= HAK_CONTAINER_FROM_BYTES ||
         hak_load_relaxed(&hak_region.committed_bytes) >= HAK_CONTAINER_FROM_BYTES))
        hak_container_look_slow();
}

/* True when some file tells the pressure. */
bool hak_container_tells_pressure(void);

/* True when tasks of the container waited for memory for a tenth of the time or more since the last
 * call that looked; it looks twice a second at most. */
bool hak_container_is_pressed(uint64_t now_ms);

#endif
