/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "os/dlopen.h"

#include "os/fault_watch.h"
#include "os/next_symbol.h"

#include <dlfcn.h>

_Atomic bool hak_dlopen_binds_deeply;

/* Constructors that look at the signals' actions are mostly over by then. */
#define CONSTRUCTORS_MS 250

#if HAK_SHARED && defined(RTLD_DEEPBIND)

typedef void *opener(const char *file, int flags);
static _Atomic(opener *) libcs_dlopen;

static opener *find_opener(void)
{
    opener *open;
    *(void **)&open = hak_next_symbol("dlopen");
    hak_store_relaxed(&libcs_dlopen, open);
    return open;
}

/* dlopen(3). */
HAK_ENDS_IN_JUMP HAK_EXPORT void *dlopen(const char *file, int flags)
{
    opener *open = hak_load_relaxed(&libcs_dlopen);
    if (HAK_UNLIKELY(open == NULL) && (open = find_opener()) == NULL)
        return NULL;
    if (!hak_load_relaxed(&hak_dlopen_binds_deeply))
        flags &= ~RTLD_DEEPBIND;
    hak_os_fault_watch_lower(CONSTRUCTORS_MS); /* and no more: what is left is a jump */
    return open(file, flags);
}

#endif
