/* SPDX-License-Identifier: MIT */
/* heap/address_info.h - what an address belongs to, for crash reports.
 *
 * Owns        nothing.
 * Invariants  nothing is locked, changed or allocated, and no memory is read but hakmem's own
 *             records, which stay mapped. The answer is exact while other threads stand still; what
 *             they change meanwhile may be reported in its old or new state.
 * Threads     any, in a signal handler, too, and in the middle of any slow path.
 * Tests       tests/unit/heap/address_info_test.c, tests/preload/crash_preload.sh
 */
#ifndef HAK_HEAP_ADDRESS_INFO_H
#define HAK_HEAP_ADDRESS_INFO_H

#include "base/compiler.h"

/* kind, what is said of the address */
#define HAK_ADDRESS_TABLE(X)                                                                       \
    X(NEAR_NULL, "near NULL")                                                                      \
    X(FOREIGN, "not hakmem's")                                                                     \
    X(LIVE, "in a live block")                                                                     \
    X(FREED, "in a freed block")                                                                   \
    X(CACHED, "in a freed block, cached by a thread")                                              \
    X(HOMEWARD, "in a freed block, not yet collected by its heap")                                 \
    X(UNUSED, "in a block that was never handed out")                                              \
    X(GUARD, "on the page without access before a slab")                                           \
    X(TAIL, "behind the last block of a slab")                                                     \
    X(LARGE, "in a live large block")                                                              \
    X(LARGE_END, "behind the end of a live large block")                                           \
    X(FREE, "in free memory of the heap")                                                          \
    X(HOLE, "in memory that others mapped inside the heap's addresses")                            \
    X(GUARDED, "in or near a live guarded block")                                                  \
    X(GUARDED_FREED, "in or near a freed guarded block")                                           \
    X(RECORDS, "in hakmem's own records")

enum address_kind {
#define X(kind, meaning) ADDRESS_##kind,
    HAK_ADDRESS_TABLE(X)
#undef X
        ADDRESS_COUNT
};

struct address_info {
    enum address_kind kind;
    uintptr_t block; /* the block's start; 0: there is none */
    size_t block_bytes;
};

struct address_info hak_address_info(const void *address);

/* The sentence of the table. */
const char *hak_address_meaning(enum address_kind kind);

#endif
