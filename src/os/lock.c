/* SPDX-License-Identifier: MIT */
#include "os/lock.h"

#include "base/bits.h"
#include "base/check.h"
#include "os/inherit.h"
#include "policy/policy_table.h"

struct hak_lock_waits hak_lock_waits[HAK_LOCK_COUNT];
HAK_TLS uint32_t hak_lock_held;
HAK_TLS uintptr_t hak_lock_frame;
_Atomic uint32_t hak_lock_sections_left = HAK_LOCK_SECTIONS_PER_LOOK;
static _Atomic uint32_t sections_per_look = HAK_LOCK_SECTIONS_PER_LOOK;
_Atomic bool hak_lock_signals_matter;
/* A sleeper looks again after so long: a handler may come meanwhile that copies the process, and in
 * the copy nobody wakes it. Without a bound the kernel would go back to sleep by itself. */
#define SLEEP_MS 1000
/* The same of a thread that may hold what a real-time thread waits for (hak_lock_lends). */
#define SLEEP_INSIDE_MS 100
_Atomic bool hak_lock_lends;

/* What this thread had blocked before its outermost section. */
static HAK_TLS uint64_t signals_before;

void hak_lock_begin_slow(void)
{
    if (!hak_load_relaxed(&hak_lock_signals_matter)) {
        uint32_t count = hak_load_relaxed(&sections_per_look);
        hak_store_relaxed(&hak_lock_sections_left, count);
        if (count < HAK_LOCK_SECTIONS_PER_LOOK_MOST)
            hak_store_relaxed(&sections_per_look, 2 * count);
        if (!hak_os_handles_signals())
            return;
        hak_lock_note_handler();
    }
    /* A handler that comes between these lines finds no section, and may even jump. */
    signals_before = hak_os_block_signals();
    hak_lock_held = HAK_LOCK_BLOCKED;
}

void hak_lock_end_slow(void)
{
    uint64_t before = signals_before;
    hak_lock_held = 0;
    hak_compiler_fence();
    hak_os_restore_signals(before);
}

bool hak_lock_is_had(const struct hak_lock *lock)
{
    hak_require(hak_lock_held & HAK_LOCK_ALL || !hak_lock_is_noted(lock->rank),
                "a signal handler needs what its own thread holds");
    return (hak_lock_held & HAK_LOCK_ALL) != 0;
}

static bool spin(struct hak_lock *lock)
{
    uint64_t rounds = hak_policy_read(spin_rounds);
    for (uint64_t i = 0; i < rounds; i++) {
        if (hak_load_relaxed(&lock->state) == 0 && hak_lock_try_among(lock))
            return true;
        hak_cpu_relax();
    }
    return false;
}

/* One sleep of so long at most, if the lock is not free; true: it is had. Others may sleep: a
 * thread that comes from here wakes one of them, perhaps for nothing. */
static bool sleep_once(struct hak_lock *lock, uint32_t most_ms)
{
    /* acquire: partner is the addition in hak_lock_wake; a release that the word does not show yet
     * changes it later */
    uint32_t wakes = hak_load_acquire(&lock->wakes);
    uint32_t state = hak_load_relaxed(&lock->state);
    /* acquire: partner is the release in hak_lock_give_among */
    if (state == 0)
        return hak_cas_acquire(&lock->state, &state, hak_word_self() | HAK_WORD_SLEEPS);
    if (state & (HAK_WORD_SLEEPS | HAK_WORD_INHERITS) ||
        hak_cas_acquire(&lock->state, &state, state | HAK_WORD_SLEEPS))
        hak_os_futex_wait(&lock->wakes, wakes, most_ms);
    return false;
}

/* The same, lending the holder this thread's priority. */
static bool lend_once(struct hak_lock *lock, uint32_t most_ms)
{
    switch (hak_inherit_wait(&lock->state, most_ms)) {
    case INHERIT_HELD:
        /* acquire: partner is the release in hak_lock_give_slow */
        (void)hak_load_acquire(&lock->state);
        return true;
    case INHERIT_AGAIN:
        return false;
    case INHERIT_UNABLE:
        break;
    }
    return sleep_once(lock, (uint32_t)hak_least(most_ms, HAK_INHERIT_MS_MOST));
}

/* Locks above those that a real-time thread waits for without a way out. */
static bool is_inside(const struct hak_lock *lock)
{
    return lock->rank > HAK_LOCK_HEAP;
}

