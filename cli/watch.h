/* SPDX-License-Identifier: MIT */
/* cli/watch.h - the numbers of a running process, which is asked to show them if it does not.
 *
 * Owns        the request that is under way.
 * Invariants  a process that was asked shows its numbers for a while, and is asked again in time.
 * Threads     one.
 * Tests       tests/preload/top_preload.py
 */
#ifndef HAKMEM_CLI_WATCH_H
#define HAKMEM_CLI_WATCH_H

#include "ask.h"
#include "target.h"

struct watch {
    struct ask ask; /* the request to go on, while it waits */
    uint64_t asked_ms;
    bool is_on; /* it was asked */
};

#define WATCH_NONE ((struct watch){.ask.fd = -1})

/* Reads its numbers; false: *why says why not. */
bool watch_read(struct watch *watch, struct target *target, int pid, const char **why);

/* Asks a process that was asked before to go on, when it is time; does not wait for it. */
void watch_go_on(struct watch *watch, int pid);

void watch_end(struct watch *watch);

#endif
