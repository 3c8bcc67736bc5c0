/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "base/atomic.h"
#include "cache/lifecycle.h"
#include "conf/conf.h"
#include "os/next_symbol.h"

#include <dlfcn.h>

#if HAK_SHARED && defined(RTLD_DEEPBIND)

/* A library that is opened with RTLD_DEEPBIND finds libc's malloc before ours, and gives libc's free
 * what libc's own strdup or getline, which call ours, have returned: it crashes under each malloc
 * that is preloaded. PHP opens its modules so. Option `deepbind` leaves the flag to the program. */
typedef void *opener(const char *file, int flags);
static _Atomic(opener *) libcs_dlopen;

static opener *find_opener(void)
{
    opener *open;
    *(void **)&open = hak_next_symbol("dlopen");
    hak_store_relaxed(&libcs_dlopen, open);
    return open;
}

static bool binds_past_us(void)
{
    return hak_process_start() && hak_conf_number(deepbind) == 0;
}

/* dlopen(3). libc's takes the place it returns to for its caller, whose RUNPATH it searches: that
 * must stay the program, so this call is a jump. */
__attribute__((optimize("optimize-sibling-calls"))) HAK_EXPORT void *dlopen(const char *file,
                                                                            int flags)
{
    opener *open = hak_load_relaxed(&libcs_dlopen);
    if (HAK_UNLIKELY(open == NULL) && (open = find_opener()) == NULL)
        return NULL;
    if (HAK_UNLIKELY((flags & RTLD_DEEPBIND) != 0) && binds_past_us())
        flags &= ~RTLD_DEEPBIND;
    return open(file, flags);
}

#endif
