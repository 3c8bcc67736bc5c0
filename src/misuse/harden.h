/* SPDX-License-Identifier: MIT */
/* misuse/harden.h - which members of the hardened set are on.
 *
 * Owns        hak_harden, the secret that canaries are made from, and the source of random numbers.
 * Invariants  hak_harden is HARDEN_UNSTARTED until the process has started, then 0 or a set that
 *             has HARDEN_EXACT, or HARDEN_COUNTED, or both; HARDEN_FENCED comes with the first.
 *             While it is not 0, malloc and free find closed bins (heap/rooms.h): each takes the
 *             slow path.
 * Threads     written once, at the start of the process, before any block exists.
 * Tests       tests/unit/misuse/harden_test.c
 */
#ifndef HAK_MISUSE_HARDEN_H
#define HAK_MISUSE_HARDEN_H

#include "base/atomic.h"
#include "base/bits.h"
#include "base/compiler.h"

/* In the order of the words of the option. */
enum harden {
    HARDEN_EXACT = 1 << 0,      /* the state of each block: implied by all others */
    HARDEN_RANDOM = 1 << 1,     /* any free block of a slab, not the lowest */
    HARDEN_QUARANTINE = 1 << 2, /* freed blocks wait before they are used again */
    HARDEN_ZERO = 1 << 3,       /* cleared when freed, verified later */
    HARDEN_CANARY = 1 << 4,     /* bytes behind each block, verified when it is freed */
    HARDEN_GUARDS = 1 << 5,     /* pages without access around slabs and large blocks */
    HARDEN_SIZED = 1 << 6,      /* freed as it was allocated */
    HARDEN_FENCED = 1 << 28,    /* some blocks are fenced (misuse/fence.h) */
    HARDEN_COUNTED = 1 << 29,   /* stats=exact: no protection, but it wants empty bins as well */
    HARDEN_WATCHED = HARDEN_EXACT | HARDEN_COUNTED, /* either: each call is looked at */
    HARDEN_UNSTARTED = 1 << 30,
};

extern _Atomic uint32_t hak_harden;

/* A member, or any of several. */
HAK_INLINE bool hak_harden_has(enum harden member)
{
    return (hak_load_relaxed(&hak_harden) & (uint32_t)member) != 0;
}

/* Turns the set on that the options name; with what fences need where some blocks have them. */
void hak_harden_start(bool is_fenced);

/* A random number of this thread's sequence, unpredictable without the secret. */
uint64_t hak_random(void);

/* Constant from the start on, where something is made from it. */
extern uint64_t hak_harden_secret;

/* The 8 bytes that follow a block; the first is 0, so that text does not run into them. */
HAK_INLINE uint64_t hak_canary_of(const void *block)
{
    return hak_bit_mix(hak_harden_secret ^ (uintptr_t)block) & ~(uint64_t)0xff;
}

#endif
