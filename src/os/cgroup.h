/* SPDX-License-Identifier: MIT */
/* os/cgroup.h - the limits of the container that the process runs in (cgroup v2).
 *
 * Owns        nothing; files are read when asked for: /proc/self/cgroup, then memory.high,
 *             memory.max and cpu.max of the process's group and of all groups above it, below
 *             /sys/fs/cgroup (or its `unified`). The tightest of each holds. A group that the mount
 *             does not show, as in containers without a namespace of their own, is passed over.
 * Invariants  a file that is missing, unreadable or no number means: no limit. Nothing is
 *             allocated, errno stays.
 * Threads     any.
 * Tests       tests/unit/os/cgroup_test.c
 */
#ifndef HAK_OS_CGROUP_H
#define HAK_OS_CGROUP_H

#include "base/compiler.h"

#define HAK_CGROUP_PATH_BYTES 512

struct cgroup {
    size_t high_bytes; /* SIZE_MAX: none */
    size_t max_bytes;  /* SIZE_MAX: none */
    uint32_t cpus;     /* that the quota amounts to, rounded up; 0: no quota */
    /* The file with the memory pressure of the group or of the machine; "": none. */
    char pressure_path[HAK_CGROUP_PATH_BYTES];
};

/* Reads all that; every path begins with `root`, "" outside of tests. */
void hak_cgroup_read(struct cgroup *cgroup, const char *root);

/* The memory that the process can still touch before the kernel ends something: what the machine
 * has available (MemAvailable of /proc/meminfo), and what is left below memory.high and memory.max
 * of each group, whose files do not count. Very much if nothing of it can be read. */
size_t hak_cgroup_room_bytes(const char *root);

/* Microseconds for which some task waited for memory so far, by a file of pressure; false: it
 * cannot be read. */
bool hak_cgroup_stall_us(const char *pressure_path, uint64_t *stall_us);

#endif
