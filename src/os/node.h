/* SPDX-License-Identifier: MIT */
/* os/node.h - the memory nodes of the machine (NUMA).
 *
 * Owns        whether there are several, as it was read; until then there is one.
 * Invariants  as in os/os.h: errno stays, nothing is allocated. A node's number is below
 *             HAK_NODES_MOST; machines with more share numbers.
 * Threads     any.
 * Tests       tests/unit/os/node_test.c; a topology can be faked through os/os_fault.h
 */
#ifndef HAK_OS_NODE_H
#define HAK_OS_NODE_H

#include "base/compiler.h"

#define HAK_NODES_MOST 8u

/* Reads from /sys whether the machine has more than one node. */
void hak_os_read_nodes(void);

/* True when it has. */
bool hak_os_has_nodes(void);

/* The node on which the calling thread runs just now; 0 where there is only one, and in a program
 * that confined itself: not every machine answers without a system call. */
uint32_t hak_os_node(void);

#endif
