/* SPDX-License-Identifier: MIT */
/* os/lock.h - futex locks with a rank each.
 *
 * Owns        struct hak_lock, the table of locks, and the waits for each.
 * Invariants  a thread takes locks in rising rank only, one of each rank at most (asserted at check
 *             level 1; of SPAN_SET maybe all). A lock's word is 0, or its holder, with bit 0 set if
 *             a thread sleeps. No lock is held across a system call that a hot thread needs.
 * Threads     take is acquire, give is release: partners. hak_lock_held is set before a lock is
 *             acquired and cleared after its release: a handler may see it too long, never miss it.
 * Tests       tests/unit/os/lock_test.c, tests/race/lock_race.c
 */
#ifndef HAK_OS_LOCK_H
#define HAK_OS_LOCK_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "os/section.h"

/* rank (rising), name in the statistics, what it protects. */
#define HAK_LOCK_TABLE(X)                                                                          \
    X(START, start, "start of the process")                                                        \
    X(CACHES, caches, "the lists of caches, and the locations of their slots")                     \
    X(HEAPS, heaps, "the table of heaps, while one is created")                                    \
    X(HEAP, heap, "one heap: its slabs and its span cache")                                        \
    X(PRIVATE_SET, private_set, "lists of user heaps and of spare records")                        \
    X(PRIVATE, private, "one user heap: its slabs and its handle's generation")                    \
    X(GROWTH, growth, "superslabs being added to the pool")                                        \
    X(PURGE, purge, "superslabs and spans that are being purged")                                  \
    X(DEPOT, depot, "superslab occupancy")                                                         \
    X(SPAN_SET, span_set, "free spans of the heaps' sets")                                         \
    X(SPAN, span, "all other free spans")                                                          \
    X(REGION, region, "growth of the committed window")                                            \
    X(META, meta, "bump pointer and free lists of metadata")                                       \
    X(META_GROWTH, meta_growth, "growth of the metadata")                                          \
    X(FENCE, fence, "runs of pages for fenced blocks, and their quarantine")

enum hak_lock_rank {
#define X(rank, name, meaning) HAK_LOCK_##rank,
    HAK_LOCK_TABLE(X)
#undef X
        HAK_LOCK_COUNT
};

struct hak_lock {
    _Atomic uint32_t state; /* HAK_LOCK_SLEEPS: a thread may sleep */
    uint32_t rank;
};

/* How often locks of a rank were waited for, and how long. */
struct hak_lock_waits {
    _Atomic uint64_t count;
    _Atomic uint64_t time_ns;
};
extern struct hak_lock_waits hak_lock_waits[HAK_LOCK_COUNT];

#define HAK_LOCK_SLEEPS 1u
#define HAK_LOCK_START_WITH(rank_) {.state = 0, .rank = (rank_)}

void hak_lock_take_slow(struct hak_lock *lock);
void hak_lock_give_slow(struct hak_lock *lock);
/* True when the lock is this thread's through HAK_LOCK_ALL; a lock that the thread holds otherwise
 * could never be acquired: abort. */
bool hak_lock_is_had(const struct hak_lock *lock);
void hak_lock_check_take(const struct hak_lock *lock); /* ranks, in checked builds */
void hak_lock_check_give(const struct hak_lock *lock);

/* True when this thread holds the lock; if it does not, it forgets that it was about to. After
 * hak_lock_is_abandoned, or at the thread's end. */
bool hak_lock_is_left(struct hak_lock *lock);

/* The holder of a lock: the same in a child as in its parent. Threads' areas lie 64 bytes apart at
 * least, and within 2^37 bytes (16,384 stacks of the usual size) no two have the same word. */
HAK_INLINE uint32_t hak_lock_word_of(uintptr_t address)
{
    uint32_t word = (uint32_t)(address >> 5) & ~HAK_LOCK_SLEEPS;
    return HAK_LIKELY(word != 0) ? word : HAK_LOCK_SLEEPS << 1; /* 0 is a free lock */
}

HAK_INLINE uint32_t hak_lock_self(void)
{
    return hak_lock_word_of((uintptr_t)&hak_lock_held);
}

HAK_INLINE bool hak_lock_is_own(const struct hak_lock *lock)
{
    return (hak_load_relaxed(&lock->state) & ~HAK_LOCK_SLEEPS) == hak_lock_self();
}

HAK_INLINE bool hak_lock_try(struct hak_lock *lock)
{
    if (HAK_UNLIKELY(hak_lock_held & (HAK_LOCK_ALL | 1u << lock->rank)))
        return hak_lock_has_all();
    hak_lock_begin(lock->rank);
    uint32_t expected = 0;
    /* acquire: partner is the release in hak_lock_give */
    bool is_taken = hak_cas_acquire(&lock->state, &expected, hak_lock_self());
    if (!is_taken)
        hak_lock_end(lock->rank);
    return is_taken;
}

HAK_INLINE void hak_lock_take(struct hak_lock *lock)
{
    if (HAK_CHECK_LEVEL >= 1)
        hak_lock_check_take(lock);
    if (HAK_UNLIKELY(hak_lock_held & (HAK_LOCK_ALL | 1u << lock->rank)) && hak_lock_is_had(lock))
        return;
    hak_lock_begin(lock->rank);
    uint32_t expected = 0;
    /* acquire: partner is the release in hak_lock_give */
    if (HAK_UNLIKELY(!hak_cas_acquire(&lock->state, &expected, hak_lock_self())))
        hak_lock_take_slow(lock);
}

HAK_INLINE void hak_lock_give(struct hak_lock *lock)
{
    if (HAK_CHECK_LEVEL >= 1)
        hak_lock_check_give(lock);
    if (HAK_UNLIKELY(hak_lock_has_all()))
        return;
    /* release: partner is the acquire in hak_lock_take */
    if (HAK_UNLIKELY(hak_exchange_release(&lock->state, 0) & HAK_LOCK_SLEEPS))
        hak_lock_give_slow(lock);
    hak_lock_end(lock->rank);
}

/* Without ranks: for heaps, and fork, which takes many. */
HAK_INLINE bool hak_lock_try_among(struct hak_lock *lock)
{
    uint32_t expected = 0;
    /* acquire: partner is the release in hak_lock_give and hak_lock_give_among */
    return hak_cas_acquire(&lock->state, &expected, hak_lock_self());
}

HAK_INLINE void hak_lock_give_among(struct hak_lock *lock)
{
    /* release: partner is the acquire in hak_lock_take */
    if (HAK_UNLIKELY(hak_exchange_release(&lock->state, 0) & HAK_LOCK_SLEEPS))
        hak_lock_give_slow(lock);
}

bool hak_lock_take_within(struct hak_lock *lock, uint32_t patience_ms);
void hak_lock_reset(struct hak_lock *lock); /* in the child of a fork: free again */

/* Around the settling of a copy, signals blocked: locks that other threads hold count as left. Then
 * the thread's notes are as they were: it may have been interrupted while it waited for a lock. */
uint32_t hak_lock_begin_settling(void);
void hak_lock_end_settling(uint32_t held);
bool hak_lock_is_settling(void);
#endif
