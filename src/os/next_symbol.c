/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "os/next_symbol.h"

#include "os/linkage.h"

#include <dlfcn.h>
#include <errno.h>

HAK_ASK_LIBC(dlsym)
/* Weak also in programs: a static one need not take the loader in for this. */
#pragma weak dlsym

void *hak_next_symbol(const char *name)
{
    void *(*find)(void *, const char *) = dlsym;
    if (find == NULL)
        return NULL;
    int saved = errno;
    void *found = find(RTLD_NEXT, name);
    errno = saved;
    return found;
}
