/* SPDX-License-Identifier: MIT */
/* tests/preload/prewarm.c - option `prewarm` in whole programs. If this fails, a program that asked
 * for its memory before it starts still waits for the kernel when it works. */
#include "program.h"

#include <sys/resource.h>

#define MIB (1ul << 20)

static long faults(void)
{
    struct rusage usage;
    CHECK_EQ(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_minflt;
}

TEST(memory_is_there_before_main)
{
    time_limit(300);
    WITH_SETTING("HAKMEM_PREWARM", "32M");
    check_is_served();
    long before = faults();
    char *block = malloc(20 * MIB);
    CHECK(block != NULL);
    memset(block, 1, 20 * MIB);
    CHECK(faults() - before < 200); /* of 5,120 pages */
    free(block);
}

TEST(memory_that_cannot_be_had_is_not_prewarmed)
{
    time_limit(300);
    WITH_SETTING("HAKMEM_PREWARM", "32M");
    WITH_SETTING("HAKMEM_LIMIT", "16M");
    check_is_served();
    void *block = malloc(MIB);
    CHECK(block != NULL);
    free(block);
}
