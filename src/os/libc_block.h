/* SPDX-License-Identifier: MIT */
/* os/libc_block.h - whether an address can be a block of libc's own malloc.
 *
 * Owns        nothing.
 * Invariants  only what glibc's free checks first is considered: where it would end the process,
 *             the answer is no. With other libcs it is always yes.
 * Threads     any.
 * Tests       tests/unit/os/libc_block_test.c, tests/attack/free_foreign_test.c
 */
#ifndef HAK_OS_LIBC_BLOCK_H
#define HAK_OS_LIBC_BLOCK_H

#include "base/compiler.h"

/* False: glibc's free would end the process at it. The address may be any that is a multiple of 8;
 * yes where a filter of system calls keeps the word before it from being looked at. */
bool hak_os_may_be_libc_block(uintptr_t address);

/* True: the words before the address are those of a block that glibc had the kernel map for it
 * alone, which may lie anywhere, also right above a stack. False where they cannot be looked at. */
bool hak_os_seems_mapped_by_libc(uintptr_t address);

#endif
