/* SPDX-License-Identifier: MIT */
/* heap/sweep.h - returns what a heap keeps without need: dead pages of sparse slabs, empty slabs,
 * and cached blocks that pin pages.
 *
 * Owns        the heap's sweep cursor. A pass looks through the sparse partial slabs of every
 *             class, a few slabs at a time, and starts once in a decay time.
 * Invariants  a pass purges pages only of slabs from which no block was taken between two visits.
 *             Programs whose slabs are dense or busy pay only a walk over short lists.
 * Threads     the thread inside the heap.
 * Tests       tests/unit/heap/sweep_test.c, tests/model/
 */
#ifndef HAK_HEAP_SWEEP_H
#define HAK_HEAP_SWEEP_H

#include "heap/heap.h"

/* Goes on with the pass, or begins one when `decay_ms` have gone by since the last one began; looks
 * closely at no more than `slabs_most` slabs. Returns the bytes that went back to the kernel. */
size_t hak_heap_sweep(struct heap *heap, uint64_t now_ms, uint64_t decay_ms, uint32_t slabs_most);

/* How far a sweep of everything has come, dense and busy slabs too. Zeroed to begin with. It is for
 * who asks for it: it takes a system call for each run of dead pages. */
struct whole_sweep {
    uint32_t class_index;
    uint32_t slabs_left; /* of those that were there in the beginning */
    bool is_begun;
    size_t bytes; /* that went back to the kernel */
};

/* Goes on with it for a bounded number of slabs, so that nobody waits long for the heap; true when
 * it is over. */
bool hak_heap_sweep_whole(struct heap *heap, struct whole_sweep *sweep);

/* True when the pass that began last is over. */
bool hak_heap_is_swept(const struct heap *heap);

/* True when every partial slab of the class is sparse and there are many: then cached blocks pin
 * pages that would go back without them. Without the lock, a hint. */
bool hak_heap_class_is_sparse(const struct heap *heap, uint32_t class_index);

#endif
