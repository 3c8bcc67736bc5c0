/* SPDX-License-Identifier: MIT */
#include "os/lock.h"

#include "base/bits.h"
#include "base/check.h"
#include "policy/policy_table.h"

struct hak_lock_waits hak_lock_waits[HAK_LOCK_COUNT];
HAK_TLS uint32_t hak_lock_held;
HAK_TLS uintptr_t hak_lock_frame;
_Atomic bool hak_lock_signals_matter;
/* A thread that sleeps for a lock checks again after this time: a handler may copy the process
 * meanwhile, and no thread wakes it in the copy. Without a bound the kernel would go back to sleep
 * by itself. */
#define SLEEP_MS 1000

/* The signals that this thread had blocked before its outermost section. */
static HAK_TLS uint64_t signals_before;

void hak_lock_begin_blocked(void)
{
    /* A handler that comes between these lines finds no section, and may even jump. */
    signals_before = hak_os_block_signals();
    hak_lock_held = HAK_LOCK_BLOCKED;
}

void hak_lock_end_blocked(void)
{
    uint64_t before = signals_before;
    hak_lock_held = 0;
    hak_compiler_fence();
    hak_os_restore_signals(before);
}

bool hak_lock_is_had(const struct hak_lock *lock)
{
    hak_require(hak_lock_has_all() || !hak_lock_is_noted(lock->rank),
                "a signal handler needs what its own thread holds");
    return hak_lock_has_all();
}

/* Polls less and less often: a thread that takes the lock now and again then finds what it protects
 * in its own caches, while a change of hands costs a miss for each line. */
static bool spin(struct hak_lock *lock)
{
    uint64_t rounds = hak_policy_read(spin_rounds);
    uint64_t pauses = 1;
    for (uint64_t paused = 0; paused < rounds; paused += pauses, pauses *= 2) {
        if (hak_load_relaxed(&lock->state) == 0 && hak_lock_try_among(lock))
            return true;
        for (uint64_t i = 0; i < pauses; i++)
            hak_cpu_relax();
    }
    return false;
}

/* Sleeps once, for at most this long, if the lock is not free; true: it is taken. Other threads may
 * sleep, so a lock that was taken here wakes one of them when it is given, perhaps for nothing. */
static bool sleep_once(struct hak_lock *lock, uint32_t most_ms)
{
    hak_copy_look();
    uint32_t state = hak_load_relaxed(&lock->state);
    /* acquire: partner is the release in hak_lock_give */
    if (state == 0)
        return hak_cas_acquire(&lock->state, &state, hak_lock_self() | HAK_LOCK_SLEEPS);
    if (state & HAK_LOCK_SLEEPS || hak_cas_acquire(&lock->state, &state, state | HAK_LOCK_SLEEPS))
        hak_os_futex_wait(&lock->state, state | HAK_LOCK_SLEEPS, most_ms);
    return false;
}

static void count_wait(const struct hak_lock *lock, uint64_t start_ns)
{
    struct hak_lock_waits *waits = &hak_lock_waits[lock->rank];
    hak_fetch_add_relaxed(&waits->count, 1);
    hak_fetch_add_relaxed(&waits->time_ns, hak_os_clock_ns() - start_ns);
}

void hak_lock_take_slow(struct hak_lock *lock)
{
    uint64_t start_ns = hak_os_clock_ns();
    bool is_taken = spin(lock);
    while (!is_taken)
        is_taken = sleep_once(lock, SLEEP_MS);
    count_wait(lock, start_ns);
}

/* For a thread whose time is up: it may have been woken for a lock that is free. It takes the lock
 * then; if another thread was faster, the next sleeper is woken in its place. */
static bool take_late(struct hak_lock *lock)
{
    uint32_t expected = 0;
    /* acquire: partner is the release in hak_lock_give */
    bool is_taken = hak_cas_acquire(&lock->state, &expected, hak_lock_self() | HAK_LOCK_SLEEPS);
    if (!is_taken)
        hak_lock_give_slow(lock);
    return is_taken;
}

