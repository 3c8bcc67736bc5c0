/* SPDX-License-Identifier: MIT */
/* misuse/report.h - the report of misuse.
 *
 * Owns        the form of the one line: `hakmem: <what>: pointer 0x..., <size or class>, <state>`.
 * Invariants  nothing is allocated; the program's data and hakmem's records are as they were.
 * Threads     any.
 * Tests       tests/attack/, tests/unit/misuse/report_test.c
 */
#ifndef HAK_MISUSE_REPORT_H
#define HAK_MISUSE_REPORT_H

#include "base/compiler.h"

/* A line has room for so much of a state. */
#define HAK_MISUSE_STATE_BYTES 2500u

/* Prints the line and aborts. `bytes` is the size of the block that was meant (0: unknown), `state`
 * says in what state hakmem found it. */
_Noreturn void hak_misuse(const char *what, const void *pointer, size_t bytes, const char *state);

/* The same where no block is. What is left of a large block that was freed does not tell that there
 * was one. */
_Noreturn void hak_misuse_nothing(const char *what, const void *pointer);

#endif
