/* SPDX-License-Identifier: MIT */
/* slab/shield.h - slabs of the hardened mode.
 *
 * Owns        the first and the last page of a slab that has guards, and the order in which blocks
 *             are chosen at random.
 * Invariants  a slab with guards begins a page later than its granules, and holds fewer blocks.
 * Threads     the slab's owner.
 * Tests       tests/unit/slab/shield_test.c, tests/attack/
 */
#ifndef HAK_SLAB_SHIELD_H
#define HAK_SLAB_SHIELD_H

#include "slab/slab.h"

/* Makes the marks of a new slab NONE and raises its guards, if the mode has any; false: out of
 * memory. Sets start, block_count and guards of the slab, whose granules and blocks are set. */
bool hak_slab_shield(struct slab *slab);

/* Lowers the guards of an unused slab; false: one stays raised, and its granules are lost. */
bool hak_slab_unshield(struct slab *slab);

/* Moves up to `count` blocks to `blocks`, any of those that are free in a word of the bitmap, and
 * then in another; returns how many. */
uint32_t hak_slab_take_random(struct slab *slab, void **blocks, uint32_t count);

#endif
