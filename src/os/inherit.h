/* SPDX-License-Identifier: MIT */
/* os/inherit.h - waits that lend their thread's priority to the holder of a lock.
 *
 * Owns        nothing: futexes with priority inheritance (futex(2)), and the question whether a
 *             thread is a real-time one.
 * Invariants  words are of the format of os/lock_word.h. A wait is bounded; a holder that the
 *             kernel does not know, and a kernel that does not lend, are told and lend nothing. A
 *             process that confined itself makes none of these calls (os/confine.h).
 * Threads     any. Nothing is allocated, errno stays.
 * Tests       tests/unit/os/inherit_test.c, tests/race/lock_race.c, tests/preload/real_time.c
 */
#ifndef HAK_OS_INHERIT_H
#define HAK_OS_INHERIT_H

#include "base/atomic.h"
#include "base/compiler.h"

/* No wait is longer, so that a priority that was lent to a thread which cannot give the lock (its
 * child of vfork has it) is not lent for ever, and a process soon confined. */
#define HAK_INHERIT_MS_MOST 20u

enum hak_inherit {
    INHERIT_HELD,   /* the lock is the caller's */
    INHERIT_AGAIN,  /* time is over, or the lock changed hands */
    INHERIT_UNABLE, /* nothing was lent, and nothing waited for */
};

/* Waits for the lock, `most_ms` at most. */
enum hak_inherit hak_inherit_wait(_Atomic uint32_t *word, uint32_t most_ms);

/* Gives the caller's lock to the most urgent waiter, or sets it free when there is none; false: the
 * kernel knows of no lock of the caller's here, or may not be asked. */
bool hak_inherit_give(_Atomic uint32_t *word);

/* The calling thread has a real-time policy (sched(7)). */
bool hak_os_is_real_time(void);

#endif
