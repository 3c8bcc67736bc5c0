/* SPDX-License-Identifier: MIT */
/* cli/words.h - the words behind a subcommand.
 *
 * Owns        nothing.
 * Invariants  what is wrong is said in one line (cli/command.h).
 * Threads     one.
 * Tests       tests/cli/
 */
#ifndef HAK_CLI_WORDS_H
#define HAK_CLI_WORDS_H

#include "base/compiler.h"

/* An option: `is_given` becomes true, or `value` is the word behind it. The last of several has no
 * name. */
struct word_option {
    const char *name;
    bool *is_given;
    const char **value;
};

/* Reads the options among the words and takes them out; what is left ends with NULL. "-" is none.
 * Returns EXIT_DONE or EXIT_USAGE. */
int words_read(const char *command, char **words, const struct word_option *options);

/* A whole number from `least` to `most` in digits alone; -1: it is none, as is NULL. */
int number_from(const char *word, int least, int most);

/* The number that a process can have; 0: it is none. */
int process_number_from(const char *word);

#endif
