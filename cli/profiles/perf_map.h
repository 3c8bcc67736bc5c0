/* SPDX-License-Identifier: MIT */
/* cli/profiles/perf_map.h - names of code that a program makes while it runs.
 *
 * Owns        nothing.
 * Invariants  read is /tmp/perf-PID.map of the process's own root, a regular file of the process's
 *             user: "START SIZE NAME" a line, in hexadecimal, as CPython (-X perf), node
 *             (--perf-basic-prof) and others write it for perf(1). A later line counts. Only
 *             addresses in no file get a name from it.
 * Threads     one.
 * Tests       tests/preload/python_frames_preload.sh
 */
#ifndef HAK_CLI_PROFILES_PERF_MAP_H
#define HAK_CLI_PROFILES_PERF_MAP_H

#include "profiles/model.h"

/* `root`: "/proc/4711/root"; `pid`: the number that the process has there, `user` its user. */
void perf_map_names(struct profile *profile, const char *root, int pid, uint32_t user);

/* A function of Python, by its name in such a file. */
bool is_python_name(const char *function);

#endif
