/* SPDX-License-Identifier: MIT */
/* misuse/guarded.h - blocks next to guard pages, from any of three pools.
 *
 * Owns        nothing: the sampled ones are misuse/sampled_guard.h's, those that the option `fence`
 *             names misuse/fence.h's, and large ones of a handler misuse/mapped_guard.h's.
 * Invariants  all but the last lie in one range before the window.
 * Threads     any; handlers too.
 * Tests       tests/unit/misuse/sampled_guard_test.c, tests/unit/misuse/fence_test.c, tests/attack/
 */
#ifndef HAK_MISUSE_GUARDED_H
#define HAK_MISUSE_GUARDED_H

#include "misuse/guard_record.h"
#include "misuse/mapped_guard.h"
#include "region/region.h"

/* True when the address lies in the range of guarded blocks and their guards. */
HAK_INLINE bool hak_guarded_range_holds(const void *address)
{
    return HAK_UNLIKELY((uintptr_t)address - (uintptr_t)hak_region.guarded_start <
                        hak_region.guarded_bytes);
}

/* The same, or in the mapping of such a block. */
HAK_INLINE bool hak_guarded_holds(const void *address)
{
    return hak_guarded_range_holds(address) || hak_mapped_guard_holds(address);
}

/* Gives a block back that is held. Misuse of what is no live block, or was written around. */
void hak_guarded_give(void *block, const struct guarded_trace *trace);

/* The requested bytes; misuse, called `what`, if it is no live block. */
size_t hak_guarded_usable_bytes(const void *block, const char *what);

/* True when it is the start of a live block; any address may be asked about. */
bool hak_guarded_is_live(const void *block);

/* Fills *view for an address that is held. */
void hak_guarded_look(const void *address, struct guarded_view *view);

/* Misuse of a block that is held, told with all that is known of it. */
_Noreturn void hak_guarded_report(const char *what, const void *block, const char *state);

/* The live blocks: their requested bytes and their number. */
struct guarded_sums {
    size_t bytes;
    size_t count;
};
struct guarded_sums hak_guarded_sum(void);

/* No more blocks are guarded: what is known of them stays as it is, for a report. */
void hak_guarded_freeze(void);

#endif
