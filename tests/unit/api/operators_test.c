/* SPDX-License-Identifier: MIT */
/* tests/unit/api/operators_test.c - C++'s allocation functions in a program without C++. */
#include "api/api.h"
#include "base/limits.h"
#include "check.h"
#include "unit/asan.h"

TEST(new_without_memory_and_without_cxx_aborts_with_a_message)
{
    if (UNDER_ASAN)
        SKIP("the sanitizer brings C++ with it");
    CHECK_ABORTS(hak_new(SIZE_MAX), "hakmem: operator new is out of memory");
    CHECK_ABORTS(hak_new_aligned(SIZE_MAX, 64), "hakmem: operator new is out of memory");
}
