/* SPDX-License-Identifier: MIT */
/* tests/preload/errno.c - errno says ENOMEM or EINVAL where the standards want it, and free never
 * touches it. If this fails, error messages of programs lie: "cannot open: Success". */
#include "program.h"

#define UNTOUCHED 77

static const size_t sizes[] = {1, 16, 100, 1000, 5000, 30000, 100000, 1 << 20, 40 << 20};
#define SIZES (sizeof sizes / sizeof *sizes)

/* POSIX.1-2024, free: "The free() function shall not modify errno"; glibc since 2.33. */
TEST(free_keeps_errno_for_every_size)
{
    check_is_served();
    for (unsigned i = 0; i < SIZES; i++) {
        void *blocks[20];
        for (unsigned j = 0; j < 20; j++)
            blocks[j] = malloc(sizes[i]);
        for (unsigned j = 0; j < 20; j++) {
            errno = UNTOUCHED;
            free(blocks[j]);
            CHECK_EQ(errno, UNTOUCHED);
        }
    }
    errno = UNTOUCHED;
    free(NULL);
    CHECK_EQ(errno, UNTOUCHED);
}

static void *free_other_threads_blocks(void *argument)
{
    void **blocks = argument;
    for (unsigned i = 0; i < SIZES; i++) {
        errno = UNTOUCHED;
        free(blocks[i]); /* the first free is also this thread's first call */
        CHECK_EQ(errno, UNTOUCHED);
    }
    return NULL;
}

TEST(free_of_other_threads_blocks_keeps_errno)
{
    for (unsigned round = 0; round < 20; round++) {
        void *blocks[SIZES];
        for (unsigned i = 0; i < SIZES; i++)
            blocks[i] = malloc(sizes[i]);
        in_thread(free_other_threads_blocks, blocks);
    }
}

/* POSIX leaves errno open after success; glibc keeps it, and programs count on it. */
TEST(what_succeeds_keeps_errno)
{
    for (unsigned i = 0; i < SIZES; i++) {
        errno = UNTOUCHED;
        char *block = malloc(sizes[i]);
        CHECK_EQ(errno, UNTOUCHED);
        block = realloc(block, sizes[i] * 2);
        CHECK_EQ(errno, UNTOUCHED);
        char *zero = calloc(1, sizes[i]);
        CHECK_EQ(errno, UNTOUCHED);
        char *aligned = aligned_alloc(64, sizes[i]);
        CHECK(block != NULL && zero != NULL && aligned != NULL);
        CHECK_EQ(errno, UNTOUCHED);
        free(block);
        free(zero);
        free(aligned);
    }
}
