/* SPDX-License-Identifier: MIT */
/* tests/attack/free_misaligned_foreign_test.c - a pointer is freed that no allocator can have
 * given. */
#include "attack.h"

#include <sys/mman.h>

static _Alignas(16) char variable[64];

TEST(a_pointer_that_is_aligned_for_nothing_is_reported)
{
    CHECK_ABORTS(hak_free(variable + 1), "hakmem: invalid free: pointer 0x");
    CHECK_ABORTS(hak_free(variable + 4), "not aligned as any block is\n");
    CHECK_ABORTS(hak_realloc(variable + 2, 5), "hakmem: invalid realloc: pointer 0x");
    CHECK_ABORTS(hak_free(variable), "in the program's own code or data\n");
}

TEST(a_pointer_that_may_be_libc_s_is_not)
{
    size_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    page[1] = 64 | 1; /* as glibc's malloc describes a block of 56 bytes */
    CHECK_EXITS(hak_free(page + 2), 0);
}
