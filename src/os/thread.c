/* SPDX-License-Identifier: MIT */
#include "os/thread.h"

#include "base/limits.h"
#include "os/linkage.h"
#include "os/next_symbol.h"
#include "os/os_fault.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>

HAK_ASK_LIBC(pthread_create)
HAK_ASK_LIBC(pthread_attr_setstacksize)
HAK_ASK_LIBC(pthread_sigmask)

/* Enough for us; libc refuses it where the program's thread-local variables do not fit. */
#define STACK_BYTES (64 * HAK_KIB)

static int create(void *(*run)(void *), size_t stack_bytes)
{
    pthread_attr_t attributes;
    pthread_t thread;
    int error = pthread_attr_init(&attributes);
    if (error != 0)
        return error;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (stack_bytes != 0)
        pthread_attr_setstacksize(&attributes, stack_bytes);
    error = pthread_create(&thread, &attributes, run, NULL);
    pthread_attr_destroy(&attributes);
    return error;
}

bool hak_os_thread_start(void *(*run)(void *))
{
    sigset_t all, before;
    int saved = errno;
    if (hak_os_fault_is_due(FAULT_THREAD) || !HAK_IS_THERE(pthread_create) ||
        !HAK_IS_THERE(pthread_attr_setstacksize) || !HAK_IS_THERE(pthread_sigmask))
        return false;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the new thread inherits it */
    int error = create(run, STACK_BYTES);
    if (error == EINVAL)
        error = create(run, 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = saved;
    return error == 0;
}

/* libc's own variable. The shared library looks it up: a reference would keep it from older libcs,
 * and the loader is not to be asked in the middle of some thread's request. */
#if HAK_SHARED
static const volatile char *single_threaded;

__attribute__((constructor)) static void find_single_threaded(void)
{
    single_threaded = hak_program_symbol("__libc_single_threaded");
}
#else
extern const volatile char __libc_single_threaded __attribute__((weak));
static const volatile char *const single_threaded = &__libc_single_threaded;
#endif

bool hak_os_is_single_threaded(void)
{
    return single_threaded != NULL && *single_threaded != 0;
}

void hak_os_thread_name(const char *name)
{
    int saved = errno;
    prctl(PR_SET_NAME, name);
    errno = saved;
}
