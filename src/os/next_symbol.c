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

next_function *hak_next_function(_Atomic(next_function *) *known, const char *name)
{
    next_function *found = hak_load_relaxed(known);
    if (found == NULL) {
        *(void **)&found = hak_next_symbol(name);
        hak_store_relaxed(known, found);
    }
    if (found == NULL)
        errno = ENOSYS;
    return found;
}
