/* SPDX-License-Identifier: MIT */
/* hardened/look_back.h - a look at blocks that were not freed, or have not been free for long.
 *
 * Owns        in each cache the block that its last slow path took, and the heap it came from.
 * Invariants  a block is read only while its slab cannot go: in the quarantine, or inside the
 *             slab's heap.
 * Threads     the one that has the cache, in a slow path, outside every heap.
 * Tests       tests/attack/hardened_look_back_test.c
 */
#ifndef HAK_HARDENED_LOOK_BACK_H
#define HAK_HARDENED_LOOK_BACK_H

#include "hardened/block.h"

/* Verifies the block that was freed last and the one that the last slow path took, with the end of
 * the block before it: most of what is written after a free, or beyond a block, is written soon,
 * and some blocks are never freed, nor leave the quarantine. Misuse is reported. Nothing is looked
 * at that is in use by others just now. */
void hak_look_back(struct cache *cache);

/* The slow path has taken this block, which nobody else knows yet. */
void hak_look_back_note(struct cache *cache, void *block);

#endif
