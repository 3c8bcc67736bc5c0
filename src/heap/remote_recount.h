/* SPDX-License-Identifier: MIT */
/* heap/remote_recount.h - frees in progress by threads that a copy of the process lacks.
 *
 * Owns        nothing.
 * Invariants  a slab that such a thread had taken from a pending stack, or counted and not yet
 *             pushed (slab/remote.h), is on no stack in the child. Counts and stacks are rebuilt
 *             from the bits.
 * Threads     the only one of a child, inside nothing.
 * Tests       tests/unit/heap/heaps_test.c
 */
#ifndef HAK_HEAP_REMOTE_RECOUNT_H
#define HAK_HEAP_REMOTE_RECOUNT_H

/* For all slabs of heaps that are not lost. */
void hak_remote_recount(void);

#endif
