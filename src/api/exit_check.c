/* SPDX-License-Identifier: MIT */
#include "heap/cache.h"
#include "process/tick.h"

/* Small programs end before their bins send anything home, where misuse of it is found: so what
 * the calling thread's bins hold at the end of the process is looked at then. */
__attribute__((destructor)) static void check_at_exit(void)
{
    if (hak_own_cache() == NULL)
        return;
    struct service service = hak_service_begin();
    if (service.cache != NULL)
        hak_cache_check(service.cache);
    hak_service_end(&service);
}
