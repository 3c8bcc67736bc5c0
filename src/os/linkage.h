/* SPDX-License-Identifier: MIT */
/* os/linkage.h - how the shared library refers to functions that glibc 2.34 moved.
 *
 * Owns        HAK_ASK_LIBC and HAK_IS_THERE, for the files that are compiled once for
 *             libhakmem.so (HAK_SHARED=1) and once for all that is linked into programs.
 * Invariants  glibc 2.34 moved functions of libpthread and libdl to libc and gave them a new
 *             version. The shared library refers to the oldest version, so that one binary runs
 *             before and after; and weakly, as older programs need not have those libraries.
 * Tests       tools/check_names.py, tests/preload/no_exit_key.c
 */
#ifndef HAK_OS_LINKAGE_H
#define HAK_OS_LINKAGE_H

#include "base/compiler.h"

#if defined(__x86_64__)
#define HAK_GLIBC_OLDEST "GLIBC_2.2.5"
#elif defined(__riscv)
#define HAK_GLIBC_OLDEST "GLIBC_2.27"
#else
#define HAK_GLIBC_OLDEST "GLIBC_2.17"
#endif

/* At file scope, before any use of `function`, which a header has declared. */
#if HAK_SHARED && defined(__GLIBC__)
#define HAK_ASK_LIBC(function)                                                                     \
    extern __typeof__(function)(function) __attribute__((weak));                                   \
    __asm__(".symver " #function ", " #function "@" HAK_GLIBC_OLDEST);
#else
#define HAK_ASK_LIBC(function) extern __typeof__(function)(function);
#endif

/* In programs libc's archive is searched for it, so it is there. */
#if HAK_SHARED
#define HAK_IS_THERE(function) ((function) != NULL)
#else
#define HAK_IS_THERE(function) true
#endif

#endif
