/* SPDX-License-Identifier: MIT */
#include "os/random.h"

#include "os/os.h"

#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WITHOUT_WAITING 1u /* GRND_NONBLOCK, which old headers have not */

uint64_t hak_os_random(void)
{
    uint64_t word = 0;
    int saved = errno;
    long got = syscall(SYS_getrandom, &word, sizeof word, WITHOUT_WAITING);
    errno = saved;
    if (got == (long)sizeof word)
        return word;
    const void *start = (const void *)getauxval(AT_RANDOM);
    if (start != NULL)
        memcpy(&word, start, sizeof word);
    return word ^ hak_os_clock_ns();
}
