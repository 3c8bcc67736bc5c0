/* SPDX-License-Identifier: MIT */
#include "heap/cache.h"
#include "process/tick.h"

/* Small programs end before their bins send anything home, where misuse of it is found: so what
 * the calling thread's bins hold at the end of the process is looked at then. */
__attribute__((destructor)) static void check_at_exit(void)
{
    if (hak_own_cache() == NULL)
        return;
    struct slow_path path = hak_slow_path_begin();
    if (path.cache != NULL)
        hak_cache_check(path.cache);
    hak_slow_path_end(&path);
}
