/* SPDX-License-Identifier: MIT */
/* profile/modules.h - the files that the code on stacks is from.
 *
 * Owns        the modules of this process, and copies them to its board.
 * Invariants  a module is added when a stack leads into it for the first time, by the thread whose
 *             stack it is: it cannot be unloaded meanwhile. One that came in another's place is
 *             added, too; the later one counts, for the stacks of the earlier one as well, and is
 *             noticed with the first stack that is new: a stack that has a site is not looked at
 *             again. Its file header is read only where it is mapped.
 * Threads     one at a time adds or shows; any reads.
 * Tests       tests/preload/leaks_preload.sh, tests/cli/modules_cli.sh
 */
#ifndef HAK_PROFILE_MODULES_H
#define HAK_PROFILE_MODULES_H

#include "profile/board.h"

/* The module that code on this thread's stack belongs to; false: none is known. */
bool hak_module_describe(uintptr_t address, struct board_module *found);

/* Adds those of a stack; before them the program itself, if there is none yet. */
void hak_modules_add(const uint64_t *frames, uint32_t frame_count);

/* How many there are, with or without a board; they stay as they are. */
uint32_t hak_modules_count(void);
const struct board_module *hak_modules_at(uint32_t index);

/* The last one that has the address, loaded still or not; NULL: none. */
const struct board_module *hak_modules_find(uintptr_t address);

/* Copies to the board those that it has not, as long as there is memory for them. */
void hak_modules_show(struct profile_board *board);

#endif
