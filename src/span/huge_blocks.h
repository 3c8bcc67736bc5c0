/* SPDX-License-Identifier: MIT */
/* span/huge_blocks.h - huge pages for the large blocks of programs that fill them.
 *
 * Nobody says how much of a large block will be touched, and in huge pages a sparse one would be
 * resident whole. But what a program did with its last large blocks it will do with the next: when
 * one comes, the last one is looked at, and huge pages are asked for once two were found filled,
 * for blocks of up to twice their size. The end of each block keeps small pages, which tell whether
 * it was filled, too. Blocks from calloc get none: what is to be zero is what stays sparse, and a
 * page that was only read counts as resident.
 *
 * Up to four come before one is found filled. Under option `limit`, and in hardened mode, there are
 * none.
 *
 * Owns        what was seen of earlier blocks, and how soon their huge pages came.
 * Invariants  none is asked for but in memory that was never touched since the kernel supplied it.
 * Threads     any thread. What was seen is kept in single words: threads that meet lose a piece of
 *             evidence. A block that is looked at may be freed and purged meanwhile, and look
 *             sparse.
 * Tests       tests/unit/span/huge_blocks_test.c
 */
#ifndef HAK_SPAN_HUGE_BLOCKS_H
#define HAK_SPAN_HUGE_BLOCKS_H

#include "span/span.h"

/* A block is to lie in a span of untouched memory, or is freed. */
void hak_huge_block_begin(const struct span *span);
void hak_huge_block_end(const struct span *span);

#endif
