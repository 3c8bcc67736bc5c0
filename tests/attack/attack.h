/* SPDX-License-Identifier: MIT */
/* tests/attack/attack.h - what a misuser needs: another thread, and bins that send blocks home.
 *
 * Owns        nothing.
 * Invariants  every misuse here is one that hakmem detects for certain.
 * Threads     as named.
 * Tests       tests/attack/
 */
#ifndef TESTS_ATTACK_ATTACK_H
#define TESTS_ATTACK_ATTACK_H

#include "../threads.h"
#include "api/api.h"
#include "base/limits.h"

#define OTHERS 20000
#define LARGE_BYTES ((size_t)300000)

static void *others[OTHERS];

/* Each misuse meets what its test is about, not a guard page by chance. */
__attribute__((constructor(101))) static void guard_nothing(void)
{
    setenv("HAKMEM_GUARD_RATE", "0", 0);
}

/* The compiler must not know what becomes of the block. */
static inline char *volatile_block(void *block)
{
    char *volatile hidden = block;
    CHECK(hidden != NULL);
    return hidden;
}

static inline void *free_in_thread(void *block)
{
    hak_free(block);
    return NULL;
}

static inline void *free_home_in_thread(void *block)
{
    hak_free(block);
    hak_thread_flush();
    return NULL;
}

/* Frees the block in a thread of its own, which has ended when this returns. */
static inline void free_by_stranger(void *block)
{
    in_thread(free_in_thread, block);
}

/* The same, and the thread flushes what it has before it ends. */
static inline void free_home_by_stranger(void *block)
{
    in_thread(free_home_in_thread, block);
}

/* Takes so many blocks of the size that freeing half of them flushes all that was freed
 * before. */
static inline void others_take(size_t bytes)
{
    for (int i = 0; i < OTHERS; i++)
        CHECK((others[i] = hak_malloc(bytes)) != NULL);
}

enum half { FIRST_HALF, SECOND_HALF };

/* Frees every other block of one half, so that no slab becomes empty. */
static inline void others_free(enum half half)
{
    for (int i = 0; i < OTHERS / 2; i += 2)
        hak_free(others[i + (half == SECOND_HALF ? OTHERS / 2 : 0)]);
}

#endif
