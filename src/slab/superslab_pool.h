/* SPDX-License-Identifier: MIT */
/* slab/superslab_pool.h - superslabs shared by all size classes: the source of granules for slabs.
 *
 * Owns        struct superslab (one record per 2 MiB of the window) and its lists.
 * Invariants  a superslab in the pool is on the list of its number of free granules; free granules
 *             have tag 0 and no owner; `dirty` says which granules may hold data, all others read
 *             as zero. One wholly free superslab is kept; the caller gets the next one back. How
 *             long free granules are kept follows from how soon granules are reused
 *             (learn/keep_time.h), where option learn has decay. A superslab serves one partition.
 *             Beside ordinary ones there are those of the long partition in hardened mode, which
 *             never leave it, and else those of what is sparse (heap/supply.h).
 * Threads     one lock (DEPOT), never held across a system call: what is purged is first taken out,
 *             under a lock of its own (PURGE), so that a fork waits until it is back.
 * Tests       tests/unit/slab/superslab_pool_test.c
 */
#ifndef HAK_SLAB_SUPERSLAB_POOL_H
#define HAK_SLAB_SUPERSLAB_POOL_H

#include "base/list.h"
#include "learn/keep_time.h"
#include "region/region.h"
#include "slab/size_class.h"

/* Whether a superslab is one huge page: the kernel was asked for it, then it was touched; it ended
 * when a part went back to the kernel. Of an asked or whole one every granule may be resident. */
enum superslab_pages { PAGES_SMALL, PAGES_ASKED, PAGES_HUGE, PAGES_BROKEN };

struct superslab {
    HAK_CACHE_ALIGNED struct list_link link; /* on the list of its free count */
    struct list_link warm_link;              /* on the list of those with warm free granules */
    uint64_t warm_since_ms;                  /* when a granule last became free */
    uint32_t free;                           /* granules that belong to no slab */
    uint32_t dirty;                          /* granules that may not read as zero */
    uint32_t group_heap[2];                  /* heap that last took granules of this half */
    uint32_t epoch;                          /* of the pool when it came onto the lists */
    uint16_t pages;                          /* enum superslab_pages */
    uint16_t partition;                      /* enum hak_partition */
};

struct pool_granules {
    uint32_t first;
    uint32_t count; /* 0: the pool has none */
    bool is_zero;   /* they read as zero */
    bool is_warm;   /* they were used before and not purged since */
    bool is_fresh;  /* nothing of the superslab is used, nor was since it is clean */
};

#define HAK_NO_GRANULES ((struct pool_granules){.count = 0})

/* `count` (a power of two) free granules in one piece, for `heap_id`: fullest superslab of the
 * partition first, warm granules before purged ones. */
struct pool_granules hak_pool_take(uint32_t count, uint32_t heap_id, enum hak_partition partition);

/* The kind of free granules that a search accepts: warm all through, or warm where the slab begins
 * to fill, or any. */
enum pool_wish { WISH_WARM, WISH_BEGUN, WISH_ANY, WISH_COUNT };

/* Whether there are such granules in one piece. */
bool hak_pool_has(uint32_t count, enum hak_partition partition, enum pool_wish wish);

/* Adds a superslab of which every granule is free; `is_zero` says whether it reads as zero,
 * `pages` what it is backed by. */
void hak_pool_add(uint32_t first_granule, enum hak_partition partition, bool is_zero,
                  enum superslab_pages pages);

/* Pages of the superslab with that granule are about to go back to the kernel one by one: it is no
 * longer huge, lest the kernel fill it again. True when memory that nobody touched may be resident
 * in it. */
bool hak_pool_break_huge(uint32_t granule);

/* A superslab that was taken out is no longer to be huge, for it may serve as spans that are
 * touched here and there. */
void hak_pool_end_huge(uint32_t first_granule);

/* Gives granules back, of which the first `dirty_count` may not read as zero. Returns a superslab
 * that is free and no longer the pool's (range of count 0: none). */
struct granule_range hak_pool_give(uint32_t first_granule, uint32_t count, uint32_t dirty_count);

/* Returns to the kernel what has been free and warm since `before_ms`, at most `budget` superslabs.
 * Returns the bytes that were purged. Callers that may run beside others hold the region's purge
 * lock. */
size_t hak_pool_purge(uint64_t before_ms, uint32_t budget);

/* Takes a wholly free superslab out while another one remains: a purge may leave two, for what it
 * works on does not count as free meanwhile. Range of count 0: none. */
struct granule_range hak_pool_take_spare(void);

/* Written under the lock, read by any thread. */
struct pool_counts {
    _Atomic uint32_t superslab;             /* superslabs held */
    _Atomic uint32_t free[PARTITION_COUNT]; /* free granules in them; */
    _Atomic uint32_t warm;                  /* those that are warm; */
    _Atomic uint32_t untouched; /* those that a huge page brought in, and nobody ever touched */
    _Atomic uint32_t huge;      /* superslabs that may be one huge page */
};
extern struct pool_counts hak_pool_counts;

HAK_INLINE uint32_t hak_pool_superslab_count(void)
{
    return hak_load_relaxed(&hak_pool_counts.superslab);
}

HAK_INLINE uint32_t hak_pool_free_count(enum hak_partition partition)
{
    return hak_load_relaxed(&hak_pool_counts.free[partition]);
}

HAK_INLINE uint32_t hak_pool_free_count_all(void)
{
    return hak_pool_free_count(PARTITION_ORDINARY) + hak_pool_free_count(PARTITION_LONG);
}

HAK_INLINE uint32_t hak_pool_warm_count(void)
{
    return hak_load_relaxed(&hak_pool_counts.warm);
}

HAK_INLINE uint32_t hak_pool_untouched_count(void)
{
    return hak_load_relaxed(&hak_pool_counts.untouched);
}

HAK_INLINE uint32_t hak_pool_huge_count(void)
{
    return hak_load_relaxed(&hak_pool_counts.huge);
}

/* True when the granule is free, belongs to the pool, and nobody has touched it: what is in memory
 * there, a huge page brought in. The pool is locked (hak_pool_lock). */
bool hak_pool_is_untouched(uint32_t granule);

/* How long free granules stay warm: decay, or what was learned. */
uint64_t hak_pool_keep_ms(void);

/* What the log of that has seen, and to begin with what another run saw. */
void hak_pool_learned(struct keep_evidence *seen);
bool hak_pool_begin(const struct keep_evidence *seen);

/* True when some granule has been warm and free since `before_ms`; without the lock, a hint. */
bool hak_pool_has_warm(uint64_t before_ms);

/* The calling thread left a section by a jump: if it holds the lock, the pool starts anew, with
 * the superslabs from which slabs still come back; what was free in them is lost. */
void hak_pool_mend(void);

/* For forks, and for reading the pool and the spans together. */
extern struct hak_lock hak_pool_lock;

#endif
