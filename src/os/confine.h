/* SPDX-License-Identifier: MIT */
/* os/confine.h - a program that filters its own system calls (seccomp(2)).
 *
 * Owns        whether it did, and the names prctl and syscall where hakmem takes malloc's place: a
 *             filter is set through one of them, by libseccomp too. Once set the flag stays;
 *             children inherit it with the filter.
 * Invariants  such a filter may kill for what malloc was never seen to do before. So hakmem gets
 *             ready first: it asks now what it would ask later. From then on no call is made that
 *             hak_os_ask_begin guards. A filter from before exec is not known of: one that lets a
 *             program start allows what a start takes.
 * Argument    A filter may reach all threads at once, also one that is in the middle of asking. It
 *             counts itself first, then reads the flag; the confining thread sets the flag first,
 *             then reads the count, with a full fence between on both sides: one of them sees the
 *             other. The wait is bounded: who asks may be the thread that a handler, which
 *             confines the process, interrupted.
 * Threads     any. Nothing is allocated, errno stays.
 * Tests       tests/unit/os/confine_test.c, tests/install/sandbox_install.sh
 */
#ifndef HAK_OS_CONFINE_H
#define HAK_OS_CONFINE_H

#include "base/atomic.h"
#include "base/compiler.h"

extern _Atomic bool hak_os_confined;

/* True once the program began to filter its system calls. */
HAK_INLINE bool hak_os_is_confined(void)
{
    return HAK_UNLIKELY(hak_load_relaxed(&hak_os_confined));
}

/* Around system calls that a confined program may not make; false: it is one, and nothing is to be
 * ended. */
bool hak_os_ask_begin(void);
void hak_os_ask_end(void);

/* Forgets who was asking; in the child of a fork, which has no such threads. */
void hak_os_ask_reset(void);

/* What is to be done before the program is confined. */
void hak_os_on_confinement(void (*prepare)(void));

/* Gets ready, then sets the flag; returns when nobody is asking any more. */
void hak_os_confine(void);

#endif
