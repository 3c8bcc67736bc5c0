/* SPDX-License-Identifier: MIT */
/* tests/unit/api/operators_test.c - C++'s allocation functions in a program without C++. */
#include "api/api.h"
#include "base/limits.h"
#include "check.h"
#include "unit/asan.h"

/* [new.delete.single]: a non-null pointer also for 0 bytes, aligned for any object of the size. */
TEST(new_gives_blocks_also_of_0_bytes)
{
    for (size_t bytes = 0; bytes < HAK_MIB; bytes = bytes * 3 + 1) {
        void *block = hak_new(bytes);
        CHECK(block != NULL);
        CHECK_EQ((uintptr_t)block % (bytes <= 8 ? 8 : 16), 0);
        CHECK(hak_malloc_usable_size(block) >= bytes);
        hak_free(block);
    }
}

TEST(aligned_new_is_aligned)
{
    for (size_t alignment = 1; alignment <= HAK_MIB; alignment *= 2) {
        CHECK_EQ((uintptr_t)hak_new_aligned(100, alignment) % alignment, 0);
        void *block = hak_new_aligned(0, alignment);
        CHECK(block != NULL);
        CHECK_EQ((uintptr_t)block % alignment, 0);
    }
}

TEST(new_without_memory_and_without_cxx_aborts_with_a_message)
{
    if (UNDER_ASAN)
        SKIP("the sanitizer brings C++ with it");
    CHECK_ABORTS(hak_new(SIZE_MAX), "hakmem: operator new is out of memory");
    CHECK_ABORTS(hak_new_aligned(SIZE_MAX, 64), "hakmem: operator new is out of memory");
}

/* LLVM and google/tcmalloc, __size_returning_new: at least the bytes that were asked for, all of
 * which may be used. */
TEST(a_size_returning_new_says_what_may_be_used)
{
    for (size_t bytes = 0; bytes < HAK_MIB; bytes = bytes * 3 + 1) {
        struct sized_block plain = hak_new_sized(bytes);
        CHECK(plain.block != NULL && plain.bytes >= bytes);
        CHECK_EQ(plain.bytes, hak_malloc_usable_size(plain.block));
        memset(plain.block, 1, plain.bytes);
        struct sized_block wide = hak_new_aligned_sized(bytes, 512);
        CHECK(wide.block != NULL && wide.bytes >= bytes);
        CHECK_EQ((uintptr_t)wide.block % 512, 0);
        memset(wide.block, 1, wide.bytes);
        hak_free(plain.block);
        hak_free(wide.block);
    }
}
