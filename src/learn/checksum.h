/* SPDX-License-Identifier: MIT */
/* learn/checksum.h - the checksum at the end of a file of what was learned.
 *
 * Owns        nothing: CRC-32 as of zlib and gzip, four bits at a time by a table of sixteen words.
 *             Programs that end soon pay for it twice.
 * Invariants  none.
 * Threads     a pure function.
 * Tests       tests/unit/learn/learned_file_test.c
 */
#ifndef HAK_LEARN_CHECKSUM_H
#define HAK_LEARN_CHECKSUM_H

#include "base/compiler.h"

uint32_t hak_checksum(const void *bytes, size_t count);

#endif
