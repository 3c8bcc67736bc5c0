/* SPDX-License-Identifier: MIT */
/* cache/settings.h - what is read of the machine and the container, at once and once.
 *
 * Owns        whether it was read: the setting of huge pages, vm.max_map_count, the memory nodes,
 *             the control group. Until then each has a value that is safe to go on with.
 * Invariants  no request depends on a file: not in a program that confined itself, where none is
 *             read any more, nor where /proc is missing.
 * Threads     any; one reads, without a lock, the others go on.
 * Tests       tests/unit/cache/settings_test.c, tests/unit/cache/container_test.c
 */
#ifndef HAK_CACHE_SETTINGS_H
#define HAK_CACHE_SETTINGS_H

#include "base/atomic.h"
#include "base/limits.h"
#include "region/region.h"

/* Smaller processes never pay for it. */
#define HAK_SETTINGS_FROM_BYTES (16 * HAK_MIB)

extern _Atomic uint32_t hak_settings_were_read;

/* Reads all of it, if nobody has. */
void hak_settings_read(void);

/* The same for a request, when the heap with `more_bytes` is large enough. */
HAK_INLINE void hak_settings_look(size_t more_bytes)
{
    if (HAK_UNLIKELY(hak_load_relaxed(&hak_settings_were_read) == 0) &&
        (more_bytes >= HAK_SETTINGS_FROM_BYTES ||
         hak_load_relaxed(&hak_region.committed_bytes) >= HAK_SETTINGS_FROM_BYTES))
        hak_settings_read();
}

/* With the process: reads at once where no thread of hakmem's own will, and gets ready for a
 * program that confines itself (os/confine.h). */
void hak_settings_start(void);

#endif
