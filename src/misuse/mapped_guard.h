/* SPDX-License-Identifier: MIT */
/* misuse/mapped_guard.h - the pool of blocks with a mapping of their own, each in front of a guard
 * page: for handlers that interrupt their thread under a lock and need more than a slot of the
 * other pool (misuse/sampled_guard.h) has.
 *
 * Owns        HAK_MAPPED_GUARDS records, each of one mapping, wherever the kernel puts it.
 * Invariants  as in misuse/guard_record.h. The mapping exists while the record is LIVE or BUSY, and
 *             of a block that was freed nothing is known. A thread that never comes back (a jump, a
 *             fork) costs the record it worked at.
 * Threads     any, without a lock; handlers too. FREE -> BUSY is an exchange (acquire), BUSY ->
 *             FREE a store (release), each the other's partner. A live block is found by its start,
 *             one word that no other live record has: records that change meanwhile do not matter.
 *             Other addresses, which only misuse and reports ask about, may be told wrongly then.
 * Tests       tests/unit/misuse/mapped_guard_test.c, tests/preload/life.c
 */
#ifndef HAK_MISUSE_MAPPED_GUARD_H
#define HAK_MISUSE_MAPPED_GUARD_H

#include "misuse/guard_record.h"

#define HAK_MAPPED_GUARDS 32u

/* Records that are not FREE. */
extern _Atomic uint32_t hak_mapped_guards_used;

/* A block that reads as zero; NULL: all records are in use, or the kernel refuses. */
void *hak_mapped_guard_take(size_t bytes, size_t alignment, const struct guarded_trace *trace);

/* Returns the mapping of a record that was seized. */
void hak_mapped_guard_give(struct guard_record *record);

/* The record of the live block at an address, or in whose mapping it lies; NULL: there is none. */
struct guard_record *hak_mapped_guard_find(const void *address);

HAK_INLINE bool hak_mapped_guard_holds(const void *address)
{
    return HAK_UNLIKELY(hak_load_relaxed(&hak_mapped_guards_used) != 0) &&
           hak_mapped_guard_find(address) != NULL;
}

/* Adds the live blocks: their requested bytes and their number. */
void hak_mapped_guard_sum(size_t *bytes, size_t *count);

#endif
