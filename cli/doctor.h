/* SPDX-License-Identifier: MIT */
/* cli/doctor.h - what the two halves of `hakmem doctor` share.
 *
 * Owns        nothing.
 * Invariants  one finding is one line: `ok`, `note` (worth knowing), `fix` (worth changing) or
 *             `no` (hakmem does not serve the process), a fact, and what follows from it. What
 *             the kernel does not show is left out.
 * Threads     one.
 * Tests       tests/cli/doctor_cli.sh
 */
#ifndef HAK_CLI_DOCTOR_H
#define HAK_CLI_DOCTOR_H

#include "base/compiler.h"

/* Prints one finding. */
void find(const char *weight, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Reads the beginning of a file of the kernel as a string without its last newline; false: it
 * cannot be read. */
bool kernel_text(const char *path, char *text, size_t text_bytes);

/* The number in such a file; false: it is none. */
bool kernel_number(const char *path, uint64_t *number);

/* Findings on the memory limits of the cgroup that `cgroup_path`, a /proc/PID/cgroup, names. */
void examine_cgroup(const char *cgroup_path);

/* Findings on one process; returns the exit status. */
int examine_process(int process);

#endif
