/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "os/processor.h"

#include "os/confine.h"

#include <errno.h>
#include <sched.h>

uint32_t hak_os_processor(void)
{
    int saved = errno;
    int processor = hak_os_is_confined() ? -1 : sched_getcpu();
    errno = saved;
    return processor < 0 ? 0 : (uint32_t)processor;
}
