/* SPDX-License-Identifier: MIT */
/* profile/size_log.h - which sizes this process holds, by its samples.
 *
 * Owns        for each cell of learn/size_spread.h the blocks that live now and their moments.
 * Invariants  a block is noted when its life begins, and once more when it ends, with the same
 *             numbers, its size among them (logged_bytes). One that is resized in place is noted
 *             anew when it comes into another cell, so its slack is that of one of its sizes in
 *             the cell. Blocks above 128 KiB are of no class, and left out. What was there before
 *             sampling began, and what comes while it is off, is missing.
 * Argument    the block-milliseconds up to a moment t are the sum of (end - birth) over blocks that
 *             ended and of (t - birth) over those that live: t times those that live, less the sum
 *             of all births, plus the sum of all ends. So two words suffice, which are added to,
 *             modulo 2^64. A reader that finds one of them changed and the other not yet is wrong
 *             by one sample, and takes a negative sum for 0. A cell of 1 TiB overflows after
 *             months.
 * Threads     any, signal handlers too: relaxed additions, nothing is ordered by them.
 * Tests       tests/unit/profile/size_log_test.c
 */
#ifndef HAK_PROFILE_SIZE_LOG_H
#define HAK_PROFILE_SIZE_LOG_H

#include "learn/size_spread.h"
#include "profile/live.h"

/* The life of a sample begins; it ended at `now_ns`. */
void hak_size_log_begin(const struct live_sample *sample);
void hak_size_log_end(const struct live_sample *sample, uint64_t now_ns);

/* Its blocks have that size now. */
void hak_size_log_resize(struct live_sample *sample, size_t bytes);

/* What was seen up to now; false: nothing. */
bool hak_size_log_read(struct size_spread *spread, uint64_t now_ns);

#endif
