/* SPDX-License-Identifier: MIT */
/* cli/top.h - `hakmem top`: a process's memory, again and again.
 *
 * Owns        the terminal while it runs, which is as before at its end, by a signal too.
 * Invariants  what is wrong is said in one line, and the exit status is 1; 2 for wrong arguments.
 * Threads     one.
 * Tests       tests/preload/top_preload.py
 */
#ifndef HAKMEM_CLI_TOP_H
#define HAKMEM_CLI_TOP_H

int command_top(int argument_count, char **arguments);

#endif
