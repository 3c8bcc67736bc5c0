/* SPDX-License-Identifier: MIT */
/* cli/profiles/board.h - the profile board of a process, running or not, read from outside.
 *
 * Owns        nothing.
 * Invariants  the file is read, not mapped: its owner may cut it at any time. It is read twice, and
 *             what was freed is of the first time, what was allocated of the second: what is live
 *             is never less than it was. Sites of which blocks were freed in between are read again
 *             (source.c): else all that passes meanwhile would be live.
 * Threads     one; the process writes meanwhile.
 * Tests       tests/cli/board_cli.sh, tests/fuzz/profile_fuzz.c
 */
#ifndef HAK_CLI_PROFILES_BOARD_H
#define HAK_CLI_PROFILES_BOARD_H

#include "profile/board.h"
#include "profiles/model.h"

bool is_board(const void *bytes, size_t byte_count);

/* Both are of sizeof(struct profile_board) bytes; `now_ms` is of hak_os_clock_ms, 0: the last
 * moment of which the board tells. False: it is of another version. */
bool board_read(struct profile *profile, const struct profile_board *first,
                const struct profile_board *board, uint64_t now_ms);

#endif
