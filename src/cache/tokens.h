/* SPDX-License-Identifier: MIT */
/* cache/tokens.h - frees under way by threads that a copy of the process has not.
 *
 * Owns        nothing.
 * Invariants  what a thread that stayed behind had in its hands, the child has not: a slab taken
 *             from a pending stack, or counted and not yet pushed (slab/remote.h). Counts and
 *             stacks are made anew from the bits.
 * Threads     the only one of a child, outside every gate.
 * Tests       tests/unit/cache/registry_test.c
 */
#ifndef HAK_CACHE_TOKENS_H
#define HAK_CACHE_TOKENS_H

#include "cache/heap.h"

/* For the slabs of those heaps, from `first` on, that `is_whole` says nobody was changing. */
void hak_tokens_restore(struct heap *first, bool (*is_whole)(const struct heap *));

#endif
