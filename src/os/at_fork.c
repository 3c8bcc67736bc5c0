/* SPDX-License-Identifier: MIT */
#include "os/at_fork.h"

#include <pthread.h>

#if HAK_SHARED && defined(__GLIBC__)

extern int __register_atfork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void),
                             void *library);
extern void *__dso_handle __attribute__((visibility("hidden")));

void hak_os_at_fork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void))
{
    __register_atfork(before, in_parent, in_child, __dso_handle);
}

#else

void hak_os_at_fork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void))
{
    pthread_atfork(before, in_parent, in_child);
}

#endif
