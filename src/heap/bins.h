/* SPDX-License-Identifier: MIT */
/* heap/bins.h - what the hot path reads: bins of ready blocks, by processor or by thread.
 *
 *   hak_here -> struct rseq_area {.. section, id ..}       one a thread
 *   hak_bins_of[id] -> struct bins                         one a processor, or a slot
 *       bins[0]      nothing, for ever
 *       bins[1 + c]  {top, countdown, limit, bottom}   class c; top, limit and bottom count words
 *       ...          zero up to the highest tag        from the start of struct bins
 *       slots        ..., block, block, NULL, ..., block, NULL, ...
 *
 * Owns        struct bin and struct bins. A bin is a stack of block addresses that grows downwards
 *             from a slot with NULL: the popped value itself says "empty".
 * Invariants  slots from top to below the NULL are blocks of the bin's class, none twice, of any
 *             heap but the program's own. Every unusual state looks empty and full at once (top and
 *             limit 0, where bins[0] is the NULL): bins without slots, closed ones, and all of
 *             hak_bins_closed, which threads without a cache find, and all in hardened mode. A bin
 *             is full where top is not above limit, and to a block that is on top already: the slow
 *             path reports that one. Pop and push read top, use its slot and commit by one store to
 *             {top, countdown}. On a processor's bins that is a restartable sequence: a thread that
 *             is interrupted before the commit restarts. On a slot's bins, which belong to one
 *             thread, the same code runs without the kernel's help: a handler that interrupts it
 *             may pop the same block. A bin may be opened from another processor while this one is
 *             in the middle of a push: top is read before limit, and the header is stored whole. So
 *             a top of 0 is above no limit, and any other has its limit with it. Batches are also
 *             moved by one commit. A slot's bin is closed meanwhile. Each pop lowers countdown;
 *             where it passes 0, hak_bin_note adds 65,536 to `popped`: blocks taken are counted
 *             exactly, at no cost. While allocations are sampled (heap/draw.h) it is lowered so
 *             that it passes 0 with the sample, by one commit, too.
 * Threads     the thread that runs on the processor, or has the slot. Others may count (relaxed: a
 *             count may be wrong by what happens meanwhile). A closed bin of a processor belongs to
 *             the thread that closed it, under the lock CACHES; one of a slot, to its thread.
 * Tests       tests/unit/heap/bins_test.c, tests/unit/heap/cpu_cache_test.c,
 *             tests/preload/rseq.c, tests/golden/, docs/model/cache_drain.pml
 */
#ifndef HAK_HEAP_BINS_H
#define HAK_HEAP_BINS_H

#include "base/atomic.h"
#include "os/rseq.h"
#include "region/tag_map.h"
#include "slab/size_class.h"

/* In one word: pop adds one to its first quarter and subtracts one from its second. */
struct bin {
    alignas(8) uint16_t top; /* the newest block's slot; 0: closed, or no slots yet */
    uint16_t countdown;      /* pops until it is noted */
    uint16_t limit;          /* the lowest usable slot */
    uint16_t bottom;         /* open: the slot with the NULL; closed: what top was */
};

/* The slots of an open bin. */
struct bin_slots {
    uint32_t bottom;
    uint32_t top;
    uint32_t limit;
};

/* Bins that a tag can name. */
#define HAK_BINS_NAMED (256 / HAK_BIN_SCALE + 1)

struct cache;
struct bins {
    struct bin bins[HAK_BINS_NAMED];
    struct cache *cache; /* the owner; NULL: hak_bins_closed */
    void *slots[];
};
#define HAK_FIRST_SLOT ((uint32_t)(sizeof(struct bins) / sizeof(void *)))

/* Processors that are distinguished, and caches of threads. */
#define HAK_PROCESSORS_MOST 1024u
#define HAK_SLOTS_MOST 3071u
#define HAK_ID_CLOSED (HAK_PROCESSORS_MOST + HAK_SLOTS_MOST)

/* By id; below HAK_PROCESSORS_MOST filled when hakmem starts. Defined beside the
 * sequences (heap/cpu_cache.h). */
extern struct bins *hak_bins_of[HAK_ID_CLOSED + 1];
extern const struct bins hak_bins_closed;

/* The calling thread's area: libc's, that of its slot, or one of these two. */
extern HAK_TLS struct rseq_area *hak_here;
extern struct rseq_area hak_here_unasked; /* it has not called yet, or not asked for a cache */
extern struct rseq_area hak_here_never;   /* it gets none: after its exit, or in a child of vfork */

HAK_INLINE uint32_t hak_here_id(void)
{
    return hak_word_peek((const uint32_t *)((const char *)hak_here + hak_rseq_id_offset));
}

/* The id belongs to a processor: on its bins the sequences below are needed. */
HAK_INLINE bool hak_id_is_processor(uint32_t id)
{
    return id < HAK_PROCESSORS_MOST;
}

/* Finds a bin by its scaled index, as tags and the size table hold it. */
HAK_INLINE struct bin *hak_bin_at(struct bins *bins, size_t scaled)
{
    return &bins->bins[scaled / HAK_BIN_SCALE];
}

HAK_INLINE struct bin *hak_bin_of(struct bins *bins, uint32_t class_index)
{
    return &bins->bins[class_index + 1];
}

struct popped {
    void *block;        /* NULL: the bin is empty */
    struct bins *noted; /* whose countdown passed 0 with this pop: for hak_bin_note; else NULL */
};

/* A block of the class from the calling thread's bin; NULL: it is empty. */
struct popped hak_bin_pop_noted(uint32_t class_index);
void *hak_bin_pop(uint32_t class_index);

/* False: the bin is full, or the block is on top of it. */
bool hak_bin_push(uint32_t class_index, void *block);

/* Whether the block is on top of the calling thread's bin. A block in use never is, wherever the
 * thread moves meanwhile: no other one pushes it. */
bool hak_bin_has_on_top(uint32_t class_index, const void *block);

/* Prevents pops and pushes until hak_bin_open: of these bins, if the thread is still on them, which
 * have slots. *top: its last filled slot. Under the lock CACHES. */
bool hak_bin_close(struct bins *bins, uint32_t class_index, uint32_t *top);
void hak_bin_open(struct bins *bins, uint32_t class_index, struct bin_slots slots);

/* Between two notes, where no sample was drawn. */
#define HAK_POPS_NOTED 65536u

/* A pop of the bin made the countdown pass 0: it is counted, and the next sample drawn. Returns how
 * many requests the pop stands for as a sample; 0: it is none. */
uint64_t hak_bin_note(struct bins *bins, size_t scaled);

/* Draws the bin's next sample if none is: for bins from before sampling began. */
void hak_bin_draw(struct cache *cache, uint32_t class_index);

/* Blocks the bin holds, whose NULL is in the slot `bottom`; by any thread. */
HAK_INLINE uint32_t hak_bin_peek(const struct bin *bin, uint32_t bottom)
{
    uint32_t top = hak_word_peek(&bin->top);
    if (top == 0)
        top = hak_word_peek(&bin->bottom);
    return bottom > top ? bottom - top : 0;
}

#endif
