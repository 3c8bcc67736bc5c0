/* SPDX-License-Identifier: MIT */
/* misuse/guarded.h - blocks that end at a page without access: a sample of all, in default mode.
 *
 * Owns        HAK_GUARDED_SLOTS slots outside the window, each of hak_guarded_slot_bytes() and
 *             followed by a page without access, and what is known of the block in each.
 *
 *                 | no access | filler | block | filler | guard | next slot ...
 *                 ^ slot      ^ page                    ^ aligned end
 *
 * Invariants  pages of a slot are accessible while its state is LIVE only, or while who moved it
 *             works at it; FREE slots hold no memory and are used again oldest first. All live
 *             blocks together have at most HAK_GUARDED_BYTES_MOST of pages. Who moves a state from
 *             LIVE frees the block; whoever fails to has freed twice. Where the kernel refuses to
 *             take access away, only that detection is lost. A thread that never comes back (a
 *             jump, a fork) costs the slot it worked at.
 * Threads     any, without a lock; handlers too. FREE -> BUSY -> LIVE -> BUSY -> FREE: the steps to
 *             BUSY are exchanges (acquire), those from it stores (release), each the other's
 *             partner, so that who has a state has what was written before it.
 * Tests       tests/unit/misuse/guarded_test.c, tests/race/guarded_race.c, tests/attack/
 */
#ifndef HAK_MISUSE_GUARDED_H
#define HAK_MISUSE_GUARDED_H

#include "base/compiler.h"
#include "base/text.h"
#include "region/region.h"

#define HAK_GUARDED_BYTES_MOST (256 * HAK_KIB)
#define HAK_GUARDED_FRAMES 4u

enum guarded_state { GUARDED_FREE, GUARDED_BUSY, GUARDED_LIVE };

/* Return addresses, innermost first; 0: no more. */
struct guarded_trace {
    uintptr_t addresses[HAK_GUARDED_FRAMES];
};

/* What is known of an address in the range. */
struct guarded_view {
    uintptr_t block; /* that it belongs to, or lies next to; 0: the slot was never used */
    size_t bytes;    /* asked for */
    enum guarded_state state;
    struct guarded_trace taken;
    struct guarded_trace given;
};

/* True when the address lies in the range of slots and their guards. */
HAK_INLINE bool hak_guarded_holds(const void *address)
{
    return HAK_UNLIKELY((uintptr_t)address - (uintptr_t)hak_region.guarded_start <
                        hak_region.guarded_bytes);
}

/* True when a slot can have such a block. */
bool hak_guarded_fits(size_t bytes, size_t alignment);

/* A block that fits and reads as zero; NULL: all slots are in use, or the kernel refuses. */
void *hak_guarded_take(size_t bytes, size_t alignment, const struct guarded_trace *trace);

/* Gives it back. Misuse of what is held, but not a live block, or was written around. */
void hak_guarded_give(void *block, const struct guarded_trace *trace);

/* Bytes asked for; misuse, called `what`, of what is no live block. */
size_t hak_guarded_usable_bytes(const void *block, const char *what);

/* True when it is the start of a live block; any address may be asked about. */
bool hak_guarded_is_live(const void *block);

/* Fills *view for an address that is held; in a handler, too. */
void hak_guarded_look(const void *address, struct guarded_view *view);

/* Bytes until the next sample: at random about guard_rate, for ever if that is 0. */
int64_t hak_guarded_countdown(void);

/* The live blocks: what was asked for, and how many they are. */
struct guarded_sums {
    size_t bytes;
    size_t count;
};
struct guarded_sums hak_guarded_sum(void);

/* The pages that live blocks have, and those on their way. */
size_t hak_guarded_page_bytes(void);

/* Adds `words` and the trace to a line; nothing for an empty trace. */
void hak_guarded_tell(struct text *text, const char *words, const struct guarded_trace *trace);

#endif
