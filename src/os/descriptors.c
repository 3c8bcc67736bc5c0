/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "os/descriptors.h"

#include "base/atomic.h"
#include "base/text.h"
#include "os/confine.h"
#include "os/file_calls.h"
#include "os/home.h"
#include "os/output.h"

#include <errno.h>

/* <linux/close_range.h>, and system calls that older headers have not. */
#define UNSHARE 2u
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

static _Atomic(int *) errno_of_thread;

bool hak_os_descriptors_part(void)
{
    int saved = errno;
    bool is_apart = syscall(SYS_close_range, 0u, ~0u, UNSHARE) == 0;
    errno = saved;
    /* relaxed: partner is the load of the same thread; no other one has this errno */
    hak_store_relaxed(&errno_of_thread, is_apart ? &errno : NULL);
    return is_apart;
}

void hak_os_descriptors_share(void)
{
    hak_store_relaxed(&errno_of_thread, NULL);
}

bool hak_os_descriptors_are_apart(void)
{
    return hak_load_relaxed(&errno_of_thread) == &errno;
}

/* The program's table is that of its first thread. */
static int take_over(int fd)
{
    int process = (int)syscall(SYS_pidfd_open, hak_os_pid(), 0);
    if (process < 0)
        return -1;
    int taken = (int)syscall(SYS_pidfd_getfd, process, fd, 0);
    hak_call_close(process);
    return taken;
}

/* Where that is refused, as in containers of Docker: no socket can be had so. */
static int open_again(int fd)
{
    char path[32] = "";
    struct text text = {.start = path, .bytes = sizeof path - 1};
    hak_text_add(&text, "/proc/self/fd/");
    hak_text_add_number(&text, (uint64_t)fd, 10);
    return hak_os_output_open(path);
}

int hak_os_descriptors_borrow(int fd)
{
    if (fd < 0 || !hak_os_ask_begin())
        return -1;
    int saved = errno;
    int borrowed = take_over(fd);
    if (borrowed < 0)
        borrowed = open_again(fd);
    errno = saved;
    hak_os_ask_end();
    return borrowed < 0 ? -1 : borrowed;
}
