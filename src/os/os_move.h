/* SPDX-License-Identifier: MIT */
/* os/os_move.h - moves pages to other addresses instead of copying what they hold.
 *
 * Owns        whether the kernel can, as a page of hakmem's own showed it.
 * Invariants  as in os/os.h: errno stays, nothing is allocated.
 *             From Linux 6.17 on, mremap onto a given address moves several mappings in turn, and
 *             when it fails it has moved some of them. Who registers pages with userfaultfd, locks
 *             them or gives advice on them divides a mapping, and so can a fork: we do not know all
 *             borders. So the kernel is asked with the target as a mere hint: then it takes one
 *             mapping whole, or refuses and has touched nothing, in one step that no other thread
 *             can come between. For that the target must be free.
 *             While it is, another thread may map something there. Then the pages arrive elsewhere,
 *             and are copied back, and the target is never touched again: we map it only where
 *             nothing is mapped. Nothing else is lost: the target held nothing. The source is
 *             mapped all the time.
 * Threads     any; both ranges are the caller's.
 * Tests       tests/unit/os/os_move_test.c, tests/unit/os/old_kernel_test.c,
 *             tests/unit/span/span_move_test.c
 */
#ifndef HAK_OS_OS_MOVE_H
#define HAK_OS_OS_MOVE_H

#include "base/compiler.h"

/* What became of an attempt to move pages. */
enum os_move {
    OS_MOVED,        /* `to` holds the memory, `from` is mapped and reads as zero */
    OS_MOVE_UNTRIED, /* both are as they were */
    OS_MOVE_REFUSED, /* `from` is as it was; `to` is usable, but mapped anew: without advice */
    OS_MOVE_LOST,    /* `from` is unchanged; `to` may now be another mapping: never touch it */
};

/* Moves the memory of [from, from + bytes) to `to`, both usable private memory of ours that do not
 * overlap; `to` holds nothing and is unmapped for a moment (mremap(2), MREMAP_DONTUNMAP). Refused
 * where `from` is several mappings, and where all memory of the process is locked. */
enum os_move hak_os_move(void *from, void *to, size_t bytes);

/* Whether the kernel moves pages: to be asked before a target is taken. Where memory was found
 * locked, mostly false; sometimes true, to learn of a change. */
bool hak_os_may_move(void);

#endif
