/* SPDX-License-Identifier: MIT */
/* cli/profiles/source.h - where a profile comes from: a process, or a file of any known format.
 *
 * Owns        struct source: what was read, and which process it is of.
 * Invariants  nothing is asked of the process. A process in a container is found by its number
 *             here; its board and its files are those of its own root.
 * Threads     one.
 * Tests       tests/cli/profile_cli.sh, tests/cli/board_cli.sh
 */
#ifndef HAK_CLI_PROFILES_SOURCE_H
#define HAK_CLI_PROFILES_SOURCE_H

#include "profiles/board.h"

struct source {
    int pid;       /* 0: a file */
    bool is_alive; /* the process of the board still runs */
    bool has_board;
    bool is_absent;  /* a process without a profile */
    char path[128];  /* of the board, or what was asked for */
    char wrong[384]; /* why nothing was read */
    char root[64];   /* where the process finds its files; empty: here */
    struct profile profile;
    struct profile_board *board; /* with has_board */
};

/* What is left to do with the names of the addresses. */
enum naming { NAMES_WHERE_KNOWN, NAMES_FOR_ALL };

/* Reads a process (a number), a file, or standard input ("-"); false: `wrong` says why. Either way
 * the caller ends it. */
bool source_try(struct source *source, const char *word);

/* The same; false: it has been said in one line. */
bool source_read(struct source *source, const char *command, const char *word);
void source_end(struct source *source);

/* Functions and lines; with NAMES_FOR_ALL also module+offset where nothing is known. */
void source_name(struct source *source, enum naming naming);

#endif
