/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "os/processor.h"

#include "check.h"
#include "os/confine.h"

#include <errno.h>
#include <sched.h>

TEST(a_thread_that_is_bound_runs_on_its_processor)
{
    cpu_set_t all, one;
    CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    for (uint32_t i = 0; i < CPU_SETSIZE; i++) {
        if (!CPU_ISSET(i, &all))
            continue;
        CPU_ZERO(&one);
        CPU_SET(i, &one);
        CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
        CHECK_EQ(hak_os_processor(), i);
    }
}

TEST(a_confined_thread_is_taken_to_run_on_the_first_one)
{
    errno = 77;
    hak_store_relaxed(&hak_os_confined, true);
    CHECK_EQ(hak_os_processor(), 0);
    CHECK_EQ(errno, 77);
}
