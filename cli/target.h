/* SPDX-License-Identifier: MIT */
/* cli/target.h - a process that publishes its numbers, seen from outside.
 *
 * Owns        what is known of the process: its shm file, and what the kernel says of its memory.
 * Invariants  nothing is written to the process. The file is read, not mapped: one that is cut
 *             short, foreign, or of another version is told from a good one before it is used.
 * Threads     one.
 * Tests       tests/preload/top_preload.py
 */
#ifndef HAKMEM_CLI_TARGET_H
#define HAKMEM_CLI_TARGET_H

#include "process.h"
#include "stats/shm.h"

struct target {
    int pid;
    bool is_silent; /* it publishes nothing: it can be asked to */
    bool has_ended; /* there is no such process: only its last numbers are known */
    char name[64];
    uint64_t start_ticks;
    uint64_t window_start, block_start, record_start, record_end;
    struct shm_page page;
    /* Resident, by smaps: of the heap, of hakmem's records, of all else. */
    uint64_t heap_bytes, record_bytes, other_bytes;
    bool has_smaps; /* else all of it is in other_bytes */
    uint64_t faults;
    uint64_t up_ms;
};

/* Reads it all; false: *why is one line that says what is wrong. */
bool target_read(struct target *target, int pid, const char **why);

/* Reads what it publishes, and nothing of the kernel's. */
bool target_read_numbers(struct target *target, const struct process *process, const char **why);

/* The last numbers of a process that ended without removing them. */
bool target_read_left(struct target *target, int pid, const char **why);

#endif
