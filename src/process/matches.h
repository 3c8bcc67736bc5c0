/* SPDX-License-Identifier: MIT */
/* process/matches.h - word `matches` of option learn: rows of the policy are tried in turns.
 *
 * Owns        the contests of this process, the window that is played, and the rows of the policy
 *             that a match moves (learn/match_board.h).
 * Invariants  without the word nothing is measured, and the rows are unchanged. One row at a time
 *             differs from the value in force, for one window; the first quarter of a window is not
 *             measured. A window that the program does not fill in time ends the match, and the row
 *             is restored. If the tick never runs again, a changed row does no harm: it is read
 *             only by slow paths, which tick. A forked child keeps the values in force, and plays
 *             nothing. A process that confines itself stops, with the usual values.
 * Threads     the tick: any; one at a time plays, with its signals blocked, so that no handler
 *             leaves it by a jump. Rows are relaxed numbers, as all policy.
 * Tests       tests/unit/process/matches_test.c, tests/preload/elo_preload.sh
 */
#ifndef HAK_PROCESS_MATCHES_H
#define HAK_PROCESS_MATCHES_H

#include "base/atomic.h"
#include "learn/match_board.h"

extern _Atomic uint32_t hak_matches_are_on;

/* Begins, if option learn says so. Before main. */
void hak_matches_begin(void);

/* The results of earlier runs of the program: before anything is played. */
struct match_line;
void hak_matches_bring(const struct match_line *line);

/* Writes down what is known of each value that was played. */
struct learned_program;
void hak_matches_tell(struct learned_program *program);

/* Continues the match in progress. */
void hak_matches_look(void);
HAK_INLINE void hak_matches_tick(void)
{
    if (HAK_UNLIKELY(hak_load_relaxed(&hak_matches_are_on) != 0))
        hak_matches_look();
}

/* Copies the state; false, and nothing copied: it is being changed. */
bool hak_matches_copy(struct match_board *board);

#endif
