/* SPDX-License-Identifier: MIT */
/* heap/bin_check.h - whether blocks of a bin, in the caller's hands, may lie in one.
 *
 * Owns        nothing.
 * Invariants  only misuse of the program's is ever reported: a block in a bin is in use to its
 *             slab, and there once.
 * Threads     any; the blocks are in no bin meanwhile.
 * Tests       tests/attack/double_free_test.c, tests/unit/heap/bin_check_test.c
 */
#ifndef HAK_HEAP_BIN_CHECK_H
#define HAK_HEAP_BIN_CHECK_H

#include "heap/rows.h"
#include "heap/words.h"

/* Room to note which blocks were seen: a bit for each hash value. A power of two of words, at least
 * 64; with 32 bits a block few blocks share one. */
struct bin_seen {
    uint64_t *words;
    uint32_t word_count;
};

/* Blocks of a bin, of which the first `kept` go back into it. */
struct bin_checked {
    void *const *blocks;
    uint32_t kept;
    uint32_t count;
};

/* The following report a block of those kept that is there twice: the slabs see whether the others
 * are. About 5 instructions a block in rows, 12 by words, and 14 by hash values. */

/* False: the blocks lie in more rows than are worth to be known, or these overlap. *rest: the rows
 * of the blocks that go home. */
bool hak_bin_check_rows(const struct bin_checked *bin, uint32_t class_index, struct rows *rest);

/* False: the blocks lie in more words than there is room for. *words: what they keep and give. */
bool hak_bin_check_words(const struct bin_checked *bin, uint32_t class_index, struct words *words);

/* Of any blocks. */
void hak_bin_check_once(const struct bin_checked *bin, uint32_t class_index, struct bin_seen seen);

#endif
