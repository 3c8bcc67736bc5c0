/* SPDX-License-Identifier: MIT */
/* os/lock.h - futex locks with a rank each.
 *
 * Owns        struct hak_lock and the one table of locks.
 * Invariants  a thread takes locks in rising rank only, one of each rank at most (asserted at check
 *             level 1). States: 0 free, 1 held, 2 held and somebody sleeps (Drepper, "Futexes are
 *             tricky"). No lock is held across a system call that a hot thread needs.
 * Threads     take is acquire, give is release; each is the other's partner.
 * Tests       tests/unit/os/lock_test.c, tests/race/lock_race.c
 */
#ifndef HAK_OS_LOCK_H
#define HAK_OS_LOCK_H

#include "base/atomic.h"
#include "base/compiler.h"

/* name, what it protects; rank = position. */
#define HAK_LOCK_TABLE(X)                                                                          \
    X(START, "the one start of the process")                                                       \
    X(STRANGER, "claims of heaps whose threads run: one stranger at a time")                       \
    X(REGISTRY, "list of heaps and of parked heaps")                                               \
    X(PRIVATE_SET, "list of private heaps and of parked ones")                                     \
    X(PRIVATE, "one private heap: its slabs and its handle's generation")                          \
    X(PURGE, "what is out of the depot and the spans while it goes back to the kernel")            \
    X(DEPOT, "superslab occupancy")                                                                \
    X(SPAN, "free spans and their bins")                                                           \
    X(REGION, "growth of the committed window")                                                    \
    X(META, "bump pointer and free lists of metadata")

enum hak_lock_rank {
#define X(name, meaning) HAK_LOCK_##name,
    HAK_LOCK_TABLE(X)
#undef X
        HAK_LOCK_COUNT
};

struct hak_lock {
    _Atomic uint32_t state;
    uint32_t rank;
};

#define HAK_LOCK_START_WITH(rank_) {.state = 0, .rank = (rank_)}

void hak_lock_take_slow(struct hak_lock *lock);
void hak_lock_give_slow(struct hak_lock *lock);
/* Rank bookkeeping of checked builds. */
void hak_lock_note_taken(const struct hak_lock *lock);
void hak_lock_note_given(const struct hak_lock *lock);

HAK_INLINE bool hak_lock_try(struct hak_lock *lock)
{
    uint32_t expected = 0;
    /* acquire: partner is the release in hak_lock_give */
    bool taken = hak_cas_acquire(&lock->state, &expected, 1);
    if (HAK_CHECK_LEVEL >= 1 && taken)
        hak_lock_note_taken(lock);
    return taken;
}

HAK_INLINE void hak_lock_take(struct hak_lock *lock)
{
    uint32_t expected = 0;
    /* acquire: partner is the release in hak_lock_give */
    if (HAK_UNLIKELY(!hak_cas_acquire(&lock->state, &expected, 1)))
        hak_lock_take_slow(lock);
    if (HAK_CHECK_LEVEL >= 1)
        hak_lock_note_taken(lock);
}

HAK_INLINE void hak_lock_give(struct hak_lock *lock)
{
    if (HAK_CHECK_LEVEL >= 1)
        hak_lock_note_given(lock);
    /* release: partner is the acquire in hak_lock_take */
    if (HAK_UNLIKELY(hak_exchange_release(&lock->state, 0) == 2))
        hak_lock_give_slow(lock);
}

/* Without the bookkeeping of ranks: for fork, which takes all locks of one rank. */
HAK_INLINE bool hak_lock_try_among(struct hak_lock *lock)
{
    uint32_t expected = 0;
    /* acquire: partner is the release in hak_lock_give and hak_lock_give_among */
    return hak_cas_acquire(&lock->state, &expected, 1);
}

HAK_INLINE void hak_lock_give_among(struct hak_lock *lock)
{
    /* release: partner is the acquire in hak_lock_take */
    if (HAK_UNLIKELY(hak_exchange_release(&lock->state, 0) == 2))
        hak_lock_give_slow(lock);
}

/* In the child of a fork, where the threads that waited do not exist: free again, held by
 * nobody. */
void hak_lock_reset(struct hak_lock *lock);

#endif
