/* SPDX-License-Identifier: MIT */
/* os/confine.h - a program that filters its own system calls (seccomp(2)).
 *
 * Owns        whether it did, and the names prctl and syscall where hakmem takes malloc's place: a
 *             filter is set through one of them, by libseccomp too. Once set the flag stays;
 *             children inherit it with the filter. The same names tell of a bare exit
 *             (os/bare_exit.h) and of changes of namespaces (os/identity.h).
 * Invariants  such a filter may kill the process for calls that malloc was not expected to make. So
 *             hakmem prepares first: it makes the calls now that it would make later. From then on
 *             no call is made that hak_os_ask_begin guards. A filter set before exec is not known:
 *             one that lets a program start allows the calls of a start.
 * Argument    A filter may apply to all threads at once, also to one in the middle of such a call.
 *             That thread counts itself first, then reads the flag; the confining thread sets the
 *             flag first, then reads the count, with a full fence between on both sides: one of
 *             them sees the other. The wait is bounded: the calling thread may be the one
 *             interrupted by the handler that confines the process.
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

/* Forgets callers in progress; in the child of a fork, which has no such threads. */
void hak_os_ask_reset(void);

/* What must be done before the program is confined: up to two functions, in that order. */
void hak_os_on_confinement(void (*prepare)(void));

/* Prepares, then sets the flag; returns when no such call is in progress any more. */
void hak_os_confine(void);

#endif
