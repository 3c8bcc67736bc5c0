/* SPDX-License-Identifier: MIT */
/* profile/sites.h - the allocating call sites: sums over the samples of each stack.
 *
 * Owns        the sites of this process, their number and what was dropped, and which board they
 *             are shown on.
 * Invariants  a site is never removed. Counters only grow. What the process has is in memory of its
 *             own, which a child of fork inherits as it was; a board shows a copy, so that a child
 *             never writes to its parent's. When sites run short, new stacks are cut: first to
 *             eight frames, then to three, so that allocations are still distinguished by their
 *             nearest callers; what then finds no site is counted with site 0.
 * Argument    A site is claimed by raising the number (relaxed: it orders nothing), filled, marked
 *             ready (release) and entered into a bucket (release); a thread that finds it by the
 *             bucket (acquire) sees it whole. Two threads that meet with one stack may both fill a
 *             site; one enters its bucket, the other finds it there and leaves its own unused. A
 *             board's counter is raised to the sum that an addition to the process's own returned,
 *             never lowered: threads that add at once may raise it in either order, and the greater
 *             sum stays. So it is right as soon as they are done, without a lock.
 * Threads     any, signal handlers too. Only callers that allow it to grow take a lock (META).
 * Tests       tests/unit/profile/sites_test.c, tests/race/profile_race.c
 */
#ifndef HAK_PROFILE_SITES_H
#define HAK_PROFILE_SITES_H

#include "profile/board.h"

/* The sums of the first `count` sites are shown on this board from now on; NULL: on none. */
void hak_sites_show(struct profile_board *board, uint32_t count);

/* The site of a stack; 0: it found none. Without `may_grow` no memory is taken for it. */
uint32_t hak_sites_find(const uintptr_t *frames, uint32_t frame_count, bool may_grow);

/* The same for a stack that frees, while there are many left for those that allocate. */
uint32_t hak_sites_find_freeing(const uintptr_t *frames, uint32_t frame_count);

/* Blocks: how many a sample stands for, and their total requested size. */
struct sample_sum {
    uint64_t count;
    uint64_t bytes;
};
void hak_sites_note_taken(uint32_t site, struct sample_sum sum, uint64_t now_ms);
void hak_sites_note_ended(uint32_t site, struct sample_sum sum, uint64_t life_ns);
/* A sample of the site was freed by the stack of the other one. */
void hak_sites_note_freed_by(uint32_t site, uint32_t freeing);
/* Live blocks of the site that were so large together are so large now. */
void hak_sites_note_resized(uint32_t site, uint64_t before_bytes, uint64_t bytes);
/* When the site's oldest live sample was taken; 0: it has none. */
void hak_sites_set_oldest(uint32_t site, uint64_t oldest_ms);

/* Sites so far, site 0 among them; and one of them, NULL: it is not ready. */
uint32_t hak_sites_count(void);
const struct board_site *hak_sites_at(uint32_t site);

extern struct board_dropped hak_sites_dropped;
#define hak_sites_note_dropped(name) hak_fetch_add_relaxed(&hak_sites_dropped.name, 1)

#endif
