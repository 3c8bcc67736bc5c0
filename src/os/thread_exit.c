/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "os/thread_exit.h"

#include "os/confine.h"
#include "os/home.h"
#include "os/linkage.h"

#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

HAK_ASK_LIBC(pthread_key_create)
HAK_ASK_LIBC(pthread_setspecific)

static pthread_key_t key;
static bool has_key;

bool hak_thread_exit_start(void (*run)(void *value))
{
    has_key = HAK_IS_THERE(pthread_key_create) && HAK_IS_THERE(pthread_setspecific) &&
              pthread_key_create(&key, run) == 0;
    return has_key;
}

bool hak_thread_exit_set(void *value)
{
    return has_key && pthread_setspecific(key, value) == 0;
}

bool hak_thread_is_first(void)
{
    if (hak_os_is_confined())
        return false; /* the first one has called before */
    int saved = errno;
    bool is_first = syscall(SYS_gettid) == hak_os_pid();
    errno = saved;
    return is_first;
}
