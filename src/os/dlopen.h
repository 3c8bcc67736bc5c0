/* SPDX-License-Identifier: MIT */
/* os/dlopen.h - libraries that a program opens are bound to hakmem where it is preloaded.
 *
 * Owns        dlopen in libhakmem.so. A library opened with RTLD_DEEPBIND finds libc's malloc
 *             before ours, and passes to libc's free what libc's own strdup or getline, which call
 *             ours, have returned: it crashes under every preloaded malloc. PHP opens its modules
 *             in this way. The flag is removed.
 * Invariants  libc's dlopen takes the place it returns to for its caller, whose RUNPATH it
 *             searches: it remains the program's, since ours ends with a jump.
 * Threads     any.
 * Tests       tests/preload/dlopen.c, tests/preload/php_preload.sh
 */
#ifndef HAK_OS_DLOPEN_H
#define HAK_OS_DLOPEN_H

#include "base/atomic.h"
#include "base/compiler.h"

/* True when the flag is left to the program (option `deepbind`). */
extern _Atomic bool hak_dlopen_binds_deeply;

#endif
