/* SPDX-License-Identifier: MIT */
/* tests/attack/guarded.h - misuse of guarded blocks, in default mode.
 *
 * Owns        nothing.
 * Invariants  every allocation that takes a slow path but the first is guarded here.
 * Threads     as named.
 * Tests       tests/attack/guarded_test.c
 */
#ifndef TESTS_ATTACK_GUARDED_H
#define TESTS_ATTACK_GUARDED_H

#include <stdlib.h>

/* Before attack.h, which sets what is not set yet. */
__attribute__((constructor(101))) static void guard_all(void)
{
    setenv("HAKMEM_GUARD_RATE", "1", 1);
}

#include "attack.h"
#include "misuse/guarded.h"
#include "misuse/sampled_guard.h"

/* A guarded block; others of its size were cached at first. */
static inline char *take_guarded(size_t bytes)
{
    for (int i = 0; i < 10000; i++) {
        char *block = volatile_block(hak_malloc(bytes));
        if (hak_guarded_holds(block))
            return block;
    }
    CHECK(!"guarded");
    return NULL;
}

static inline char *take_freed(size_t bytes)
{
    char *block = take_guarded(bytes);
    hak_free(block);
    return block;
}

#endif
