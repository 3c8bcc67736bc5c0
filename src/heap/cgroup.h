/* SPDX-License-Identifier: MIT */
/* heap/cgroup.h - the limits of a container.
 *
 * Owns        reading the control group once (heap/settings.h). memory.high, or nine tenths of
 *             memory.max, is the soft limit unless the option gives one; a quota of CPU time bounds
 *             what threads cache, and with a quota of one CPU or less no thread spins. Also how
 *             long tasks waited for memory.
 * Invariants  what cannot be read changes nothing.
 * Threads     one thread reads, without a lock; the pressure is the background thread's.
 * Tests       tests/unit/heap/cgroup_test.c
 */
#ifndef HAK_HEAP_CGROUP_H
#define HAK_HEAP_CGROUP_H

#include "base/compiler.h"

/* The prefix of all paths: "" outside of tests. */
extern const char *hak_own_cgroup_root;

/* Reads the container's limits and applies them; once. */
void hak_own_cgroup_read(void);

/* The memory that there is for this process beyond what it has, read from files at each call; very
 * much if it is not known. */
size_t hak_own_cgroup_room_bytes(void);

/* True when some file shows the pressure. */
bool hak_own_cgroup_tells_pressure(void);

/* True when tasks of the container waited for memory for a tenth of the time or more since the last
 * call that looked; it looks twice a second at most. False in a confined program. */
bool hak_own_cgroup_is_pressed(uint64_t now_ms);

#endif
