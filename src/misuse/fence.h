/* SPDX-License-Identifier: MIT */
/* misuse/fence.h - the pool of blocks that the option `fence` names: each alone on pages of its
 * own, between addresses where nothing is mapped.
 *
 * Owns        the runs: pieces of address space before the window, each for one block at a time,
 *             and the record of each; those that wait in quarantine, and those that can be used
 *             again.
 *
 *                 | run                               | next run ...
 *                 | filler | block | filler | nothing | filler ...
 *                 ^ page                    ^ page, a page at least before the next run
 *
 *             By default the block lies at the end of its pages as far as its alignment allows
 *             (fence_side, fence_alignment). A block of no bytes has no page.
 * Invariants  - as in misuse/guard_record.h. A run is cut once, with a number of pages that others
 *               share, and keeps its record for ever: an address once used is always known. Only
 *               what is live is mapped, by one mapping each.
 *             - A freed run is used again when those freed after it have more address space than
 *               fence_quarantine. Of several that can be, of one size, the oldest comes last.
 *             - Where there is no room for mappings, memory or addresses, or a `limit` is set,
 *               blocks are ordinary; that is told once.
 *             - A thread that never comes back (a jump, a fork) costs the runs that it worked at.
 * Threads     any; handlers too, which do without a fence when they interrupted the lock. The lock
 *             is for taking: runs that are freed go on a stack, with an exchange (release), that
 *             the next taker takes whole (acquire).
 * Tests       tests/unit/misuse/fence_test.c, tests/race/fence_race.c, tests/attack/,
 *             tests/preload/fence_preload.sh
 */
#ifndef HAK_MISUSE_FENCE_H
#define HAK_MISUSE_FENCE_H

#include "misuse/guard_record.h"
#include "region/region.h"

struct fence_request {
    size_t bytes;
    size_t alignment; /* at least; 0: what malloc gives */
    uintptr_t form;   /* as in struct guard_record */
};

/* Reads the options; false: no block is to be fenced. Once, at the start of the process. */
bool hak_fence_start(void);

HAK_INLINE bool hak_fence_holds(const void *address)
{
    return HAK_UNLIKELY((uintptr_t)address - hak_region.fence_start < hak_region.fence_bytes);
}

/* A block of zeros; NULL: there is no room for it. */
void *hak_fence_take(const struct fence_request *request, const struct guarded_trace *trace);

/* Returns the pages of a record that was seized. */
void hak_fence_give(struct guard_record *record);

/* The record of the run that an address lies in; or of the block that is nearer, of two runs. NULL:
 * there was never a block. */
struct guard_record *hak_fence_record_of(const void *address);
const struct guard_record *hak_fence_nearest(const void *address);

/* The live blocks: their requested bytes and their number. */
size_t hak_fence_live_bytes(void);
size_t hak_fence_live_count(void);

/* Address space that was ever used, from hak_region.fence_start on, and the memory of tables. */
size_t hak_fence_used_bytes(void);
size_t hak_fence_table_bytes(void);

/* No more blocks are fenced: what is known stays as it is, for a report. */
void hak_fence_freeze(void);

/* For forks and repairs: each step under it loses runs at most. */
extern struct hak_lock hak_fence_lock;

#endif
