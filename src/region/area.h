/* SPDX-License-Identifier: MIT */
/* region/area.h - an address range that is mapped from its start on, as needed.
 *
 * Owns        struct area: one table of the window, or the records' own area.
 * Invariants  [start, start + usable_bytes) is mapped, for good, and reads as zero at first. While
 *             it grows, tried_bytes is larger than usable_bytes: after a thread left it by a jump
 *             it is unknown whether the rest is mapped, and the next one asks the kernel. It is
 *             never backed by huge pages.
 * Threads     grows under the lock of its owner; usable_bytes is published with release; any thread
 *             reads it.
 * Tests       tests/unit/region/area_test.c
 */
#ifndef HAK_REGION_AREA_H
#define HAK_REGION_AREA_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "os/os.h"

struct area {
    unsigned char *start;
    size_t room_bytes; /* the kernel's pages divide it */
    size_t tried_bytes;
    _Atomic size_t usable_bytes;
};

/* Nothing of it is usable yet. */
void hak_area_start(struct area *area, void *start, size_t room_bytes);

/* Makes at least the first `bytes` usable, in steps of `step_bytes` as far as there is room. Unless
 * OS_MAPPED nothing has changed; OS_MAP_TAKEN: there is no room, or others are in the way. */
enum os_map hak_area_grow(struct area *area, size_t bytes, size_t step_bytes);

#endif
