/* SPDX-License-Identifier: MIT */
/* slab/remote.h - blocks freed while their heap was busy.
 *
 * Owns        the remote bitmap and remote_count of a slab, and the pending stacks of its owners.
 * Invariants  The token rule. A publisher adds the number of its blocks to remote_count before it
 *             sets their bits. The one that moves the count from 0 holds the slab's token and
 *             pushes the slab on its owner's pending stack; only the thread that took the slab from
 *             a pending stack may collect it. The collector takes bits, subtracts exactly as many,
 *             and passes the token on (pushes the slab again) while the count is not 0. So a slab
 *             is on at most one pending stack, and its link is never written while it is on one.
 *             Blocks in transit count as used: such a slab is neither retired nor given another
 *             class.
 * Argument    What would break it: (1) bits before count: a collector subtracts more than was
 *             added, the count wraps. Here the count covers every bit that can be seen. (2) a
 *             publisher reads the owner, the slab moves to another heap, the push goes to the old
 *             one: the old heap's record is never freed, and the thread that takes the slab there
 *             sees that it belongs to another heap and forwards it. (3) ABA on the stack: there is
 *             no pop of one, only take-all. Only collectors lower the count; a publisher that took
 *             its own duplicates back could let it reach 0 while the slab is on a stack (the model
 *             shows how), so a duplicate is fatal instead. (4) a fork copies a token held by a
 *             thread that the child lacks: publications in progress are counted, from before they
 *             touch the slab until after the push, so the child detects them, and rebuilds counts
 *             and stacks from the bits.
 * Threads     anyone publishes; the count add is acq_rel, the bit OR release, the exchange of the
 *             collector acquire, so that what the program wrote to a block happens before its next
 *             use.
 * Tests       tests/unit/slab/remote_test.c, tests/race/remote_race.c, docs/model/remote.pml
 */
#ifndef HAK_SLAB_REMOTE_H
#define HAK_SLAB_REMOTE_H

#include "slab/slab.h"

/* Frees the blocks `mask` of word `word_index`; mask is not 0. Blocks of which another such
 * free is under way are a double free, reported. */
void hak_remote_publish(struct slab *slab, uint32_t word_index, uint64_t mask);

/* Puts a slab whose token the caller holds on the pending stack of its present owner. */
void hak_pending_push(struct slab *slab);

/* Takes all slabs off a pending stack, and their tokens with them: a chain through pending_next. */
struct slab *hak_pending_take_all(struct slab_owner *owner);

/* In the child of a fork, before any other thread exists, with every pending stack empty: counts
 * the slab's remote frees anew and stacks it if there are any. */
void hak_pending_restore(struct slab *slab);

/* This thread was interrupted while it published. */
bool hak_remote_is_own(void);

/* In a copy of the process: there are no other threads' publications any more; true: some were
 * under way. */
bool hak_remote_forget_others(void);

/* This thread left a publication by a jump. What it was to bring home may be lost. */
void hak_remote_forget_own(void);

/* The slab after `slab` in a chain that was taken. */
HAK_INLINE struct slab *hak_pending_next(struct slab *slab)
{
    return hak_load_relaxed(&slab->pending_next);
}

/* Moves remote frees into the free bitmap. The caller holds the heap and the slab's token. Returns
 * how many blocks were collected; sets *is_done when the token has lapsed (else the caller pushes
 * again). */
uint32_t hak_remote_collect(struct slab *slab, bool *is_done);

#endif
