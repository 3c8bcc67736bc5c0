/* SPDX-License-Identifier: MIT */
/* misuse/sampled_guard.h - blocks that end at a page without access: a sample of all, in default
 * mode.
 *
 * Owns        HAK_SAMPLED_GUARD_SLOTS slots outside the window, each of
 *             hak_sampled_guard_slot_bytes() and followed by a page without access, and what is
 *             known of the block in each.
 *
 *                 | no access | filler | block | filler | guard | next slot ...
 *                 ^ slot      ^ page                    ^ aligned end
 *
 * Invariants  pages of a slot are accessible while its state is LIVE only, or while who moved it
 *             works at it; FREE slots hold no memory and are used again oldest first. All live
 *             blocks together have at most HAK_SAMPLED_GUARD_BYTES_MOST of pages. Who moves a state
 *             from LIVE frees the block; whoever fails to has freed twice. Where the kernel refuses
 *             to take access away, only that detection is lost. A thread that never comes back (a
 *             jump, a fork) costs the slot it worked at.
 * Threads     any, without a lock; handlers too. FREE -> BUSY -> LIVE -> BUSY -> FREE: the steps to
 *             BUSY are exchanges (acquire), those from it stores (release), each the other's
 *             partner, so that who has a state has what was written before it.
 * Tests       tests/unit/misuse/sampled_guard_test.c, tests/race/sampled_guard_race.c,
 *             tests/attack/
 */
#ifndef HAK_MISUSE_SAMPLED_GUARD_H
#define HAK_MISUSE_SAMPLED_GUARD_H

#include "base/compiler.h"
#include "base/text.h"
#include "os/thread_label.h"
#include "region/region.h"

#define HAK_SAMPLED_GUARD_BYTES_MOST (256 * HAK_KIB)
#define HAK_SAMPLED_GUARD_FRAMES 4u

enum sampled_guard_state { SAMPLED_GUARD_FREE, SAMPLED_GUARD_BUSY, SAMPLED_GUARD_LIVE };

/* Who called: return addresses, innermost first; 0: no more. */
struct sampled_guard_trace {
    uintptr_t addresses[HAK_SAMPLED_GUARD_FRAMES];
    struct thread_label thread;
};

/* What is known of an address in the range. */
struct sampled_guard_view {
    uintptr_t block; /* that it belongs to, or lies next to; 0: the slot was never used */
    size_t bytes;    /* asked for */
    enum sampled_guard_state state;
    struct sampled_guard_trace taken;
    struct sampled_guard_trace given;
};

/* True when the address lies in the range of slots and their guards. */
HAK_INLINE bool hak_sampled_guard_holds(const void *address)
{
    return HAK_UNLIKELY((uintptr_t)address - (uintptr_t)hak_region.guarded_start <
                        hak_region.guarded_bytes);
}

/* True when a slot can have such a block. */
bool hak_sampled_guard_fits(size_t bytes, size_t alignment);

/* A block that fits and reads as zero; NULL: all slots are in use, or the kernel refuses. */
void *hak_sampled_guard_take(size_t bytes, size_t alignment,
                             const struct sampled_guard_trace *trace);

/* Gives it back. Misuse of what is held, but not a live block, or was written around. */
void hak_sampled_guard_give(void *block, const struct sampled_guard_trace *trace);

/* Bytes asked for; misuse, called `what`, of what is no live block. */
size_t hak_sampled_guard_usable_bytes(const void *block, const char *what);

/* True when it is the start of a live block; any address may be asked about. */
bool hak_sampled_guard_is_live(const void *block);

/* Fills *view for an address that is held; in a handler, too. */
void hak_sampled_guard_look(const void *address, struct sampled_guard_view *view);

/* Bytes until the next sample: at random about guard_rate, for ever if that is 0. */
int64_t hak_sampled_guard_countdown(void);

/* The live blocks: what was asked for, and how many they are. */
struct sampled_guard_sums {
    size_t bytes;
    size_t count;
};
struct sampled_guard_sums hak_sampled_guard_sum(void);

/* The pages that live blocks have, and those on their way. */
size_t hak_sampled_guard_page_bytes(void);

/* No more blocks are guarded: what the slots hold stays as it is, for a report. */
void hak_sampled_guard_freeze(void);

/* Adds `words`, the thread and the places of the calls to a line; nothing for an empty trace. */
void hak_sampled_guard_tell(struct text *text, const char *words,
                            const struct sampled_guard_trace *trace);

#endif
