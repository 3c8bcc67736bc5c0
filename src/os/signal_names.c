/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "os/signal_names.h"

#include "base/atomic.h"
#include "os/fault_watch.h"
#include "os/next_symbol.h"

#include <signal.h>

#if HAK_SHARED

typedef void handler(int number);

/* libc's function of that name, without the front if it is about its signal. */
#define AROUND(type, failure, name, parameters, arguments)                                         \
    HAK_EXPORT type name parameters                                                                \
    {                                                                                              \
        static _Atomic(next_function *) known;                                                     \
        next_function *next = hak_next_function(&known, #name);                                    \
        if (next == NULL)                                                                          \
            return failure;                                                                        \
        if (number != SIGSEGV)                                                                     \
            return ((type(*) parameters)next)arguments;                                            \
        hak_os_fault_watch_pause();                                                                \
        type result = ((type(*) parameters)next)arguments;                                         \
        hak_os_fault_watch_resume();                                                               \
        return result;                                                                             \
    }

/* Not every libc declares them. */
handler *bsd_signal(int number, handler *wanted);
handler *ssignal(int number, handler *wanted);
handler *sysv_signal(int number, handler *wanted);
handler *__sysv_signal(int number, handler *wanted);
handler *sigset(int number, handler *wanted);
int sigignore(int number);
int siginterrupt(int number, int flag);

AROUND(int, -1, sigaction, (int number, const struct sigaction *wanted, struct sigaction *old),
       (number, wanted, old))
AROUND(handler *, SIG_ERR, signal, (int number, handler *wanted), (number, wanted))
AROUND(handler *, SIG_ERR, bsd_signal, (int number, handler *wanted), (number, wanted))
AROUND(handler *, SIG_ERR, ssignal, (int number, handler *wanted), (number, wanted))
AROUND(handler *, SIG_ERR, sysv_signal, (int number, handler *wanted), (number, wanted))
AROUND(handler *, SIG_ERR, __sysv_signal, (int number, handler *wanted), (number, wanted))
AROUND(handler *, SIG_ERR, sigset, (int number, handler *wanted), (number, wanted))
AROUND(int, -1, sigignore, (int number), (number))
AROUND(int, -1, siginterrupt, (int number, int flag), (number, flag))

void *hak_os_libcs_sigaction(void)
{
    return hak_next_symbol("sigaction");
}

#else

void *hak_os_libcs_sigaction(void)
{
    return NULL;
}

#endif
