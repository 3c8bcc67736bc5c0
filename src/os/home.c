/* SPDX-License-Identifier: MIT */
#include "os/home.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint32_t home_pid;      /* 0: not known yet */
static const int *first_errno; /* of the first thread; no other one has it */

uint32_t hak_os_pid(void)
{
    return (uint32_t)syscall(SYS_getpid);
}

void hak_home_begin(void)
{
    home_pid = hak_os_pid();
    first_errno = &errno;
}

bool hak_is_at_home(void)
{
    return home_pid == hak_os_pid();
}

bool hak_is_away(void)
{
    return home_pid != 0 && !hak_is_at_home();
}

bool hak_is_first_at_home(void)
{
    return first_errno == &errno;
}
