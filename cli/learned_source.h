/* SPDX-License-Identifier: MIT */
/* learned_source.h - files of option `profile`, for the commands that show or change them. */
#ifndef HAK_CLI_LEARNED_SOURCE_H
#define HAK_CLI_LEARNED_SOURCE_H

#include "learn/learned_file.h"

/* Reads a file; NULL, or why it is none that a program of this user would read. */
const char *learned_source_read(struct learned *learned, const char *path);

/* The program of that name, or with NULL the only one; NULL: there is none, or there are several,
 * which was said in one line. */
const struct learned_program *learned_source_program(const struct learned *learned,
                                                     const char *command, const char *path,
                                                     const char *name);

#endif
