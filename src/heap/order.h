/* SPDX-License-Identifier: MIT */
/* heap/order.h - the order of blocks in a bin.
 *
 * Owns        nothing.
 * Invariants  the blocks stay the same, in another order.
 * Threads     the one that has the bin; other heaps may be at work.
 * Tests       tests/unit/heap/order_test.c
 */
#ifndef HAK_HEAP_ORDER_H
#define HAK_HEAP_ORDER_H

#include "slab/slab.h"

#define HAK_ORDER_BLOCKS_MOST 32u

/* Sorts at most HAK_ORDER_BLOCKS_MOST large blocks: those of the fullest slabs come first, equals
 * stay in order. Those of the emptiest leave the bin: such slabs then empty, and their memory can
 * serve any class. */
void hak_order_by_slab_use(void **blocks, uint32_t count);

#endif
