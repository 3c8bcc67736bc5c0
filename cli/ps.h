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

/* Begins what a list says of a process: a line with its number and name, or in JSON an object whose
 * member `key` the caller writes, followed by '}'. */
void process_row_begin(const struct process_row *row, bool is_json, const char *key, bool is_first);

#endif
