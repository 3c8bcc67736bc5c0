/* SPDX-License-Identifier: MIT */
/* profile/live.h - the live samples, by the address of their block.
 *
 * Owns        tables of 128, 256, 512 ... samples, made as they are needed: up to
 *             HAK_LIVE_MOST in all.
 * Invariants  a sample is in one of the eight places that its address has in one table. A block has
 *             at most one sample: it is added before the program has the block, and removed before
 *             the block is anybody else's.
 * Argument    A place goes 0 -> 1 (taken: acquire, partner is the release that stored 0, so that
 *             what the last sample's reader read there was read before it is written over) -> block
 *             (release; partner is the acquire of the remover) -> 0 (by exchange: of two frees of
 *             one block one gets the sample, the other finds none, and is detected like any second
 *             free). While a sample is changed its place is 1 again. Nothing waits: a thread that
 *             never returns costs one place.
 * Threads     any, signal handlers too. Only callers that allow it to grow take a lock (META).
 * Tests       tests/unit/profile/live_test.c, tests/race/profile_race.c
 */
#ifndef HAK_PROFILE_LIVE_H
#define HAK_PROFILE_LIVE_H

#include "profile/sites.h"

#define HAK_LIVE_TABLES 11u
#define HAK_LIVE_FIRST 128u
#define HAK_LIVE_MOST (HAK_LIVE_FIRST * ((1u << HAK_LIVE_TABLES) - 1))

struct live_sample {
    struct sample_sum sum;
    uint64_t birth_ns;
    uint64_t site;         /* HAK_LIVE_NO_SITE: the profile does not know it */
    uint64_t heap;         /* handle of the program's heap that the block is of; 0: of none */
    uint64_t ticket;       /* of the rules (profile/site_rules.h); 0: they do not */
    uint64_t logged_bytes; /* of one of its blocks, as the size log has it (profile/size_log.h) */
};
#define HAK_LIVE_NO_SITE UINT64_MAX

/* False: there is no room, nothing is added. */
bool hak_live_add(const void *block, const struct live_sample *sample, bool may_grow);

/* Removes the block's sample; false: it has none. */
bool hak_live_remove(const void *block, struct live_sample *sample);

/* The same, but its place is kept, and the sample comes back there. Nobody finds it meanwhile. */
struct live_place {
    _Atomic uintptr_t *key;
    struct live_sample *sample;
};
bool hak_live_hold(const void *block, struct live_sample *sample, struct live_place *place);
void hak_live_let_go(const void *block, const struct live_sample *sample,
                     const struct live_place *place);

/* Removes all samples of a heap, and calls `ended` for each. */
void hak_live_remove_heap(uint64_t heap, void (*ended)(const struct live_sample *sample));

/* Calls `visit` for each; what others add and remove meanwhile may be among them. */
void hak_live_visit(void (*visit)(const struct live_sample *sample, void *context), void *context);

#endif
