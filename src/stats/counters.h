/* SPDX-License-Identifier: MIT */
/* stats/counters.h - the counters, declared once.
 *
 * Owns        HAK_STAT_TABLE: counters that each heap and each cache keep, and
 *             HAK_STAT_GLOBAL_TABLE: counters of the process.
 * Invariants  nothing is counted on the hot path; a heap's counters are written by the thread
 *             inside it, a cache's by any thread, atomically; sums are exact when the threads stand
 *             still.
 * Threads     relaxed; readers may see a counter late.
 * Tests       tests/unit/stats/counters_test.c
 */
#ifndef HAK_STATS_COUNTERS_H
#define HAK_STATS_COUNTERS_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "os/probe.h"

/* name, meaning */
#define HAK_STAT_TABLE(X)                                                                          \
    X(refills, "empty bins filled from slabs")                                                     \
    X(flushes, "full bins flushed to slabs")                                                       \
    X(pending_slabs, "stage 0: slabs collected after frees into a busy heap")                      \
    X(pending_blocks, "stage 0: blocks collected with them")                                       \
    X(spare_slabs, "stage 1: the heap's own empty slabs, reused")                                  \
    X(stolen_slabs, "stage 2: slabs taken from other heaps")                                       \
    X(recycled_slabs, "stage 3: slabs made on warm granules of a superslab in use")                \
    X(purged_slabs, "stage 3: slabs made on clean granules of a superslab in use")                 \
    X(fresh_slabs, "stage 4: slabs made on a new superslab")                                       \
    X(huge_superslabs, "new superslabs for which huge pages were requested")                       \
    X(huge_slow, "huge pages that took huge_slow_us or longer: the next superslabs were small")    \
    X(retired_slabs, "empty slabs returned to the superslab pool")                                 \
    X(swept_slabs, "sparse slabs searched for pages without a live block")                         \
    X(swept_bytes, "returned to the kernel from such slabs")                                       \
    X(remote_blocks, "blocks freed while their heap was busy")                                     \
    X(remote_publishes, "atomic operations that published them")                                   \
    X(spans_taken, "large blocks allocated")                                                       \
    X(spans_given, "large blocks freed")                                                           \
    X(realloc_copied_bytes, "copied by realloc to another place")                                  \
    X(magazines_grown, "bins that were given more slots")                                          \
    X(magazines_shrunk, "quiet bins that lost slots")                                              \
    X(magazines_drained, "bins emptied because the slabs of their class were sparse")

enum hak_stat {
#define X(name, meaning) HAK_STAT_##name,
    HAK_STAT_TABLE(X)
#undef X
        HAK_STAT_COUNT
};

struct stat_block {
    _Atomic uint64_t counters[HAK_STAT_COUNT];
};

/* The same for a cache, or, without one (NULL), for all threads that have none. It is asked for
 * once: that of the processor is another one, or none, where the thread has moved. */
#define hak_stat_add_for(owner, name, value)                                                       \
    do {                                                                                           \
        struct cache *cache_ = (owner);                                                            \
        struct stat_block *block_ = cache_ != NULL ? &cache_->stats : &hak_stat_cacheless;         \
        uint64_t value_ = (uint64_t)(value);                                                       \
        hak_probe(name, value_);                                                                   \
        /* seq_cst: partner is the fence of the background thread (process/background.h) */        \
        hak_fetch_add_seq_cst(&block_->counters[HAK_STAT_##name], value_);                         \
    } while (0)
extern struct stat_block hak_stat_cacheless;

/* The same, not to the last count (base/atomic.h), for paths that an atomic addition would slow. */
#define hak_stat_add_here(owner, name, value)                                                      \
    do {                                                                                           \
        struct cache *cache_ = (owner);                                                            \
        struct stat_block *block_ = cache_ != NULL ? &cache_->stats : &hak_stat_cacheless;         \
        uint64_t value_ = (uint64_t)(value);                                                       \
        hak_probe(name, value_);                                                                   \
        hak_counter_add_here(&block_->counters[HAK_STAT_##name], value_);                          \
    } while (0)

#define hak_stat_add(block, name, value)                                                           \
    do {                                                                                           \
        uint64_t value_ = (uint64_t)(value);                                                       \
        hak_probe(name, value_);                                                                   \
        hak_counter_add(&(block)->counters[HAK_STAT_##name], value_);                              \
    } while (0)

/* The same where several threads may count at once. */
#define hak_stat_add_shared(block, name, value)                                                    \
    do {                                                                                           \
        uint64_t value_ = (uint64_t)(value);                                                       \
        hak_probe(name, value_);                                                                   \
        hak_fetch_add_relaxed(&(block)->counters[HAK_STAT_##name], value_);                        \
    } while (0)

/* name, meaning */
#define HAK_STAT_GLOBAL_TABLE(X)                                                                   \
    X(foreign_frees, "frees of pointers that are not hakmem's (option foreign)")                   \
    X(fallback, "requests passed to another allocator")                                            \
    X(threads_started, "threads that received a cache")                                            \
    X(heaps_created, "heaps created, for processors or because all were busy")                     \
    X(heaps_lost, "heaps abandoned: busy at a fork, or left by a jump")                            \
    X(caches_lost, "threads' caches abandoned: busy at a fork, or left by a jump")                 \
    X(private_heaps, "heaps created by hakmem_heap_new")                                           \
    X(cacheless_calls,                                                                             \
      "calls by threads after their exit, and by signal handlers inside slow paths")               \
    X(spans_reused, "spans served from kept memory")                                               \
    X(spans_reused_bytes, "kept memory in these spans")                                            \
    X(spans_fresh, "spans without any kept memory")                                                \
    X(spans_far, "spans served from warm memory of another memory node")                           \
    X(spans_missed_bytes, "served by untouched memory shortly after as much was purged")           \
    X(granules_missed_bytes, "slabs made of untouched memory shortly after as much was purged")    \
    X(spans_evicted, "free spans purged at once because too much was warm")                        \
    X(spans_evicted_bytes, "size of these spans")                                                  \
    X(huge_blocks, "large blocks for which huge pages were requested")                             \
    X(huge_blocks_slow, "of these, those whose first one took huge_slow_us or longer")             \
    X(spans_given_up,                                                                              \
      "freed large blocks purged at once because there were few and none was reused")              \
    X(guarded_blocks, "allocations placed against a guard page")                                   \
    X(guarded_full, "allocations due for a guard page that found no free slot")                    \
    X(guarded_caught, "misuses of guarded blocks that were reported")                              \
    X(rules_begun, "call sites whose blocks began to go to the long partition (learn=sites)")      \
    X(rules_ended, "call sites whose blocks no longer go there")                                   \
    X(matches_played, "matches between tried values (learn=matches)")                              \
    X(values_taken, "values that won; in mode research they are not applied")                      \
    X(values_recalled, "of these, values that were reverted")                                      \
    X(out_of_memory, "requests refused with ENOMEM")

struct stat_globals {
#define X(name, meaning) _Atomic uint64_t name;
    HAK_STAT_GLOBAL_TABLE(X)
#undef X
};
extern struct stat_globals hak_stat_globals;

#define hak_stat_global_add(name, value)                                                           \
    hak_fetch_add_relaxed(&hak_stat_globals.name, (uint64_t)(value))

#endif
