/* SPDX-License-Identifier: MIT */
/* cache/idle.h - what sleeping threads hold, for threads that work.
 *
 * Owns        the choice of heaps to look into. Typical: one thread builds the state of a program
 *             and waits; others replace it block by block. All they free goes home to a heap whose
 *             thread does not come for it, and without a visit the program would have it twice.
 *             And when hakmem's own thread visits a heap to sweep it.
 * Invariants  slabs are taken from a heap only if others freed blocks of it and its thread had no
 *             slow operation since it was last looked at. Never waits: a busy heap, or another
 *             visitor, is left alone. A heap is swept when its pages may have grown cold, and no
 *             more once three passes found nothing, until its thread is at work again or blocks
 *             come home: each visit is a barrier on all processors (cache/gate.h), and a program
 *             may have thousands of threads that sleep.
 * Argument    A slab leaves a heap whose thread may run at any time, but outside its gate: it can
 *             be in malloc's or free's short way only. These touch its own bins and the tags. A
 *             block that it freed with the tag it read before the slab left is in its bin, used by
 *             the slab's bitmap, and no other thread's: it serves the thread's next malloc, or goes
 *             home to the slab's new owner when the bin is flushed, as all of others' blocks do.
 *             Where it comes to its gate with a tag in hand, free's long way looks again inside:
 *             with the old tag it would mark the block free in a slab that is another heap's by
 *             now. The visitor is inside its own gate and takes the stranger's lock by trying
 *             only; so a stranger who waits for the visitor's gate with that lock held is never
 *             waited for.
 * Threads     any.
 * Tests       tests/unit/cache/idle_test.c, tests/race/stranger_race.c
 */
#ifndef HAK_CACHE_IDLE_H
#define HAK_CACHE_IDLE_H

#include "cache/heap.h"

/* Slabs of the class with free blocks, from one idle heap to `heap`, whose gate is held; returns
 * one of them, or NULL. Empty slabs that are found on the way go to the depot. */
struct slab *hak_idle_take(struct heap *heap, uint32_t class_index);

/* Whether hakmem's own thread may find something in the heap: frees that came home, or pages that
 * grew cold since the last visit. Without the gate, a hint. */
bool hak_idle_is_due(const struct heap *heap, uint64_t now_ms, uint64_t decay_ms);

/* A visitor has gone on with the heap's sweep, and gave so much back. */
void hak_idle_note_visit(struct heap *heap, size_t found_bytes);

/* Takes frees home into one idle heap, if there is one, and gives its empty slabs back. */
void hak_idle_collect(void);

#endif
