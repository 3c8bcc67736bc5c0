/* SPDX-License-Identifier: MIT */
/* tests/unit/os/libc_block_test.c - libc's blocks are told from what glibc would refuse. */
#include "../../check.h"
#include "../asan.h"

#include "os/libc_block.h"
#include "threads.h"

#include <malloc.h>
#include <sys/mman.h>

static bool may_be(const void *block)
{
    return hak_os_may_be_libc_block((uintptr_t)block);
}

static bool seems_mapped(const void *block)
{
    return hak_os_seems_mapped_by_libc((uintptr_t)block);
}

TEST(blocks_of_libc_of_all_sizes_and_alignments_may_be_libcs)
{
    for (size_t bytes = 0; bytes < 100; bytes++) {
        void *block = malloc(bytes);
        CHECK(may_be(block));
        free(block);
    }
    for (size_t bytes = 100; bytes < (size_t)1 << 26; bytes += bytes / 3) {
        void *block = malloc(bytes), *aligned = memalign(4096, bytes), *far = memalign(64, bytes);
        CHECK(may_be(block) && may_be(aligned) && may_be(far));
        free(block);
        free(aligned);
        free(far);
    }
}

static void *take_and_ask(void *answer)
{
    void *blocks[] = {malloc(24), malloc(5000), malloc(1 << 20)};
    *(bool *)answer = may_be(blocks[0]) && may_be(blocks[1]) && may_be(blocks[2]);
    for (int i = 0; i < 3; i++)
        free(blocks[i]);
    return NULL;
}

TEST(blocks_of_another_arena_may_be_libcs)
{
    bool answer = false;
    in_thread(take_and_ask, &answer);
    CHECK(answer);
}

TEST(pointers_that_glibc_would_refuse_are_no_blocks)
{
#ifdef __GLIBC__
    if (UNDER_ASAN)
        SKIP("malloc is the sanitizer's");
    char *pages = mmap(NULL, 65536 * 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED);
    CHECK(!may_be(pages + 4096)); /* a size of 0 */
    CHECK(!may_be(pages + 4104)); /* not aligned */
    size_t *sizes = (size_t *)(void *)pages;
    sizes[1] = 16; /* too few bytes */
    CHECK(!may_be(sizes + 2));
    sizes[1] = 0x7ffc00000010; /* too many */
    CHECK(!may_be(sizes + 2));
    sizes[1] = 4096 | 2; /* mapped alone, but does not end with a page */
    sizes[0] = 16;
    CHECK(!may_be(sizes + 2));
    sizes[0] = 0;
    CHECK(may_be(sizes + 2));
    CHECK(seems_mapped(sizes + 2));
    sizes[1] = 4096; /* not mapped alone */
    CHECK(may_be(sizes + 2) && !seems_mapped(sizes + 2));
    CHECK_EQ(mprotect(pages, 65536, PROT_NONE), 0);
    CHECK(!may_be(pages + 65536)); /* nothing before it */
    CHECK(!seems_mapped(pages + 65536));
    CHECK_EQ(munmap(pages, 65536 * 2), 0);
#else
    SKIP("not glibc");
#endif
}

TEST(blocks_that_libc_has_mapped_alone_are_known)
{
#ifdef __GLIBC__
    if (UNDER_ASAN)
        SKIP("malloc is the sanitizer's");
    char *block = malloc((size_t)64 << 20), *aligned = memalign(65536, (size_t)64 << 20);
    char *small = malloc(100);
    CHECK(seems_mapped(block) && seems_mapped(aligned));
    CHECK(!seems_mapped(small) && !seems_mapped(block + 8));
    free(block);
    free(aligned);
    free(small);
#else
    SKIP("not glibc");
#endif
}
