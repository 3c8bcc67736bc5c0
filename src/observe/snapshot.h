/* SPDX-License-Identifier: MIT */
/* observe/snapshot.h - the numbers of one moment, as plain data.
 *
 * Owns        HAK_SNAPSHOT_TABLE and struct snapshot, which also holds the sums of all counters.
 * Invariants  whoever prints reads a snapshot and nothing else, so that all outputs agree.
 * Threads     the caller's own copy.
 * Tests       tests/unit/observe/emit_test.c
 */
#ifndef HAK_OBSERVE_SNAPSHOT_H
#define HAK_OBSERVE_SNAPSHOT_H

#include "observe/stat.h"

/* name, meaning */
#define HAK_SNAPSHOT_TABLE(X)                                                                      \
    X(window_committed_bytes, "address space made usable so far")                                  \
    X(metadata_bytes, "committed for hakmem's own records")                                        \
    X(superslabs, "superslabs that hold slabs")                                                    \
    X(slabs, "slabs in use")                                                                       \
    X(slab_warm_bytes, "free in superslabs, resident")                                             \
    X(large_live_bytes, "in live large blocks")                                                    \
    X(span_warm_bytes, "in free spans, resident")                                                  \
    X(span_clean_bytes, "in free spans, without memory behind them")                               \
    X(span_lost_bytes, "address space given up because the kernel would not say whose it is")      \
    X(active_heaps, "heaps that belong to a thread")                                               \
    X(map_calls, "mmap and munmap calls made")                                                     \
    X(protect_calls, "mprotect calls made")                                                        \
    X(advise_calls, "madvise calls made")                                                          \
    X(purged_bytes, "given back to the kernel so far")                                             \
    X(move_calls, "mremap calls made")                                                             \
    X(moved_bytes, "moved by them instead of being copied")                                        \
    X(moved_pieces, "runs of pages that stand where they were moved, each a mapping of its own")

struct snapshot {
#define X(name, meaning) uint64_t name;
    HAK_SNAPSHOT_TABLE(X)
    HAK_STAT_GLOBAL_TABLE(X)
#undef X
    uint64_t sums[HAK_STAT_COUNT]; /* of the heaps' counters */
};

#endif
