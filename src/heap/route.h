/* SPDX-License-Identifier: MIT */
/* heap/route.h - call sites whose small blocks come from the long partition.
 *
 * Owns        the table of diverted sites, the classes that have some, and what the hot path finds
 *             for their sizes.
 * Invariants  the hot path knows nothing of sites. Where a class has a diverted site, its sizes map
 *             to the bin of no class, which is always empty: all requests of these sizes take the
 *             slow path, which looks up the caller and pops from the bin of one partition or the
 *             other. Frees go to the bin of their tag, as usual. A site is the address that the
 *             request returns to. A wrapper has the kind ROUTE_SPLIT: then its caller's return
 *             address counts, too, which lies a fixed distance up the stack; a caller that is a
 *             wrapper itself is split by its own. Addresses are read only where no read faults:
 *             within the page that the first frame ends in, and on the main thread's stack; where
 *             one lies elsewhere, or is no site of the table, the request is ordinary. At times
 *             requests of diverted sites are held back: they are ordinary, too. What that changes
 *             is measured on pages that ordinary blocks come from meanwhile (learn/holdback.h).
 * Argument    Words of the table, bytes of the sizes and the mask of classes are each written in
 *             one step and ordered by nothing: a request meanwhile comes from either partition, and
 *             each is correct for any block.
 * Threads     one writes at a time; any reads.
 * Tests       tests/unit/heap/route_test.c, tests/race/route_race.c,
 *             tests/interleave/route_interleave.c, tests/preload/sites_preload.py
 */
#ifndef HAK_HEAP_ROUTE_H
#define HAK_HEAP_ROUTE_H

#include "base/atomic.h"
#include "os/frames.h"
#include "slab/size_class.h"

/* What a request returns to, and two callers. */
#define HAK_ROUTE_FRAMES 3u
/* Where the stack is read for a split. */
#define HAK_ROUTE_DISTANCE_MOST 1016u

enum route_kind {
    ROUTE_NONE,
    ROUTE_LONG,   /* all requests of the site, but for times when all are held back */
    ROUTE_HALF,   /* the same, and half of the time they are held back */
    ROUTE_ALWAYS, /* all requests, never held back */
    ROUTE_SPLIT,  /* by the caller of its last frame */
};

enum route_hold { HOLD_NONE, HOLD_HALF, HOLD_ALL };

struct route {
    uintptr_t frames[HAK_ROUTE_FRAMES]; /* return addresses, innermost first; 0: any */
    uint32_t class_index;
    enum route_kind kind;
    uint32_t distance; /* ROUTE_SPLIT: bytes from the stack pointer after the return to the last
                          frame to the next one's word; a multiple of 8, at most
                          HAK_ROUTE_DISTANCE_MOST */
};

/* By ordinary class, bit i: sites of it are diverted. */
extern _Atomic uint64_t hak_route_classes;
/* How many sites these are. */
extern _Atomic uint64_t hak_route_sites;

HAK_INLINE bool hak_route_is_on(void)
{
    return hak_load_relaxed(&hak_route_classes) != 0;
}

HAK_INLINE bool hak_route_has(uint32_t class_index)
{
    return hak_load_relaxed(&hak_route_classes) >> class_index & 1;
}

/* Where a request of an ordinary class with a twin goes. */
enum hak_partition hak_route_find(uint32_t class_index, struct os_caller caller);

/* From now on these are held back: none, those of every ROUTE_HALF, or those of ROUTE_LONG, too. */
void hak_route_hold(enum route_hold hold);

/* From now on a few blocks of this class are noted that bins of the ordinary partition give, one in
 * HAK_ROUTE_NOTED_BYTES; HAK_LONG_CLASS_COUNT: none. What was noted before is forgotten. */
#define HAK_ROUTE_NOTED_MOST 16u
#define HAK_ROUTE_NOTED_BYTES 32768u
void hak_route_watch(uint32_t class_index);

/* Takes the blocks that were noted since the last call; returns how many. */
uint32_t hak_route_take_noted(void *blocks[HAK_ROUTE_NOTED_MOST]);

extern _Atomic uint32_t hak_route_watched;
void hak_route_note_slow(void *block);
HAK_INLINE void hak_route_note(uint32_t class_index, enum hak_partition partition, void *block)
{
    if (HAK_UNLIKELY(hak_load_relaxed(&hak_route_watched) == class_index) &&
        partition == PARTITION_ORDINARY && block != NULL)
        hak_route_note_slow(block);
}

/* These sites are diverted from now on, and no others. Where two collide in the table, the first
 * one stays. Returns how many found room. */
uint32_t hak_route_publish(const struct route *routes, uint32_t count);

#endif
