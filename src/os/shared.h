/* SPDX-License-Identifier: MIT */
/* os/shared.h - memory that other processes of the same user can read.
 *
 * Owns        nothing.
 * Invariants  no function changes errno or allocates. The file is new, of mode 0600, and never what
 *             a link leads to; its memory is there before anybody writes to it.
 * Threads     any.
 * Tests       tests/unit/os/shared_test.c
 */
#ifndef HAK_OS_SHARED_H
#define HAK_OS_SHARED_H

#include "base/compiler.h"

/* Makes the file `path` of `bytes` zeros, in the place of one of that name that may be removed, and
 * maps it. NULL: *error says why not. */
void *hak_os_shared_create(const char *path, size_t bytes, int *error);

/* Removes the file; the mapping stays. */
void hak_os_shared_remove(const char *path);

/* When this process was started, in clock ticks since the machine was; 0: /proc does not say. */
uint64_t hak_os_start_ticks(void);

#endif
