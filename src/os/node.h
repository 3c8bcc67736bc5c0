/* SPDX-License-Identifier: MIT */
/* os/node.h - the memory nodes of the machine (NUMA).
 *
 * Owns        whether there are several, read once.
 * Invariants  as in os/os.h: errno stays, nothing is allocated. A node's number is below
 *             HAK_NODES_MOST; machines with more share numbers.
 * Threads     any; two that ask first at the same time read the same file.
 * Tests       tests/unit/os/node_test.c; a topology can be faked through os/os_fault.h
 */
#ifndef HAK_OS_NODE_H
#define HAK_OS_NODE_H

#include "base/compiler.h"

#define HAK_NODES_MOST 8u

/* True when the machine has more than one node; reads /sys once. */
bool hak_os_has_nodes(void);

/* The node on which the calling thread runs just now; 0 where there is only one. */
uint32_t hak_os_node(void);

#endif
