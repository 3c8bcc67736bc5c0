/* SPDX-License-Identifier: MIT */
/* misuse/sampled_guard.h - the pool of blocks that end at a guard page: a sample of all blocks, in
 * default mode.
 *
 * Owns        HAK_SAMPLED_GUARD_SLOTS slots outside the window, each of
 *             hak_sampled_guard_slot_bytes() and followed by a guard page, and the record of the
 *             block in each.
 *
 *                 | no access | filler | block | filler | guard | next slot ...
 *                 ^ slot      ^ page                    ^ aligned end
 *
 * Invariants  as in misuse/guard_record.h. FREE slots hold no memory and are reused oldest first.
 *             All live blocks together have at most HAK_SAMPLED_GUARD_BYTES_MOST of pages. Where
 *             the kernel refuses to take access away, only that detection is lost. A thread that
 *             never comes back (a jump, a fork) costs the slot it worked at.
 * Threads     any, without a lock; handlers too. FREE -> BUSY is an exchange (acquire), BUSY ->
 *             FREE a store (release), each the other's partner, so that a thread that sees a state
 *             sees what was written before it.
 * Tests       tests/unit/misuse/sampled_guard_test.c, tests/race/sampled_guard_race.c,
 *             tests/attack/
 */
#ifndef HAK_MISUSE_SAMPLED_GUARD_H
#define HAK_MISUSE_SAMPLED_GUARD_H

#include "misuse/guard_record.h"
#include "region/region.h"

#define HAK_SAMPLED_GUARD_BYTES_MOST (256 * HAK_KIB)

/* True when a slot can have such a block. */
bool hak_sampled_guard_fits(size_t bytes, size_t alignment);

/* A block that fits and reads as zero; NULL: all slots are in use, or the kernel refuses. */
void *hak_sampled_guard_take(size_t bytes, size_t alignment, const struct guarded_trace *trace);

/* Returns the pages of a record that was seized. */
void hak_sampled_guard_give(struct guard_record *record);

/* The record of the slot that an address lies in, whose guard belongs to it; or of the slot that is
 * nearer to an address in a guard. */
struct guard_record *hak_sampled_guard_record_of(const void *address);
const struct guard_record *hak_sampled_guard_nearest(const void *address);

/* Bytes until the next sample: at random about guard_rate; for ever if that was 0 at the start, and
 * none if it is for now. */
int64_t hak_sampled_guard_countdown(void);

/* Adds the live blocks: their requested bytes and their number. */
void hak_sampled_guard_sum(size_t *bytes, size_t *count);

/* No more blocks are guarded: what the slots hold stays as it is, for a report. */
void hak_sampled_guard_freeze(void);

#endif
