/* SPDX-License-Identifier: MIT */
/* tests/preload/aid/memlock.c - a preloaded library that tells hakmem of a user whose limit of
 * locked memory is PRELOAD_MEMLOCK_MIB, which a test cannot always be. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

int getrlimit(__rlimit_resource_t resource, struct rlimit *limit)
{
    const char *megabytes = getenv("PRELOAD_MEMLOCK_MIB");
    if (resource != RLIMIT_MEMLOCK || megabytes == NULL)
        return (int)syscall(SYS_prlimit64, 0, resource, NULL, limit);
    limit->rlim_cur = limit->rlim_max = (rlim_t)atol(megabytes) << 20;
    return 0;
}

uid_t geteuid(void)
{
    return 1000;
}
