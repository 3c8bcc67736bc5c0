/* SPDX-License-Identifier: MIT */
/* region/huge_wish.h - the superslabs for which large blocks asked for huge pages.
 *
 * The kernel remembers what it was asked: memory that is purged and used again would come back in
 * huge pages, whatever it then serves for. So what is purged or becomes a superslab of small blocks
 * is refused first.
 *
 * Owns        one bit for each superslab of the window.
 * Invariants  no bit: the kernel was not asked, or was refused since. (Memory that realloc moved
 *             keeps what was asked at its new place, but is mapped anew instead of purged.)
 * Threads     any thread. A wish comes from the owner of all of the superslab. A refusal may come
 *             from the owner of any part of it: of several threads one clears the bit and tells the
 *             kernel; the others may purge before it has, and the kernel's own thread might fill
 *             their part meanwhile, which costs memory only.
 * Tests       tests/unit/region/huge_wish_test.c
 */
#ifndef HAK_REGION_HUGE_WISH_H
#define HAK_REGION_HUGE_WISH_H

#include "region/region.h"

/* Asks for huge pages for the superslabs that lie wholly in the range, from the first one on, while
 * half of the mappings that hakmem may cause are left. Returns their granules. */
struct granule_range hak_huge_wish(struct granule_range range);

/* Refuses them for all superslabs of which some lies in the range, where they were asked for. */
void hak_huge_refuse(struct granule_range range);

#endif
