/* SPDX-License-Identifier: MIT */
/* tests/attack/free_foreign_test.c - what hakmem never gave is freed, or resized. */
#include "attack.h"
#include "heap/heap.h"
#include "region/region.h"
#include "unit/asan.h"

#include <sys/mman.h>

TEST(a_pointer_near_null_is_reported)
{
    CHECK_ABORTS(hak_free((void *)8),
                 "hakmem: invalid free: pointer 0x8, no block, an address near");
    CHECK_ABORTS(hak_free((void *)1), "hakmem: invalid free: pointer 0x1, ");
    CHECK_ABORTS(hak_free((void *)0xfff0), "an address near NULL\n");
    CHECK_ABORTS(hak_realloc((void *)16, 5), "hakmem: invalid realloc: pointer 0x10, ");
}

static void free_with_upper_byte(void)
{
    hak_free((void *)((uintptr_t)hak_malloc(64) | (uintptr_t)0x41 << 56));
}

TEST(a_pointer_that_no_program_can_have_is_reported)
{
    CHECK_ABORTS(hak_free((void *)0xdeadbeefdeadbee0), "pointer 0xdeadbeefdeadbee0, ");
    CHECK_ABORTS(hak_free((void *)0xdeadbeefdeadbee0), "not a user-space address\n");
    CHECK_ABORTS(hak_free((void *)-16), "not a user-space address\n");
    CHECK_ABORTS(free_with_upper_byte(), "not a user-space address\n");
}

static void free_a_variable(void)
{
    _Alignas(16) char variable[64];
    void *volatile block = variable;
    hak_free(block);
}

TEST(a_pointer_to_the_stack_is_reported)
{
    CHECK_REPORTS(free_a_variable(), "invalid free", "on the stack of the calling thread\n");
}

static void free_the_end_of_the_window(void)
{
    CHECK(hak_malloc(64) != NULL);
    size_t committed_bytes = hak_load_relaxed(&hak_region.committed_bytes);
    hak_free((void *)(hak_region.base + committed_bytes - HAK_GRANULE_BYTES));
}

TEST(a_pointer_into_the_window_where_no_slab_is_is_reported)
{
    CHECK_REPORTS(free_the_end_of_the_window(), "invalid free",
                  "no block, nothing is allocated there: freed before, or never allocated\n");
}

static void free_the_last_of_the_slab(void)
{
    char *block = hak_malloc(1024);
    const struct slab *slab = hak_slab_at(block);
    free_home_by_stranger((char *)slab->start + (slab->block_count - 1) * slab->block_bytes);
    others_take(1024); /* the first refill collects it */
}

TEST(a_free_of_a_block_that_was_never_handed_out_is_reported)
{
    CHECK_REPORTS(free_the_last_of_the_slab(), "invalid free",
                  "block of 1024 bytes, never allocated\n");
}

static _Alignas(16) char object[64];

TEST(a_pointer_that_is_aligned_for_nothing_is_reported)
{
    CHECK_ABORTS(hak_free(object + 1), "hakmem: invalid free: pointer 0x");
    CHECK_ABORTS(hak_free(object + 4), "not aligned as any block is\n");
    CHECK_ABORTS(hak_realloc(object + 2, 5), "hakmem: invalid realloc: pointer 0x");
    CHECK_ABORTS(hak_free(object), "in the program's own code or data\n");
}

TEST(a_pointer_that_may_be_libc_s_is_not)
{
    size_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    page[1] = 64 | 1; /* as glibc's malloc describes a block of 56 bytes */
    CHECK_EXITS(hak_free(page + 2), 0);
}

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

HAK_NOINLINE static void free_from_far_below(char *variable)
{
    volatile char large[200000];
    __asm__ volatile("" ::"r"(large) : "memory"); /* all of it is there */
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
    CHECK_REPORTS(free_mapped_memory(), "invalid free", "neither from hakmem nor from libc\n");
    CHECK_ABORTS(resize_mapped_memory(), "hakmem: invalid realloc: pointer 0x");
    CHECK_ABORTS(free_far_up_the_stack(), "neither from hakmem nor from libc\n");
#else
    SKIP("not glibc");
#endif
}

TEST(a_variable_of_a_library_is_reported)
{
#ifdef __GLIBC__
    CHECK_REPORTS(free_a_variable_of_libc(), "invalid free", "in the code or data of a library\n");
#else
    SKIP("not glibc");
#endif
}
