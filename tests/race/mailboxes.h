/* SPDX-License-Identifier: MIT */
/* tests/race/mailboxes.h - blocks that threads hand each other, signed on the way.
 *
 * Owns        the mailboxes, and how many blocks were handed out and freed.
 * Invariants  a receiver of a block finds what its sender wrote.
 * Threads     any.
 * Tests       tests/race/
 */
#ifndef TESTS_RACE_MAILBOXES_H
#define TESTS_RACE_MAILBOXES_H

#include "racers.h"

#define MAILBOXES 256u

static _Atomic(uint64_t *) mailboxes[MAILBOXES];
static _Atomic uint32_t handed_count;
static _Atomic uint32_t freed_count;
static _Atomic bool is_closed;

static inline void block_hand_out(struct racer *racer, uint64_t *block)
{
    block[0] = (uintptr_t)block ^ 0x5555;
    block[7] = 1;
    atomic_fetch_add(&handed_count, 1);
    for (;;) {
        uint64_t *none = NULL;
        if (atomic_compare_exchange_strong(&mailboxes[draw(racer) % MAILBOXES], &none, block))
            return;
        stumble(racer);
    }
}

/* A block from the mailboxes, written to; NULL: none was found. */
static inline uint64_t *block_receive(struct racer *racer)
{
    uint32_t at = (uint32_t)draw(racer);
    for (uint32_t i = 0; i < MAILBOXES; i++) {
        uint64_t *block = atomic_exchange(&mailboxes[(at + i) % MAILBOXES], NULL);
        if (block == NULL)
            continue;
        CHECK_EQ(block[0], (uintptr_t)block ^ 0x5555);
        CHECK_EQ(block[7], 1);
        block[0] = 0;
        block[7] = 2;
        return block;
    }
    return NULL;
}

static inline bool is_over(void)
{
    return atomic_load(&is_closed) && atomic_load(&freed_count) == atomic_load(&handed_count);
}

#endif
