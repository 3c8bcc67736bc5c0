/* SPDX-License-Identifier: MIT */
/* os/lock.h - futex locks with a rank each.
 *
 * Owns        struct hak_lock, the one table of locks, and what was waited for each.
 * Invariants  a thread takes locks in rising rank only, one of each rank at most (asserted at check
 *             level 1). A lock's word is 0 or its holder (os/lock_word.h). No lock is held across a
 *             system call that a hot thread needs.
 * Argument    Ordinary threads sleep on `wakes`: read before the word is found taken and marked,
 *             and changed after each release of a marked word, it loses no waking. Real-time
 *             threads wait in the kernel for the word itself, and lend the holder their priority
 *             (os/inherit.h): a holder that a more urgent thread displaces runs again. A word that
 *             they wait for is given by the kernel only, to the most urgent, so no thread takes it
 *             in between. A holder may wait for the next lock itself: once a real-time thread has
 *             waited, all threads wait so for locks above the heaps (for a heap a thread waits
 *             20 ms at most: heap/heaps.h). Each release behind such a wait wakes a sleeper, since
 *             the kernel drops their mark.
 * Threads     take is acquire, give is release; each is the other's partner. hak_lock_held is set
 *             before the lock is had and cleared after it is given: a handler may see it early or
 *             late, never miss it.
 * Tests       tests/unit/os/{lock,inherit}_test.c, tests/race/lock_race.c
 */
#ifndef HAK_OS_LOCK_H
#define HAK_OS_LOCK_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "os/lock_word.h"
#include "os/section.h"

/* rank (rising), name in the statistics, what it protects. */
#define HAK_LOCK_TABLE(X)                                                                          \
    X(START, start, "the one start of the process")                                                \
    X(CACHES, caches, "lists of caches, and where their slots are")                                \
    X(HEAPS, heaps, "the table of heaps, for who makes one more")                                  \
    X(HEAP, heap, "one heap: its slabs and its cache of spans")                                    \
    X(PRIVATE_SET, private_set, "lists of the program's own heaps and of spare records")           \
    X(PRIVATE, private, "one of these heaps: its slabs and its handle's generation")               \
    X(PURGE, purge, "superslabs and spans that are out while they go back to the kernel")          \
    X(DEPOT, depot, "superslab occupancy")                                                         \
    X(SPAN, span, "free spans and their bins")                                                     \
    X(REGION, region, "growth of the committed window")                                            \
    X(META, meta, "bump pointer and free lists of metadata")

enum hak_lock_rank {
#define X(rank, name, meaning) HAK_LOCK_##rank,
    HAK_LOCK_TABLE(X)
#undef X
        HAK_LOCK_COUNT
};

struct hak_lock {
    _Atomic uint32_t state; /* os/lock_word.h */
    _Atomic uint32_t wakes; /* changes when a sleeper is woken */
    uint32_t rank;
};

/* How often locks of a rank were waited for, and how long. */
struct hak_lock_waits {
    _Atomic uint64_t count;
    _Atomic uint64_t time_ns;
};
extern struct hak_lock_waits hak_lock_waits[HAK_LOCK_COUNT];

#define HAK_LOCK_START_WITH(rank_) {.state = 0, .rank = (rank_)}

void hak_lock_take_slow(struct hak_lock *lock);
void hak_lock_give_slow(struct hak_lock *lock);
void hak_lock_wake(struct hak_lock *lock);
/* True when the lock is this thread's through HAK_LOCK_ALL; a lock that the thread holds otherwise
 * would never be had: abort. */
bool hak_lock_is_had(const struct hak_lock *lock);
/* Ranks, in checked builds. */
void hak_lock_check_take(const struct hak_lock *lock);
void hak_lock_check_give(const struct hak_lock *lock);

/* True when this thread holds the lock; if it does not, it forgets that it was about to. After
 * hak_lock_is_abandoned, or at the thread's end. */
bool hak_lock_is_left(struct hak_lock *lock);

HAK_INLINE bool hak_lock_is_own(const struct hak_lock *lock)
{
    return hak_word_is_own(hak_load_relaxed(&lock->state));
}

/* Without ranks: for heaps (heap/heaps.h), and fork, which takes many. */
HAK_INLINE bool hak_lock_try_among(struct hak_lock *lock)
{
    uint32_t expected = 0;
    /* acquire: partner is the release in hak_lock_give_among */
    return hak_cas_acquire(&lock->state, &expected, hak_word_self());
}

HAK_INLINE void hak_lock_give_among(struct hak_lock *lock)
{
    uint32_t expected = hak_word_self();
    /* release: partner is the acquire in hak_lock_try_among */
    if (HAK_UNLIKELY(!hak_cas_release(&lock->state, &expected, 0)))
        hak_lock_give_slow(lock);
}

HAK_INLINE bool hak_lock_try(struct hak_lock *lock)
{
    if (HAK_UNLIKELY(hak_lock_held & (HAK_LOCK_ALL | 1u << lock->rank)))
        return (hak_lock_held & HAK_LOCK_ALL) != 0;
    hak_lock_begin(lock->rank);
    bool is_taken = hak_lock_try_among(lock);
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
    if (HAK_UNLIKELY(!hak_lock_try_among(lock)))
        hak_lock_take_slow(lock);
}

HAK_INLINE void hak_lock_give(struct hak_lock *lock)
{
    if (HAK_CHECK_LEVEL >= 1)
        hak_lock_check_give(lock);
    if (HAK_UNLIKELY(hak_lock_held & HAK_LOCK_ALL))
        return;
    hak_lock_give_among(lock);
    hak_lock_end(lock->rank);
}

bool hak_lock_take_within(struct hak_lock *lock, uint32_t patience_ms);

/* In the child of a fork: free again, held by nobody; or still held by the calling thread, which
 * has another id there. */
void hak_lock_reset(struct hak_lock *lock);
void hak_lock_keep(struct hak_lock *lock);

/* A real-time thread has waited: from now on ordinary threads lend their priority, too. */
extern _Atomic bool hak_lock_lends;

/* Around the settling of a copy, signals blocked: locks that other threads hold count as left. */
void hak_lock_begin_settling(void);
bool hak_lock_is_settling(void);
void hak_lock_end_settling(void);

#endif
