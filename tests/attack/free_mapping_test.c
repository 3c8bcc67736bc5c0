/* SPDX-License-Identifier: MIT */
/* tests/attack/free_mapping_test.c - memory that the program mapped, a library's variable, and a
 * place far up the stack are freed: no allocator gave them. */
#include "attack.h"

#include "unit/asan.h"

#include <sys/mman.h>

static void free_mapped_memory(void)
{
    char *pages = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    hak_free(pages + 4096);
}

static void resize_mapped_memory(void)
{
    char *pages = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(hak_realloc(pages + 4096, 100) != NULL);
}

static void free_a_variable_of_libc(void)
{
    hak_free(stderr);
}

static void free_from_far_below(char *variable)
{
    volatile char large[200000];
    large[0] = 'x';
    hak_free(variable);
    large[1] = large[0];
}

static void free_far_up_the_stack(void)
{
    _Alignas(16) char words[32] = "";
    free_from_far_below(words + 16);
}

TEST(mapped_memory_is_reported)
{
#ifdef __GLIBC__
    if (UNDER_ASAN)
        SKIP("malloc is the sanitizer's");
    CHECK_ABORTS(free_mapped_memory(), "hakmem: invalid free: pointer 0x");
    CHECK_ABORTS(free_mapped_memory(), "neither from hakmem nor from libc\n");
    CHECK_ABORTS(resize_mapped_memory(), "hakmem: invalid realloc: pointer 0x");
    CHECK_ABORTS(free_far_up_the_stack(), "neither from hakmem nor from libc\n");
#else
    SKIP("not glibc");
#endif
}

TEST(a_variable_of_a_library_is_reported)
{
#ifdef __GLIBC__
    CHECK_ABORTS(free_a_variable_of_libc(), "hakmem: invalid free: pointer 0x");
    CHECK_ABORTS(free_a_variable_of_libc(), "in the code or data of a library\n");
#else
    SKIP("not glibc");
#endif
}
