/* SPDX-License-Identifier: MIT */
/* os/module.h - code addresses as file and offset, the form that addr2line takes.
 *
 * Owns        the reader of /proc/self/maps; one report at a time has it.
 * Invariants  nothing is allocated and no lock of libc's or the loader's is taken: a handler of a
 *             fault may call this. An address that no file is mapped at, and all of them where
 *             /proc is missing, the program has confined itself, or the reader is not free in time,
 *             stays a plain number. Calls: openat, read, close, and futex to see whether the
 *             beginning of a file can be read.
 * Threads     any.
 * Tests       tests/unit/os/module_test.c
 */
#ifndef HAK_OS_MODULE_H
#define HAK_OS_MODULE_H

#include "base/text.h"

/* So many addresses at once. */
#define HAK_OS_MODULE_ADDRESSES 8u

/* Adds `FILE+0xOFFSET < FILE+0xOFFSET ...` for the addresses up to the first 0. */
void hak_os_module_add(struct text *text, const uintptr_t *addresses, uint32_t count);

/* The whole path of the file that is mapped at the address; false: it is not known, or too long. */
bool hak_os_module_path(uintptr_t address, char *path, size_t bytes);

#endif
