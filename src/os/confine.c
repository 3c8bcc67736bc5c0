/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "os/confine.h"

#include "os/bare_exit.h"
#include "os/identity.h"
#include "os/kernel_call.h"
#include "os/next_symbol.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A thread that asks reads a few small files at most. */
#define WAIT_NS 1000000
#define WAITS_MOST 1000
#define PREPARING_MOST 2

_Atomic bool hak_os_confined;
static _Atomic uint32_t asking_count;
static _Atomic(void (*)(void)) prepare_for_it[PREPARING_MOST];

bool hak_os_ask_begin(void)
{
    hak_fetch_add_relaxed(&asking_count, 1);
    hak_fence_full(); /* partner: the fence in hak_os_confine */
    if (!hak_os_is_confined())
        return true;
    hak_os_ask_end();
    return false;
}

void hak_os_ask_end(void)
{
    hak_fetch_sub_acq_rel(&asking_count, 1); /* partner: the acquire in hak_os_confine */
}

void hak_os_ask_reset(void)
{
    hak_store_relaxed(&asking_count, 0);
}

void hak_os_on_confinement(void (*prepare)(void))
{
    int place = 0;
    while (place < PREPARING_MOST - 1 && hak_load_relaxed(&prepare_for_it[place]) != NULL)
        place++;
    hak_store_relaxed(&prepare_for_it[place], prepare);
}

static void prepare_all(void)
{
    for (int i = 0; i < PREPARING_MOST; i++) {
        void (*prepare)(void) = hak_load_relaxed(&prepare_for_it[i]);
        if (prepare != NULL)
            prepare();
    }
}

void hak_os_confine(void)
{
    static const struct timespec wait = {0, WAIT_NS};
    int saved = errno;
    if (!hak_os_is_confined())
        prepare_all();
    hak_store_relaxed(&hak_os_confined, true);
    hak_fence_full(); /* partner: the fence in hak_os_ask_begin */
    for (int i = 0; i < WAITS_MOST; i++) {
        uint32_t count = hak_load_acquire(&asking_count);
        if (count == 0)
            break;
        /* Nobody wakes us: another filter may be in force already, and this is no new call. */
        syscall(SYS_futex, &asking_count, FUTEX_WAIT_PRIVATE, count, &wait, NULL, 0);
    }
    errno = saved;
}

#if HAK_INTERPOSE

typedef int prctl_function(int option, ...);
typedef long syscall_function(long number, long a, long b, long c, long d, long e, long f);
static _Atomic(prctl_function *) next_prctl;
static _Atomic(syscall_function *) next_syscall;

/* The loader is not to be asked in the middle of some thread's call. */
__attribute__((constructor)) static void find_next(void)
{
    prctl_function *found_prctl;
    syscall_function *found_syscall;
    *(void **)&found_prctl = hak_next_symbol("prctl");
    *(void **)&found_syscall = hak_next_symbol("syscall");
    hak_store_relaxed(&next_prctl, found_prctl);
    hak_store_relaxed(&next_syscall, found_syscall);
}

/* A call without a filter only queries the kernel's features. */
static bool is_filter_of_prctl(long option, long mode, long filter)
{
    return option == PR_SET_SECCOMP && (mode == SECCOMP_MODE_STRICT || filter != 0);
}

static bool is_filter(long number, long a, long b, long c)
{
    if (HAK_UNLIKELY(number == SYS_seccomp))
        return a == SECCOMP_SET_MODE_STRICT || (a == SECCOMP_SET_MODE_FILTER && c != 0);
    return HAK_UNLIKELY(number == SYS_prctl) && is_filter_of_prctl(a, b, c);
}

/* Strict mode leaves a thread no other end than its own. */
static void confine_by(long mode)
{
    if (mode == SECCOMP_MODE_STRICT)
        hak_os_bare_exit();
    hak_os_confine();
}

/* Weak, as the other one: a program that has its own keeps it. */
__attribute__((weak)) HAK_EXPORT int prctl(int option, ...)
{
    va_list arguments;
    va_start(arguments, option);
    long a = va_arg(arguments, long);
    long b = va_arg(arguments, long);
    long c = va_arg(arguments, long);
    long d = va_arg(arguments, long);
    va_end(arguments);
    if (is_filter_of_prctl(option, a, b))
        confine_by(a);
    prctl_function *next = hak_load_relaxed(&next_prctl);
    return next != NULL ? next(option, a, b, c, d)
                        : (int)hak_kernel_call(SYS_prctl, option, a, b, c, d, 0);
}

/* Static programs have no other, and nobody does before the constructor above. */
static long pass_on(long number, long a, long b, long c, long d, long e, long f)
{
    syscall_function *next = hak_load_relaxed(&next_syscall);
    return next != NULL ? next(number, a, b, c, d, e, f)
                        : hak_kernel_call(number, a, b, c, d, e, f);
}

/* As libc's functions of these names (os/identity.c). */
static long change_namespaces(long number, long a, long b)
{
    void (*after)(void) = hak_os_identity_begin();
    long result = pass_on(number, a, b, 0, 0, 0, 0);
    if (after != NULL)
        after();
    return result;
}

static bool is_heeded(long number, long a, long b, long c)
{
    return HAK_UNLIKELY(number == SYS_exit || number == SYS_unshare || number == SYS_setns) ||
           is_filter(number, a, b, c);
}

HAK_NOINLINE static long heed_and_pass_on(long number, long a, long b, long c, long d, long e,
                                          long f)
{
    if (number == SYS_unshare || number == SYS_setns)
        return change_namespaces(number, a, b);
    if (number == SYS_exit)
        hak_os_bare_exit();
    else if (number == SYS_seccomp)
        confine_by(a == SECCOMP_SET_MODE_STRICT ? SECCOMP_MODE_STRICT : SECCOMP_MODE_FILTER);
    else
        confine_by(b);
    return pass_on(number, a, b, c, d, e, f);
}

/* syscall(2), under a name of its own here, since <unistd.h> declares it without parameters' types.
 * Its last call has the same arguments, so that compilers make it a jump: calls such as clone
 * return through libc's own function only. */
long hak_syscall(long number, long a, long b, long c, long d, long e, long f) __asm__("syscall");

__attribute__((weak)) HAK_EXPORT long hak_syscall(long number, long a, long b, long c, long d,
                                                  long e, long f)
{
    return is_heeded(number, a, b, c) ? heed_and_pass_on(number, a, b, c, d, e, f)
                                      : pass_on(number, a, b, c, d, e, f);
}

#endif
