/* SPDX-License-Identifier: MIT */
/* hardened/fenced.h - allocation, free and realloc of fenced blocks.
 *
 * Owns        nothing; the blocks are misuse/fence.h's.
 * Invariants  the record of a block names the threads that allocated and freed it, with their
 *             callers.
 * Threads     any.
 * Tests       tests/attack/, tests/preload/fence_preload.sh
 */
#ifndef HAK_HARDENED_FENCED_H
#define HAK_HARDENED_FENCED_H

#include "hardened/hardened.h"
#include "misuse/fence.h"
#include "misuse/guarded.h"
#include "os/frames.h"

/* A fenced block, if the option names it; NULL: another one will do. */
void *hak_fenced_take(const struct request *request, struct os_caller caller);

/* How a live fenced block was requested: its mark has the bytes, the kind and the alignment. False:
 * it is none. */
bool hak_fenced_look(const void *block, struct mark *mark);

/* Frees it; anything but a live block that nothing was written around is misuse, reported. */
void hak_fenced_give(void *block, struct os_caller caller);

#endif