static bool wait_once(struct hak_lock *lock, uint32_t most_ms, bool is_urgent)
{
    hak_copy_look();
    bool lends = is_urgent || (is_inside(lock) && hak_load_relaxed(&hak_lock_lends));
    return lends ? lend_once(lock, most_ms) : sleep_once(lock, most_ms);
}

static bool is_urgent(void)
{
    bool is_real_time = hak_os_is_real_time();
    if (is_real_time)
        hak_store_relaxed(&hak_lock_lends, true);
    return is_real_time;
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
    if (!spin(lock)) {
        uint32_t most_ms = is_inside(lock) ? SLEEP_INSIDE_MS : SLEEP_MS;
        bool urgent = is_urgent();
        while (!wait_once(lock, most_ms, urgent))
            ;
    }
    count_wait(lock, start_ns);
}

bool hak_lock_take_within(struct hak_lock *lock, uint32_t patience_ms)
{
    if (hak_lock_try_among(lock))
        return true;
    uint64_t start_ns = hak_os_clock_ns();
    uint64_t deadline_ms = hak_os_clock_ms() + patience_ms;
    bool is_taken = spin(lock);
    bool urgent = !is_taken && patience_ms != 0 && is_urgent();
    uint64_t left_ms;
    while (!is_taken && (left_ms = hak_excess(deadline_ms, hak_os_clock_ms())) != 0)
        is_taken = wait_once(lock, (uint32_t)left_ms, urgent);
    count_wait(lock, start_ns);
    return is_taken;
}

void hak_lock_wake(struct hak_lock *lock)
{
    /* release: partner is the acquire in sleep_once */
    hak_fetch_add_acq_rel(&lock->wakes, 1);
    hak_os_futex_wake(&lock->wakes, 1);
}

/* The word is marked. Where the kernel does not give it (a child of vfork holds the lock of its
 * parent's thread, or the process confined itself), those that lend wait in vain until their time
 * is over. */
void hak_lock_give_slow(struct hak_lock *lock)
{
    uint32_t state = hak_load_relaxed(&lock->state);
    bool is_given = false;
    while (!is_given) {
        if (state & HAK_WORD_INHERITS) {
            /* release: partner is the acquire in lend_once */
            hak_fetch_or_release(&lock->state, 0);
            if (hak_inherit_give(&lock->state))
                break;
        }
        /* release: partner is the acquire in hak_lock_try_among */
        is_given = hak_cas_release(&lock->state, &state, 0);
    }
    if (state & (HAK_WORD_SLEEPS | HAK_WORD_INHERITS))
        hak_lock_wake(lock);
}

/* In a copy: the lock is not free, and not of a section that this thread was interrupted in. It
 * becomes this thread's. Another thread's word may be the same, of a stack that is used again. */
static bool take_over(struct hak_lock *lock)
{
    if (hak_load_relaxed(&lock->state) == 0 ||
        (hak_lock_is_noted(lock->rank) && hak_lock_is_own(lock))) {
        hak_lock_keep(lock);
        return false;
    }
    hak_store_relaxed(&lock->state, hak_word_self());
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
        hak_lock_wake(lock); /* the jump may have come just before this */
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
    hak_require(hak_lock_held & HAK_LOCK_ALL || (ranks_held() >> lock->rank) == 0,
                "lock taken out of rank");
}

void hak_lock_check_give(const struct hak_lock *lock)
{
    hak_require(hak_lock_is_noted(lock->rank), "lock given back that is not held");
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
        hak_lock_end_slow();
}

void hak_lock_begin_settling(void)
{
    hak_lock_held |= HAK_LOCK_SETTLES;
}

bool hak_lock_is_settling(void)
{
    return (hak_lock_held & HAK_LOCK_SETTLES) != 0;
}

void hak_lock_end_settling(void)
{
    hak_lock_held &= ~HAK_LOCK_SETTLES;
}

void hak_lock_reset(struct hak_lock *lock)
{
    hak_store_relaxed(&lock->state, 0);
    hak_lock_held &= ~(1u << lock->rank);
}

void hak_lock_keep(struct hak_lock *lock)
{
    uint32_t state = hak_load_relaxed(&lock->state);
    if (hak_word_is_own(state))
        hak_store_relaxed(&lock->state, hak_word_self() | (state & HAK_WORD_SLEEPS));
}
