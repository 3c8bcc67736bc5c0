/* SPDX-License-Identifier: MIT */
/* os/flag.h - waiting for a flag that one thread at a time has (base/atomic.h).
 *
 * Owns        nothing.
 * Invariants  nobody waits for ever: a fork, a jump or a signal handler may have left the flag
 *             taken. The thread that has it does little and does not sleep, so others yield.
 * Threads     any.
 * Tests       tests/unit/os/flag_test.c
 */
#ifndef HAK_OS_FLAG_H
#define HAK_OS_FLAG_H

#include "base/atomic.h"
#include "os/os.h"

#define HAK_FLAG_YIELDS_MOST 10000

/* Takes the flag; false: another thread has it all the while. */
HAK_INLINE bool hak_flag_await(_Atomic uint32_t *flag)
{
    for (int i = 0; i < HAK_FLAG_YIELDS_MOST; i++) {
        if (hak_flag_take(flag))
            return true;
        hak_os_yield();
    }
    return false;
}

#define HAK_FLAG_PATIENCE_MS 1000

/* The same for a second at most, where what the other one does may take its time. */
HAK_INLINE bool hak_flag_await_second(_Atomic uint32_t *flag)
{
    uint64_t deadline_ms = hak_os_clock_ms() + HAK_FLAG_PATIENCE_MS;
    while (!hak_flag_take(flag)) {
        if (hak_os_clock_ms() > deadline_ms)
            return false;
        hak_os_yield();
    }
    return true;
}

#endif
