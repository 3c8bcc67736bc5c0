/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "os/thread_exit.h"

#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The shared library asks for these by the oldest version that glibc has had of them, so that one
 * binary runs before and after 2.34, which moved them from libpthread to libc and gave them a new
 * version; and weakly, as a program before 2.34 need not have libpthread. What is linked into the
 * program must pull them out of libc.a, and so asks for them as everybody does. */
#if HAK_SHARED
#if defined(__x86_64__)
#define OLDEST "GLIBC_2.2.5"
#elif defined(__riscv)
#define OLDEST "GLIBC_2.27"
#else
#define OLDEST "GLIBC_2.17"
#endif
#if defined(__GLIBC__)
__asm__(".symver pthread_key_create, pthread_key_create@" OLDEST);
__asm__(".symver pthread_setspecific, pthread_setspecific@" OLDEST);
#endif
#pragma weak pthread_key_create
#pragma weak pthread_setspecific
#define IS_THERE(function) ((function) != NULL)
#else
#define IS_THERE(function) true
#endif

static pthread_key_t key;
static bool has_key;

bool hak_thread_exit_start(void (*run)(void *value))
{
    has_key = IS_THERE(pthread_key_create) && IS_THERE(pthread_setspecific) &&
              pthread_key_create(&key, run) == 0;
    return has_key;
}

bool hak_thread_exit_set(void *value)
{
    return has_key && pthread_setspecific(key, value) == 0;
}

bool hak_thread_is_first(void)
{
    int saved = errno;
    bool is_first = syscall(SYS_gettid) == getpid();
    errno = saved;
    return is_first;
}
