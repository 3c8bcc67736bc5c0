/* SPDX-License-Identifier: MIT */
/* cli/ps.h - the processes that map hakmem.
 *
 * Owns        struct process_row, what is said of one.
 * Invariants  a process whose mappings this user may not read is not listed: the kernel does not
 *             say what it maps. Programs that are linked with hakmem are known by their files, each
 *             of which is read once.
 * Threads     one.
 * Tests       tests/preload/ctl_preload.py
 */
#ifndef HAK_CLI_PS_H
#define HAK_CLI_PS_H

#include "base/compiler.h"

/* So many are found at most. */
#define PROCESSES_MOST 1024
/* A process that works answers within this; so long one that sleeps is waited for among others. */
#define PROCESS_WAIT_MS 1500u

struct process_row {
    int pid;
    char name[64]; /* without blanks */
    uint64_t resident_bytes;
    uint64_t live_bytes;
    bool has_live;       /* it publishes its numbers */
    bool is_served;      /* by hakmem, as far as can be told */
    char allocator[256]; /* whose malloc it calls */
};

/* Finds them, in the order of their numbers; returns how many, `most` at most. */
int processes_find(struct process_row *rows, int most);

/* What a list says of each process of this user. */
struct process_view {
    const char *key;                   /* of that in JSON */
    const char *none;                  /* a line, where no process has anything to say */
    void *seen;                        /* for these two */
    bool (*look)(int pid, void *seen); /* false: it says nothing */
    void (*print)(void *seen, bool is_json);
};

/* Prints it under the number and name of each, or in JSON as an array of objects. */
void processes_show(const struct process_view *view, bool is_json);

#endif
