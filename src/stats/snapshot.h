/* SPDX-License-Identifier: MIT */
/* stats/snapshot.h - the numbers of one moment, as plain data.
 *
 * Owns        the tables of what is in a snapshot, and struct snapshot, which also holds the sums
 *             of all counters and the policy in force. Levels go up and down, totals only up.
 * Invariants  all output is made from a snapshot and nothing else, so that all forms agree.
 * Threads     the caller's own copy.
 * Tests       tests/unit/stats/emit_test.c
 */
#ifndef HAK_STATS_SNAPSHOT_H
#define HAK_STATS_SNAPSHOT_H

#include "os/lock.h"
#include "policy/policy_table.h"
#include "stats/counters.h"

/* name, meaning */
#define HAK_SNAPSHOT_LEVEL_TABLE(X)                                                                \
    X(shadowed, "1: another malloc takes precedence; hakmem is mapped but serves nothing")         \
    X(live_bytes, "in live blocks: small, large and guarded")                                      \
    X(small_live_bytes, "in live blocks of size classes, by their usable size")                    \
    X(long_live_bytes, "of small_live_bytes: in the long partition")                               \
    X(long_slab_bytes, "in slabs of the long partition")                                           \
    X(diverted_sites, "call sites whose blocks now go to the long partition (learn=sites)")        \
    X(large_live_bytes, "in live large blocks, in whole granules of 64 KiB")                       \
    X(cached_bytes, "free blocks in the bins of all caches, and span_cached_bytes")                \
    X(span_cached_bytes, "free spans in the span caches of all heaps")                             \
    X(cached_spans, "number of these spans")                                                       \
    X(span_cache_hits, "large blocks served from span caches")                                     \
    X(withheld_bytes, "freed, in quarantine")                                                      \
    X(homeward_bytes, "freed while their heap was busy, not collected yet")                        \
    X(slab_free_bytes, "free in slabs, including tails too short for a block")                     \
    X(slab_warm_bytes, "free in superslabs, resident")                                             \
    X(slab_clean_bytes, "free in superslabs, without pages")                                       \
    X(span_warm_bytes, "in free spans, resident")                                                  \
    X(span_clean_bytes, "in free spans, without pages")                                            \
    X(span_lost_bytes, "address space abandoned: the kernel did not tell whether it is free")      \
    X(hole_bytes, "in the window, but mapped by other code")                                       \
    X(window_committed_bytes, "address space committed so far: the sum of the above")              \
    X(metadata_bytes, "committed for hakmem's metadata")                                           \
    X(table_bytes, "committed for the maps of the window, and for the marks of hardened mode")     \
    X(guarded_live_bytes, "in live guarded blocks, which lie outside the window")                  \
    X(guarded_live_blocks, "live guarded blocks")                                                  \
    X(small_live_blocks, "live blocks of size classes")                                            \
    X(large_live_blocks, "live large blocks")                                                      \
    X(superslabs, "superslabs that hold slabs")                                                    \
    X(slabs, "slabs in use")                                                                       \
    X(closed_heaps, "heaps that could not be entered, whose free blocks count as live")            \
    X(caches_by_processor, "1: caches belong to processors, 0: to threads")                        \
    X(active_caches, "caches in use, of processors and of threads")                                \
    X(heaps, "heaps that all threads share")                                                       \
    X(huge_now_superslabs, "superslabs that may be one huge page now")                             \
    X(huge_excess_bytes, "free in these, resident although never touched")                         \
    X(huge_page_bytes, "in huge pages, in the window, as the kernel reports; 0: not queried")      \
    X(resident_bytes, "of the process, as the kernel reports; 0: not queried")                     \
    X(resident_peak_bytes, "peak of resident_bytes")                                               \
    X(own_resident_bytes, "of resident_bytes: in hakmem's window and metadata; 0: not queried")    \
    X(span_keep_ms, "how long free spans stay warm: decay, or what was learned")                   \
    X(pool_keep_ms, "how long free granules of slabs stay warm: decay, or what was learned")       \
    X(moved_pieces, "runs of pages that realloc moved, each a separate mapping")

#define HAK_SNAPSHOT_TOTAL_TABLE(X)                                                                \
    X(map_calls, "mmap and munmap calls made")                                                     \
    X(protect_calls, "mprotect calls made")                                                        \
    X(advise_calls, "madvise calls made")                                                          \
    X(purge_calls, "of these, calls that returned memory, or tried to")                            \
    X(purge_ns, "total nanoseconds of these calls, over all threads")                              \
    X(purged_bytes, "returned to the kernel so far")                                               \
    X(move_calls, "mremap calls made")                                                             \
    X(moved_bytes, "moved by these calls instead of copied")