bool hak_lock_take_within(struct hak_lock *lock, uint32_t patience_ms)
{
    if (hak_lock_try_among(lock))
        return true;
    uint64_t start_ns = hak_os_clock_ns();
    uint64_t deadline_ms = hak_os_clock_ms() + patience_ms;
    bool is_taken = spin(lock), has_slept = false;
    uint64_t left_ms;
    while (!is_taken && (left_ms = hak_excess(deadline_ms, hak_os_clock_ms())) != 0) {
        is_taken = sleep_once(lock, (uint32_t)left_ms);
        has_slept = true;
    }
    if (!is_taken && has_slept)
        is_taken = take_late(lock);
    count_wait(lock, start_ns);
    return is_taken;
}

void hak_lock_give_slow(struct hak_lock *lock)
{
    hak_os_futex_wake(&lock->state, 1);
}

/* In a copy: the lock is not free, and not of a section that this thread was interrupted in. It
 * becomes this thread's. Another thread's word may be the same, of a stack that is used again. */
static bool take_over(struct hak_lock *lock)
{
    if (hak_load_relaxed(&lock->state) == 0 ||
        (hak_lock_is_noted(lock->rank) && hak_lock_is_own(lock)))
        return false;
    hak_store_relaxed(&lock->state, hak_lock_self());
    hak_lock_held |= 1u << lock->rank;
    return true;
}

bool hak_lock_is_left(struct hak_lock *lock)
{
    if (hak_lock_is_settling())
        return take_over(lock);
    if (hak_lock_is_own(lock))
        return true;
    if (hak_lock_is_noted(lock->rank)) {
        hak_lock_give_slow(lock); /* the jump may have come just before this */
        hak_lock_end(lock->rank);
    }
    return false;
}

static uint32_t ranks_held(void)
{
    return hak_lock_held & ~HAK_LOCK_NO_RANKS;
}

void hak_lock_check_take(const struct hak_lock *lock)
{
    hak_require(hak_lock_has_all() || (ranks_held() >> lock->rank) == 0, "lock taken out of rank");
}

void hak_lock_check_give(const struct hak_lock *lock)
{
    hak_require(hak_lock_has_all() || hak_lock_is_noted(lock->rank),
                "lock given back that is not held");
}

bool hak_lock_begin_fork(void)
{
    if (hak_lock_is_inside()) {
        hak_lock_note_handler();
        hak_lock_held |= HAK_LOCK_BLIND;
        return false;
    }
    signals_before = hak_os_block_signals();
    hak_lock_held |= HAK_LOCK_BLOCKED;
    return true;
}

bool hak_lock_is_fork_blind(void)
{
    return (hak_lock_held & HAK_LOCK_BLIND) != 0;
}

void hak_lock_end_blind_fork(void)
{
    hak_lock_held &= ~HAK_LOCK_BLIND;
}

void hak_lock_note_all(void)
{
    hak_lock_held |= HAK_LOCK_ALL;
}

void hak_lock_forget_all(void)
{
    hak_lock_held &= ~HAK_LOCK_ALL;
}

void hak_lock_end_fork_in_child(void)
{
    if (hak_lock_held == HAK_LOCK_BLOCKED)
        hak_lock_end_blocked();
}

uint32_t hak_lock_begin_settling(void)
{
    uint32_t held = hak_lock_held;
    hak_lock_held = held | HAK_LOCK_SETTLES;
    return held;
}

bool hak_lock_is_settling(void)
{
    return (hak_lock_held & HAK_LOCK_SETTLES) != 0;
}

void hak_lock_end_settling(uint32_t held)
{
    hak_lock_held = held;
}

void hak_lock_reset(struct hak_lock *lock)
{
    hak_store_relaxed(&lock->state, 0);
    hak_lock_held &= ~(1u << lock->rank);
}
