/* SPDX-License-Identifier: MIT */
/* cli/program.h - whose malloc a program calls, told from its file.
 *
 * Owns        struct program: what a program's or library's file says before it runs.
 * Invariants  any bytes may be in the file: nothing outside it is read. What cannot be read is said
 *             to be unknown, never guessed.
 * Threads     one.
 * Tests       tests/cli/run_cli.sh, tests/cli/doctor_cli.sh
 */
#ifndef HAK_CLI_PROGRAM_H
#define HAK_CLI_PROGRAM_H

#include "base/compiler.h"

enum { PROGRAM_NEEDED_MOST = 64, PROGRAM_NAME_BYTES = 256 };

struct program {
    bool is_elf;
    bool is_other_machine; /* not of the processor, the word size or the byte order of this one */
    bool has_loader;       /* it names one: else it is static */
    bool defines_malloc;   /* for all of the process: exported */
    bool holds_hakmem;     /* linked into it */
    char loader[PROGRAM_NAME_BYTES];
    /* The libraries that it names, in their order. */
    char needed[PROGRAM_NEEDED_MOST][PROGRAM_NAME_BYTES];
    int needed_count;
};

/* Reads the file; false: it cannot be read, and errno says why. */
bool program_read(struct program *program, const char *path);

/* Why hakmem, preloaded, will not serve the program that execvp(3) finds by `name`; NULL: nothing
 * is known that would be in the way. */
const char *program_obstacle(const char *name);

/* False: the program would end at its start if a malloc were preloaded. */
bool program_bears_preload(const char *name);

#endif
