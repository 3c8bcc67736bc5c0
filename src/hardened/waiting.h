/* SPDX-License-Identifier: MIT */
/* hardened/waiting.h - freed blocks that wait before they return to their slabs and spans.
 *
 * Owns        the order: a cache's quarantine (misuse/quarantine.h), where the mode has one; then,
 *             verified, blocks of slabs gather in the cache until a batch of them is flushed.
 * Invariants  a waiting block has a mark that says so, in either place.
 * Threads     the one that has the cache, in a slow path.
 * Tests       tests/unit/hardened/hardened_test.c, tests/attack/, tests/race/hardened_race.c
 */
#ifndef HAK_HARDENED_WAITING_H
#define HAK_HARDENED_WAITING_H

#include "hardened/block.h"

/* A block that was shut waits in the cache; those that have waited for long enough are verified and
 * go home. True: some did, or, for there is no cache (NULL), the block itself. */
bool hak_waiting_keep(struct cache *cache, const struct place *place);

/* Reports the block that was freed last if it has been written to since; of a long one the
 * beginning is looked at, of a large one nothing. */
void hak_waiting_look(struct cache *cache);

/* Flushes all that wait in the cache. It is the caller's, and busy. */
void hak_waiting_drain(struct cache *cache);

#endif
