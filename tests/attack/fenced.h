/* SPDX-License-Identifier: MIT */
/* tests/attack/fenced.h - misuse of fenced blocks.
 *
 * Owns        nothing.
 * Invariants  every allocation is fenced here; what happens at once is a fault, what happens at the
 *             free an abort with a line.
 * Threads     as named.
 * Tests       tests/attack/fenced_*_test.c
 */
#ifndef TESTS_ATTACK_FENCED_H
#define TESTS_ATTACK_FENCED_H

#include <stdlib.h>

/* Settings beside it; hakmem's own constructor, which starts it, comes later. */
#ifndef SIDE
#define SIDE "end"
#endif
#ifndef ALIGNMENT
#define ALIGNMENT "16"
#endif
__attribute__((constructor(101))) static void fence_all(void)
{
    setenv("HAKMEM_MODE", "fence", 1);
    setenv("HAKMEM_FENCE_SIDE", SIDE, 1);
    setenv("HAKMEM_FENCE_ALIGNMENT", ALIGNMENT, 1);
}

#include "attack.h"
#include "misuse/fence.h"

static inline char *take(size_t bytes)
{
    char *block = volatile_block(hak_malloc(bytes));
    CHECK(hak_fence_holds(block));
    return block;
}

static inline char *take_freed(size_t bytes)
{
    char *block = take(bytes);
    hak_free(block);
    return block;
}

static inline void write_at(char *block, ptrdiff_t at)
{
    *(volatile char *)(block + at) = 0;
}

static inline char read_at(const char *block, ptrdiff_t at)
{
    return *(const volatile char *)(block + at);
}

static inline void write_and_free(size_t bytes, ptrdiff_t at)
{
    char *block = take(bytes);
    write_at(block, at);
    hak_free(block);
}

#endif
