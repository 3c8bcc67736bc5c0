/* SPDX-License-Identifier: MIT */
/* cli/process.h - where a process meets others: its id, its user, its /dev/shm.
 *
 * Owns        struct process. A process in a container has another id there, and perhaps another
 *             /dev/shm; one with a root folder of its own has the one in that.
 * Invariants  what stands in another root folder is reached step by step and through no symbolic
 *             link, which that root's owner could lead anywhere.
 * Threads     one.
 * Tests       tests/preload/ctl_preload.py
 */
#ifndef HAK_CLI_PROCESS_H
#define HAK_CLI_PROCESS_H

#include "base/compiler.h"

#include <sys/types.h>

struct process {
    int pid;            /* here */
    uint64_t own_pid;   /* as the process itself knows it */
    uint64_t pid_space; /* 0: not known */
    uint64_t start_ticks;
    uint64_t resident_bytes;
    uid_t user; /* effective */
    int folder; /* a descriptor of its /dev/shm; -1: there is none */
    bool is_zombie;
    char name[64]; /* printable */
};

/* Finds it all out; false: there is no such process. */
bool process_find(struct process *process, int pid);

void process_leave(struct process *process);

/* Calls `use` with the number of each process that runs now. */
void processes_visit(void (*use)(int pid, void *context), void *context);

/* Whether a line of its mappings has this text; `if_unreadable` where they cannot be read. */
bool process_maps(int pid, const char *text, bool if_unreadable);

/* True when the kernel lets this user command the process: its user, or root. */
bool process_is_own(const struct process *process);

/* Milliseconds of the clock that processes of one machine share. */
uint64_t shared_clock_ms(void);

#endif
