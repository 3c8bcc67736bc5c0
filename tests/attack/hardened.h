/* SPDX-License-Identifier: MIT */
/* tests/attack/hardened.h - misuse in hardened mode, at sizes of a small block, a page and a span.
 *
 * Owns        nothing.
 * Invariants  every misuse here ends the process, at once or when the block is freed.
 * Threads     as named.
 * Tests       tests/attack/hardened_*_test.c
 */
#ifndef TESTS_ATTACK_HARDENED_H
#define TESTS_ATTACK_HARDENED_H

#include "attack.h"
#include "heap/heap.h"

#include <stdlib.h>

#define TINY_BYTES ((size_t)8)
#define PAGE_BYTES ((size_t)4096)
#define SPAN_BYTES ((size_t)256 * 1024)

/* Members of the set; hakmem's own constructor, which starts it, comes later. */
#ifndef MEMBERS
#define MEMBERS "all"
#endif
__attribute__((constructor(101))) static void harden(void)
{
    setenv("HAKMEM_HARDEN", MEMBERS, 1);
}

/* The compiler must not know what becomes of the block. */
static inline char *volatile_block(void *block)
{
    char *volatile hidden = block;
    CHECK(hidden != NULL);
    return hidden;
}

static inline char *take_some(size_t bytes)
{
    return volatile_block(hak_malloc(bytes));
}

/* One that is not the first of its slab: before that one stands a guard. */
static inline char *take_inner(size_t bytes)
{
    char *block = take_some(bytes);
    while ((uintptr_t)block == hak_slab_at(block)->start)
        block = take_some(bytes);
    return block;
}

/* Writes to a freed block, which others of its size then push out of the quarantine. */
static inline void write_freed(size_t bytes)
{
    char *block = take_some(bytes);
    hak_free(block);
    block[bytes / 2] = 'x';
    for (int i = 0; i < 10000; i++)
        hak_free(take_some(bytes));
}

/* The statement, run in a child, ends by a guard page. */
#define CHECK_FAULTS(statement)                                                                    \
    CHECK_IN_CHILD(statement, WIFSIGNALED(child_.status) && WTERMSIG(child_.status) == SIGSEGV,    \
                   "SIGSEGV", "")

#endif
