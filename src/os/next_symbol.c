/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "os/next_symbol.h"

#include "os/linkage.h"

#include <dlfcn.h>
#include <errno.h>

HAK_ASK_LIBC(dlsym)
/* Weak also in programs: a static one need not take the loader in for this. */
#pragma weak dlsym

void *hak_next_symbol_of(const char *name)
{
    void *(*find)(void *, const char *) = dlsym;
    if (find == NULL)
        return NULL;
    int saved = errno;
    void *found = find(RTLD_NEXT, name);
    errno = saved;
    return found;
}

next_function *hak_next_function_of(_Atomic(next_function *) *known, const char *name)
{
    next_function *found = hak_load_relaxed(known);
    if (found == NULL) {
        *(void **)&found = hak_next_symbol_of(name);
        hak_store_relaxed(known, found);
    }
    if (found == NULL)
        errno = ENOSYS;
    return found;
}

#if HAK_SHARED
/* The C++ library, if it came later than hakmem; it stays. */
static void *late_library(void)
{
    static const char *const names[] = {"libstdc++.so.6", "libc++abi.so.1", "libc++.so.1"};
    static _Atomic(void *) known;
    void *library = hak_load_relaxed(&known);
    for (size_t i = 0; i < sizeof names / sizeof *names && library == NULL; i++)
        library = dlopen(names[i], RTLD_LAZY | RTLD_NOLOAD);
    hak_store_relaxed(&known, library);
    return library;
}

void *hak_late_symbol(const char *name)
{
    void *library = late_library();
    return library == NULL ? NULL : dlsym(library, name);
}
#else
void *hak_late_symbol(const char *name HAK_UNUSED)
{
    return NULL;
}
#endif
