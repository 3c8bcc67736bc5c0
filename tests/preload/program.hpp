// SPDX-License-Identifier: MIT
// tests/preload/program.hpp - what the C++ programs of this folder share: checks that are counted,
// and values that the compiler knows nothing about.
#ifndef TESTS_PRELOAD_PROGRAM_HPP
#define TESTS_PRELOAD_PROGRAM_HPP

#include <cstdio>
#include <cstdlib>
#include <cstring>
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

// Sampled guarded blocks lie side by side, whatever partition they are of: the program begins again
// without any.
static inline void begin_unguarded(char **arguments)
{
    const char *rate = std::getenv("HAKMEM_GUARD_RATE");
    if (rate != nullptr && std::strcmp(rate, "0") == 0)
        return;
    setenv("HAKMEM_GUARD_RATE", "0", 1);
    execv("/proc/self/exe", arguments);
    CHECK(!"it begins again");
}

// The compiler may elide a pair of new and delete unless somebody could see the block.
template <class T> inline T hidden(T value)
{
    __asm__ volatile("" : "+r"(value) : : "memory");
    return value;
}

#endif
