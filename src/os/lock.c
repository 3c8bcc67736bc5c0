/* SPDX-License-Identifier: MIT */
#include "os/lock.h"

#include "base/check.h"
#include "os/os.h"

#define SPIN_ROUNDS 64

/* Bit r is set while this thread holds the lock of rank r. */
static HAK_TLS uint32_t held_ranks;

void hak_lock_take_slow(struct hak_lock *lock)
{
    for (int i = 0; i < SPIN_ROUNDS; i++) {
        uint32_t expected = 0;
        if (hak_load_relaxed(&lock->state) == 0 && hak_cas_acquire(&lock->state, &expected, 1))
            return;
        hak_cpu_relax();
    }
    /* acquire: partner is the release in hak_lock_give; 2 says that somebody may sleep */
    while (hak_exchange_acquire(&lock->state, 2) != 0)
        hak_os_futex_wait(&lock->state, 2, 0);
}

void hak_lock_give_slow(struct hak_lock *lock)
{
    hak_os_futex_wake(&lock->state, 1);
}

void hak_lock_note_taken(const struct hak_lock *lock)
{
    hak_require((held_ranks >> lock->rank) == 0, "lock taken out of rank");
    held_ranks |= 1u << lock->rank;
}

void hak_lock_note_given(const struct hak_lock *lock)
{
    hak_require((held_ranks >> lock->rank) & 1u, "lock given back that is not held");
    held_ranks &= ~(1u << lock->rank);
}

void hak_lock_reset(struct hak_lock *lock)
{
    hak_store_relaxed(&lock->state, 0);
    held_ranks &= ~(1u << lock->rank);
}
