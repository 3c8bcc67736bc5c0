/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "os/scratch.h"

#include <errno.h>
#include <sys/mman.h>

void *hak_os_scratch(size_t bytes)
{
    int saved = errno;
    void *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    errno = saved;
    return start == MAP_FAILED ? NULL : start;
}

void hak_os_scratch_end(void *start, size_t bytes)
{
    int saved = errno;
    munmap(start, bytes);
    errno = saved;
}
