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

/* The statement behind it, once for each of them. */
static const size_t hardened_sizes[] = {TINY_BYTES, PAGE_BYTES, SPAN_BYTES};
#define EACH_SIZE(bytes)                                                                           \
    for (size_t size_ = 0, bytes; size_ < 3 && (bytes = hardened_sizes[size_]) != 0; size_++)

/* Members of the set; hakmem's own constructor, which starts it, comes later. */
#ifndef MEMBERS
#define MEMBERS "all"
#endif
__attribute__((constructor(101))) static void harden(void)
{
    setenv("HAKMEM_HARDEN", MEMBERS, 1);
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

/* Where a block was before realloc moved it. */
static inline char *moved_away(size_t from_bytes, size_t bytes)
{
    char *block = take_some(from_bytes);
    memset(block, 's', from_bytes);
    for (int i = 0; i < 8; i++) /* nothing is free behind it */
        take_some(SPAN_BYTES);
    char *moved = volatile_block(hak_realloc(block, bytes));
    CHECK(moved != block && moved[0] == 's');
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

#endif
