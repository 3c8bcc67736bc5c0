/* SPDX-License-Identifier: MIT */
/* heap/private_heap.h - user heaps: created, shared among threads and destroyed as a whole by the
 * program.
 *
 * Owns        struct private_heap: a heap (heap/heap.h) and the group of its large blocks. No cache
 *             holds blocks of it: a block is live, published, or in a bitmap, so that every second
 *             free is detected and destruction finds all blocks.
 * Invariants  a thread that changes the heap's slabs holds its lock; its slabs never move to
 *             another heap, nor another's to it. Full slabs are on heap.full: partial lists, spares
 *             and that list are all slabs there are. A handle is the record's address with its
 *             generation in the upper 16 bits; the generation grows when the heap is destroyed.
 *             Records are never freed but parked, for the next heap: there are as many ids and
 *             records as heaps were ever live at once.
 * Argument    free() by any thread finds the tag PRIVATE, which no bin takes, and publishes
 *             (slab/remote.h) without the lock. A block must not wait anywhere: it would be
 *             published into a slab that destroy has retired. Frees that happened before destroy
 *             are complete, so collecting returns them. A free that races with destroy is the
 *             program's mistake; still, a slab whose remote_count is not 0 after collecting stays
 *             with the record, and the record's next heap inherits it: its publisher may yet push
 *             it on the pending stack, and the token rule holds. Large blocks leave their group
 *             under the SPAN lock after the exchange of `user`, whose winner frees; destroy frees
 *             them the same way, one by one, so the loser of a race is reported. fork takes the
 *             locks like any thread, but waits for each a bounded time only. What it could not take
 *             is frozen in the child: no memory comes from it, frees are accepted, destroy returns
 *             nothing. To handlers of that fork it is the same, in the parent too, until its thread
 *             leaves it; they do not wait for that, as the fork holds what the thread may need. A
 *             heap that they create is theirs as one that was taken. Holders wait for DEPOT,
 *             SPAN, REGION and META alone, and threads that are inside a shared heap never wait for
 *             these locks. No holder asks the kernel for memory, or gives pages back: memory is
 *             brought from outside, and slabs are out while they are purged. A heap may be
 *             destroyed without those, by the program's thread, which then waits for PRIVATE_SET;
 *             the sweeping thread holds that lock until it has retired them.
 * Threads     any thread, not signal handlers; PRIVATE_SET guards the lists, PRIVATE each heap.
 * Tests       tests/unit/heap/private_heap_test.c, tests/race/private_race.c
 */
#ifndef HAK_HEAP_PRIVATE_HEAP_H
#define HAK_HEAP_PRIVATE_HEAP_H

#include "heap/heaps.h"
#include "os/lock.h"

enum private_state { PRIVATE_PARKED, PRIVATE_LIVE, PRIVATE_FROZEN };

struct private_heap {
    struct heap heap;
    uint64_t magic;
    uint32_t generation; /* 1 to 65535 */
    uint32_t state;      /* enum private_state */
    uint32_t operation_count;
    bool is_inner;    /* internal: to the program, its blocks belong to no heap */
    bool has_samples; /* of the heap profile, since it was made */
    struct list_link large_blocks;
    struct private_heap *next; /* all records */
    struct private_heap *parked_next;
};

enum private_kind { PRIVATE_OF_PROGRAM, PRIVATE_INNER };

/* The handle of a new heap; NULL: out of memory. */
void *hak_private_create(enum private_kind kind);

/* The heap behind a handle with its lock held; NULL when it is frozen, or to a handler of fork if
 * another thread is inside. An invalid handle, or that of a destroyed heap, is misuse, reported as
 * `what`. */
struct private_heap *hak_private_enter(void *handle, const char *what);
void hak_private_leave(struct private_heap *heap);

/* A block of the class from the heap that the caller entered, and leaves it: memory is added
 * outside. All zero on request. NULL: out of memory. */
void *hak_private_take(struct private_heap *heap, uint32_t class_index, bool wants_zero);

/* First of all records; the others follow through `next`. */
struct private_heap *hak_private_first(void);

/* Calls `visit` for each, live or parked, as hak_heaps_visit does, without waiting. */
void hak_private_visit(heap_visitor *visit, void *context);

/* Destroys the heap that the caller entered, with all blocks in it, and leaves it. */
void hak_private_destroy(struct private_heap *heap);

/* The handle of the program's heap to which a live block belongs; NULL: to none. What is no block
 * is misuse, reported as `what`. */
void *hak_private_handle_of(const void *block, const char *what);

/* Collects remote frees and gives spare slabs back. The heap is entered. */
void hak_private_trim(struct private_heap *heap);

/* The same for heaps that no thread uses at the moment: for those with published frees, a few at a
 * time, or for all. */
void hak_private_drain_some(void);
void hak_private_drain_all(void);

/* Purges the dead pages of all heaps that no thread uses at the moment; returns the bytes. */
size_t hak_private_sweep_all(void);

/* What a heap holds. The heap is entered. */
struct private_use {
    uint64_t block_count;
    uint64_t block_bytes;
    uint64_t held_bytes; /* of slabs and spans */
};
struct private_use hak_private_use(struct private_heap *heap);

/* True when lists, masks and slabs agree. The heap is entered. */
bool hak_private_is_sound(struct private_heap *heap);

/* The calling thread left a section by a jump: the heap it was in is frozen. Or the process was
 * copied, and so are all heaps that an absent thread was inside. After hak_span_mend. */
void hak_private_mend(void);

/* Around fork. */
void hak_private_lock_all(uint32_t patience_ms);
void hak_private_unlock_all(void);
void hak_private_restart_in_child(void);

#endif
