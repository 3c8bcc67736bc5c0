/* SPDX-License-Identifier: MIT */
/* cli/profiles/symbols.h - functions, files and lines of a profile's addresses.
 *
 * Owns        nothing.
 * Invariants  a module's file is used only if its build id is the one that the profile names; then
 *             separate debug files are found as gdb finds them. Locations that have lines keep
 *             them. Where nothing is known a location stays an address.
 * Threads     one.
 * Tests       tests/cli/profile_cli.sh
 */
#ifndef HAK_CLI_PROFILES_SYMBOLS_H
#define HAK_CLI_PROFILES_SYMBOLS_H

#include "profiles/model.h"

/* Files are looked for below `root` first ("/proc/4711/root": the process's own), then here. */
void symbols_find(struct profile *profile, const char *root);

/* Why there are no names at all here; NULL: there are. */
const char *symbols_missing(void);

/* A readable form of a linker's name of C++ or Rust, which the caller frees; NULL: it is none. */
char *symbol_demangle(const char *name);

#endif
