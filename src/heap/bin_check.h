/* SPDX-License-Identifier: MIT */
/* heap/bin_check.h - whether blocks of a bin, in the caller's hands, may lie in one.
 *
 * Owns        nothing.
 * Invariants  only misuse of the program's is ever reported: a block in a bin is in use to its
 *             slab, and there once.
 * Threads     any; the blocks are in no bin meanwhile.
 * Tests       tests/attack/double_free_in_one_bin_test.c, tests/unit/heap/bin_check_test.c
 */
#ifndef HAK_HEAP_BIN_CHECK_H
#define HAK_HEAP_BIN_CHECK_H

#include "base/compiler.h"

/* Room to note which blocks were seen: a hash table of their places, from 1 on; 0: none. A power of
 * two of slots, twice as many as blocks. */
struct bin_seen {
    uint16_t *slots;
    uint32_t slot_count;
};

/* Reports a block that is there twice. True: the blocks are few stretches of neighbours. About 14
 * instructions a block, 5 where they are. */
bool hak_bin_check_once(void *const *blocks, uint32_t count, uint32_t class_index,
                        struct bin_seen seen);

#endif
