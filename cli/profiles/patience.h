/* SPDX-License-Identifier: MIT */
/* cli/profiles/patience.h - reading what somebody named, which may be a pipe.
 *
 * Owns        nothing.
 * Invariants  a pipe that nobody writes to is at its end: opened without blocking, it never hangs.
 * Threads     any.
 * Tests       tests/cli/stats_cli.sh, tests/cli/profile_cli.sh
 */
#ifndef HAK_CLI_PROFILES_PATIENCE_H
#define HAK_CLI_PROFILES_PATIENCE_H

#include <stddef.h>
#include <sys/types.h>

/* As read(2), but waits for the writer of a pipe that was opened with O_NONBLOCK. */
ssize_t read_patiently(int fd, void *to, size_t bytes);

#endif