#define HAK_SNAPSHOT_TABLE(X) HAK_SNAPSHOT_LEVEL_TABLE(X) HAK_SNAPSHOT_TOTAL_TABLE(X)

/* What is counted with stats=exact only: without it there are no such numbers, not even 0. */
#define HAK_SNAPSHOT_EXACT_TABLE(X)                                                                \
    X(exact_requests, "requests by malloc, calloc, aligned forms, new, and realloc of NULL")       \
    X(exact_requested_bytes, "bytes requested by these")                                           \
    X(exact_large_requests, "of these, requests above 128 KiB, beyond the size classes")           \
    X(exact_reallocs, "calls of realloc that resize a block")                                      \
    X(exact_realloc_bytes, "bytes requested by these, as new sizes")                               \
    X(exact_large_reallocs, "of these, calls for more than 128 KiB")                               \
    X(exact_frees, "pointers given to free, delete, or realloc to size 0; NULL is not counted")

/* One size class. */
struct snapshot_class {
    uint64_t block_bytes;
    uint64_t slabs;
    uint64_t live_blocks;
    uint64_t cached_blocks; /* in bins, in quarantine and not collected yet */
    uint64_t free_blocks;   /* in slabs */
    uint64_t taken_blocks;  /* that left slabs for bins or for the program, since the start */
    uint64_t popped_blocks; /* that left bins for the program, since the start */
    uint64_t requests;      /* stats=exact: requests for sizes of this class */
    uint64_t reallocs;
};
#define HAK_SNAPSHOT_CLASSES 80

/* name, LEVEL or TOTAL, meaning: of one cache, of a processor or of a thread. */
#define HAK_SNAPSHOT_CACHE_TABLE(X)                                                                \
    X(bytes, LEVEL, "free blocks in the bins of a cache")                                          \
    X(capacity_bytes, LEVEL, "capacity of these bins")                                             \
    X(misses, TOTAL, "times that a bin of a cache was empty or full")

struct snapshot_cache {
    uint64_t id;
    uint64_t is_processor;
#define X(name, kind, meaning) uint64_t name;
    HAK_SNAPSHOT_CACHE_TABLE(X)
#undef X
};
/* At most so many caches and heaps are shown, the first ones. */
#define HAK_SNAPSHOT_CACHES 64
#define HAK_SNAPSHOT_HEAPS 64

/* The same of one heap that all threads share. */
#define HAK_SNAPSHOT_HEAP_TABLE(X)                                                                 \
    X(held_bytes, LEVEL, "in the slabs of a heap")                                                 \
    X(free_bytes, LEVEL, "free in these slabs")                                                    \
    X(entries, TOTAL, "acquisitions of a heap's lock")                                             \
    X(lock_waits, TOTAL, "waits for a heap's lock")                                                \
    X(steals, TOTAL, "slabs that a heap took from other heaps")

struct snapshot_heap {
    uint64_t id;
#define X(name, kind, meaning) uint64_t name;
    HAK_SNAPSHOT_HEAP_TABLE(X)
#undef X
};

struct snapshot {
#define X(name, meaning) uint64_t name;
    HAK_SNAPSHOT_TABLE(X)
    HAK_STAT_GLOBAL_TABLE(X)
    HAK_SNAPSHOT_EXACT_TABLE(X)
#undef X
    uint64_t sums[HAK_STAT_COUNT]; /* of the heaps' counters */
    uint64_t waits[HAK_LOCK_COUNT], waited_ns[HAK_LOCK_COUNT];
#define X(name, initial, least, most, meaning) uint64_t policy_##name;
    HAK_POLICY_TABLE(X)
#undef X
    uint64_t unix_ms; /* when it was taken */
    uint32_t pid;
    uint32_t class_count, cache_count, heap_count, rseq_reason, rseq_id; /* enums of os/rseq.h */
    bool is_exact;
    struct snapshot_class classes[HAK_SNAPSHOT_CLASSES];
    struct snapshot_cache caches[HAK_SNAPSHOT_CACHES];
    struct snapshot_heap shared_heaps[HAK_SNAPSHOT_HEAPS];
};

#endif
