/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "os/inherit.h"

#include "base/bits.h"
#include "os/confine.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_MS 1000000l
#define NS_PER_S 1000000000l
#define LOCK_PI2 13 /* FUTEX_LOCK_PI2, Linux 5.14: its time-out is of the monotonic clock */

/* Calls that the kernel has not. */
static _Atomic bool lacks_monotonic, lacks_inheritance;

static struct timespec deadline(clockid_t clock, uint32_t ms)
{
    struct timespec at;
    clock_gettime(clock, &at);
    long ns = at.tv_nsec + (long)ms * NS_PER_MS;
    return (struct timespec){at.tv_sec + ns / NS_PER_S, ns % NS_PER_S};
}

/* 0, or errno. */
static int lock(_Atomic uint32_t *word, uint32_t ms)
{
    if (!hak_load_relaxed(&lacks_monotonic)) {
        struct timespec at = deadline(CLOCK_MONOTONIC, ms);
        if (syscall(SYS_futex, word, LOCK_PI2 | FUTEX_PRIVATE_FLAG, 0, &at, NULL, 0) == 0)
            return 0;
        if (errno != ENOSYS)
            return errno;
        hak_store_relaxed(&lacks_monotonic, true);
    }
    struct timespec at = deadline(CLOCK_REALTIME, ms);
    return syscall(SYS_futex, word, FUTEX_LOCK_PI_PRIVATE, 0, &at, NULL, 0) == 0 ? 0 : errno;
}

static enum hak_inherit meaning(int error)
{
    switch (error) {
    case 0:
        return INHERIT_HELD;
    case ETIMEDOUT:
    case EAGAIN:
    case EINTR:
        return INHERIT_AGAIN;
    case ENOSYS:
        hak_store_relaxed(&lacks_inheritance, true);
        return INHERIT_UNABLE;
    default:
        return INHERIT_UNABLE;
    }
}

enum hak_inherit hak_inherit_wait(_Atomic uint32_t *word, uint32_t most_ms)
{
    int saved = errno;
    enum hak_inherit result = INHERIT_UNABLE;
    if (hak_load_relaxed(&lacks_inheritance) || !hak_os_ask_begin())
        return INHERIT_UNABLE;
    result = meaning(lock(word, (uint32_t)hak_least(most_ms, HAK_INHERIT_MS_MOST)));
    hak_os_ask_end();
    errno = saved;
    return result;
}

/* EAGAIN: a waiter came meanwhile, and the kernel did nothing. */
bool hak_inherit_give(_Atomic uint32_t *word)
{
    int saved = errno;
    long result = -1;
    if (!hak_os_ask_begin())
        return false;
    do {
        result = syscall(SYS_futex, word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0);
    } while (result != 0 && errno == EAGAIN);
    hak_os_ask_end();
    errno = saved;
    return result == 0;
}

bool hak_os_is_real_time(void)
{
    int saved = errno;
    long policy = SCHED_OTHER;
    if (hak_os_ask_begin()) {
        policy = syscall(SYS_sched_getscheduler, 0);
        hak_os_ask_end();
    }
    errno = saved;
    policy &= ~SCHED_RESET_ON_FORK;
    return policy == SCHED_FIFO || policy == SCHED_RR || policy == 6; /* SCHED_DEADLINE */
}
