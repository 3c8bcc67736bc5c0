/* SPDX-License-Identifier: MIT */
/* heap/sweep.h - returns what a heap keeps without need: dead pages of sparse slabs, empty slabs,
 * and cached blocks that pin pages.
 *
 * Owns        the places where the heap's sweeps stand. A pass looks through the sparse partial
 *             slabs of every class, a few slabs at a time, and starts once in a decay time. Slabs
 *             with dead pages are taken out of the heap, purged outside of it, and brought back.
 * Invariants  a pass purges pages only of slabs from which no block was taken between two visits.
 *             Each go takes up where the last one stopped: a sweep passes each slab that stays on
 *             its list once.
 * Argument    A page in use would be lost if a block were allocated from a dead leaf before it is
 *             purged. Blocks are allocated and slabs stolen only from a heap's lists; a slab that
 *             is out is on none, and frees to it put it on none (hak_heap_settle). A fork waits for
 *             the purge lock, so no slab is out in its child. In a copy made otherwise, and after a
 *             jump out of a sweep, the free blocks of such slabs are lost.
 * Threads     those that look are inside the heap. Until the slabs are brought back they hold the
 *             purge lock of the region.
 * Tests       tests/unit/heap/sweep_test.c, tests/race/sweep_race.c, tests/model/
 */
#ifndef HAK_HEAP_SWEEP_H
#define HAK_HEAP_SWEEP_H

#include "heap/heap.h"
#include "slab/pages.h"

/* One go looks closely at so many slabs, and passes so many in all. */
#define HAK_SWEEP_SLABS 16u
#define HAK_SWEEP_PASSED_MOST 256u

/* Slabs that a go took out, and what is to be given back of them. */
struct swept {
    uint32_t count;
    uint32_t looked; /* slabs that were looked at closely; not all have dead pages */
    uint32_t passed; /* slabs that it came by */
    struct {
        struct slab *slab;
        struct dead_leaves leaves;
    } out[HAK_SWEEP_SLABS];
};

/* Goes on with the pass, or begins one when `decay_ms` have gone by since the last one began. */
void hak_heap_sweep(struct heap *heap, uint64_t now_ms, uint64_t decay_ms, struct swept *swept);

/* Outside of the heap: gives their pages back to the kernel, and the slabs to the heap. Returns the
 * bytes. */
size_t hak_heap_purge_swept(struct heap *heap, const struct swept *swept);

/* A sweep of everything, dense and busy slabs too. Zeroed to begin with. Only on request: it takes
 * a system call for each run of dead pages. Of two in one heap, the second begins anew for both. */
struct whole_sweep {
    uint32_t slabs_left; /* for which it goes on at most: twice those that it found, since each may
                          * be taken out and come back behind the others */
    bool is_begun;
};

/* Goes on with it; true when it is over. */
bool hak_heap_sweep_whole(struct heap *heap, struct whole_sweep *whole, struct swept *swept);

/* True when the pass that began last is over; without the lock, a hint. */
bool hak_heap_is_swept(const struct heap *heap);

/* True when every partial slab of the class is sparse, and they have at least so many granules:
 * then cached blocks pin pages that would go back, or slabs that others could use, without them.
 * Without the lock, a hint. */
#define HAK_SPARSE_MANY (HAK_SUPERSLAB_GRANULES / 2)    /* worth an effort at any time */
#define HAK_SPARSE_FEW (HAK_SUPERSLAB_GRANULES / 8 + 1) /* before more memory is taken */
bool hak_heap_class_is_sparse(const struct heap *heap, uint32_t class_index, size_t granules_least);

#endif
