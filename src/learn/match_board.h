/* SPDX-License-Identifier: MIT */
/* learn/match_board.h - the numbers that are tried, and all that is known of their matches.
 *
 * Owns        HAK_KNOB_TABLE: X(row, count, usual, second, third, fourth, what), rows of the policy
 *             that are tried in matches, and their values; struct match_board, which is what
 *             `hakmem elo` shows.
 * Invariants  the usual value is the initial one of the row.
 * Threads     plain data: the board of process/matches.h, or a copy of it.
 * Tests       tests/unit/process/matches_test.c
 */
#ifndef HAK_LEARN_MATCH_BOARD_H
#define HAK_LEARN_MATCH_BOARD_H

#include "learn/contest.h"

#define HAK_KNOB_TABLE(X)                                                                          \
    X(flush_keep_percent, 3, 50, 25, 75, 0, "share of a full bin that a flush leaves in it")       \
    X(big_cache_scale_percent, 4, 100, 50, 200, 400, "room for freed large blocks above the peak")

enum knob {
#define X(row, count, usual, second, third, fourth, what) KNOB_##row,
    HAK_KNOB_TABLE(X)
#undef X
        KNOB_COUNT
};

/* A match that was played. */
struct match_note {
    uint64_t clock_ms;
    uint16_t knob, arm;
    uint32_t event;  /* enum contest_event */
    int32_t saving;  /* in millionths; of a void one 0 */
    uint32_t number; /* of the match, from 1 on */
};
#define HAK_MATCHES_KEPT 64u

enum match_mode { MATCHES_OFF, MATCHES_PLAYED, MATCHES_SHADOW, MATCHES_STOPPED };

struct match_board {
    uint32_t mode; /* enum match_mode */
    uint32_t note_count;
    struct contest_budget budget;
    struct contest contests[KNOB_COUNT];
    struct match_note notes[HAK_MATCHES_KEPT]; /* note n is at n % HAK_MATCHES_KEPT */
};

#endif
