/* SPDX-License-Identifier: MIT */
/* cli/colours.h - whether the user wants colours on a terminal (no-color.org).
 *
 * Owns        nothing.
 * Invariants  an empty NO_COLOR is as none.
 * Threads     one.
 * Tests       tests/preload/top_preload.py
 */
#ifndef HAK_CLI_COLOURS_H
#define HAK_CLI_COLOURS_H

#include <stdbool.h>
#include <stdlib.h>

static inline bool colours_are_wanted(void)
{
    const char *refusal = getenv("NO_COLOR");
    return refusal == NULL || *refusal == '\0';
}

#endif
