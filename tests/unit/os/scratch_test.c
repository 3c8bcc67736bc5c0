/* SPDX-License-Identifier: MIT */
/* tests/unit/os/scratch_test.c - memory for one call: zeroed, gone afterwards, or refused. */
#include "os/scratch.h"

#include "check.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define BYTES 20000

TEST(scratch_memory_is_zeroed_and_gone_after_its_end)
{
    unsigned char none;
    errno = 77;
    char *start = hak_os_scratch(BYTES);
    CHECK(start != NULL);
    for (int i = 0; i < BYTES; i++)
        CHECK(start[i] == 0);
    memset(start, 1, BYTES);
    hak_os_scratch_end(start, BYTES);
    CHECK_EQ(errno, 77);
    CHECK(mincore(start, 1, &none) != 0 && errno == ENOMEM);
}

TEST(what_the_kernel_does_not_have_is_refused)
{
    errno = 77;
    CHECK(hak_os_scratch(SIZE_MAX / 4) == NULL);
    CHECK_EQ(errno, 77);
}
