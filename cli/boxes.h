/* SPDX-License-Identifier: MIT */
/* cli/boxes.h - black boxes: in this /dev/shm, and in those of containers that still run something.
 *
 * Owns        struct boxes, a list of them.
 * Invariants  dead processes first, of these the newest first. A process is alive while some
 *             process maps its file to write (os/shared.h). Of a container with another root folder
 *             /dev/shm is reached through no symbolic link.
 * Threads     one.
 * Tests       tests/cli/board_cli.sh
 */
#ifndef HAK_CLI_BOXES_H
#define HAK_CLI_BOXES_H

#include "base/compiler.h"

struct box {
    char path[128];
    char name[64]; /* of the program */
    uint64_t pid;  /* as the process itself knew it */
    uint64_t heard_unix_ms;
    bool is_alive;
};

struct boxes {
    struct box *start;
    uint32_t count;
};

void boxes_find(struct boxes *boxes);
void boxes_end(struct boxes *boxes);

/* The first of a program of that name; NULL: there is none. */
const struct box *boxes_named(const struct boxes *boxes, const char *name);

/* "2026-11-25 14:03:09 UTC" in 32 bytes. */
char *utc_text(char text[32], uint64_t unix_ms);

/* Prints those of dead processes, a line each. */
void boxes_print(const struct boxes *boxes);

#endif
