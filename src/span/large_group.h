/* SPDX-License-Identifier: MIT */
/* span/large_group.h - groups, so that a private heap can free all its large blocks at once.
 *
 * Owns        the links of a group: a list head, given to hak_large_group_start first, and the
 *             bin_link of each span in it. A used span is on no bin, so that link serves.
 * Invariants  a span that is in a group names it. Nothing here calls span/large.h, which has what
 *             finds a block's record or frees it.
 * Threads     any; the SPAN lock guards a group.
 * Tests       tests/unit/span/large_group_test.c
 */
#ifndef HAK_SPAN_LARGE_GROUP_H
#define HAK_SPAN_LARGE_GROUP_H

#include "base/compiler.h"

struct list_link;
struct span;
void hak_large_group_start(struct list_link *group);

/* The number of blocks in the group and the bytes of their spans. */
size_t hak_large_group_bytes(const struct list_link *group, size_t *block_count);

/* Takes a block that is being freed out of its group. The SPAN lock is held. */
void hak_large_leave(struct span *span);

/* A thread was stopped for good while it changed the group, or after it withdrew a block that is in
 * it: such blocks leave it, the links are whole again. The SPAN lock is held, or no other thread is
 * there. */
void hak_large_group_mend(struct list_link *group);

/* A block moved from one span to another, which takes its place in the group. */
void hak_large_succeed(struct span *from, struct span *to);

#endif
