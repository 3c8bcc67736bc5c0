// SPDX-License-Identifier: MIT
// tests/preload/program.hpp - what the C++ programs of this folder share: checks that are counted,
// and values that the compiler knows nothing about.
#ifndef TESTS_PRELOAD_PROGRAM_HPP
#define TESTS_PRELOAD_PROGRAM_HPP

#include <cstdio>
#include <unistd.h>

static unsigned check_count;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        __atomic_fetch_add(&check_count, 1, __ATOMIC_RELAXED);                                     \
        if (!(condition)) {                                                                        \
            std::printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);                            \
            std::fflush(stdout);                                                                   \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

// The end of main: a program that checked nothing has failed.
static inline int check_end()
{
    std::printf("%u checks\n", check_count);
    return check_count > 0 ? 0 : 1;
}

// The compiler may elide a pair of new and delete unless somebody could see the block.
template <class T> inline T hidden(T value)
{
    __asm__ volatile("" : "+r"(value) : : "memory");
    return value;
}

#endif
