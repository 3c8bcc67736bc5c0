/* SPDX-License-Identifier: MIT */
/* tests/unit/os/clock_test.c - the kernel's clocks, read without libc. */
#include "check.h"
#include "os/clock.h"
#include "os/os.h"

#include <errno.h>

static uint64_t ns_of(struct timespec time)
{
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static uint64_t libcs(clockid_t clock)
{
    struct timespec now;
    CHECK_EQ(clock_gettime(clock, &now), 0);
    return ns_of(now);
}

TEST(each_clock_is_the_one_that_libc_reads)
{
    static const clockid_t clocks[] = {CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_MONOTONIC_COARSE,
                                       CLOCK_PROCESS_CPUTIME_ID};
    for (unsigned i = 0; i < sizeof clocks / sizeof *clocks; i++)
        for (unsigned round = 0; round < 1000; round++) {
            uint64_t before = libcs(clocks[i]);
            uint64_t now = ns_of(hak_os_clock_read(clocks[i]));
            CHECK(before <= now && now <= libcs(clocks[i]));
        }
}

TEST(a_clock_that_is_none_reads_zero_and_keeps_errno)
{
    errno = 77;
    CHECK_EQ(ns_of(hak_os_clock_read(-123456)), 0);
    CHECK_EQ(errno, 77);
}
