/* SPDX-License-Identifier: MIT */
/* process/serve.h - handles every request that finds no ready block.
 *
 * Owns        struct request; the order of attempts until a request is refused.
 * Invariants  the mode's own part is one function, which tries once in a slow path
 *             (process/slow_path.h) and leaves everything as it was where there is no memory. When
 *             it finds none, the thread's cached blocks are flushed and free memory is purged
 *             before the last try; at hakmem's own limit, other threads' cached blocks too, before
 *             all of that is repeated. A handler that interrupted its thread under a lock, or that
 *             finds no heap to enter, gets a guarded block, which takes no lock
 *             (misuse/sampled_guard.h, misuse/mapped_guard.h), unless a user heap is named: a
 *             block of it comes from there or not at all.
 * Threads     any.
 * Tests       tests/unit/api/malloc_test.c, tests/model/fault_test.c, tests/preload/limits.c
 */
#ifndef HAK_PROCESS_SERVE_H
#define HAK_PROCESS_SERVE_H

#include "misuse/mark.h"
#include "process/slow_path.h"
#include "slab/size_class.h"

struct request {
    size_t bytes;
    size_t alignment; /* 0: ordinary */
    enum mark_kind kind;
    bool is_zero;
    bool is_spared; /* the caller can do without: it is tried once, and NULL is no refusal */
    enum hak_partition partition;
    void *user_heap; /* a handle of heap/private_heap.h; NULL: any heap but those */
};

/* TRY_LAST: a block of any larger class will do. */
enum hak_try { TRY_FIRST, TRY_LAST };

/* One try; the cache is NULL where the call uses none. NULL: out of memory. */
typedef void *hak_server(struct cache *cache, const struct request *request, enum hak_try turn);

/* A block from `server`; NULL with ENOMEM: out of memory, or above the maximum request. NULL alone:
 * one that can be spared is not at hand. */
void *hak_serve(hak_server *server, const struct request *request);

/* Counts and reports that a request for so many bytes is refused. Returns NULL, with ENOMEM. */
void *hak_refuse(size_t bytes);

#endif
