/* SPDX-License-Identifier: MIT */
/* cli/ask.h - a request that is left for a running process, and its answer.
 *
 * Owns        the file /dev/shm/hakmem.PID.request while it is there (control/request.h).
 * Invariants  the file is created atomically, by a link, if there is none; other senders wait
 *             meanwhile. Its creator keeps it locked (flock) and removes it. A later command does
 *             that once its deadline has passed, or it is not locked: its creator has ended. One
 *             that was left for later needs no lock, and goes when it is done or the process has
 *             ended. Root gives it to the process's user. What the process wrote is read, not
 *             mapped, and may be anything.
 * Threads     one.
 * Tests       tests/preload/ctl_preload.py
 */
#ifndef HAK_CLI_ASK_H
#define HAK_CLI_ASK_H

#include "control/request.h"
#include "process.h"

/* A process that works looks once a second. */
#define ASK_WAIT_MS 5000u

enum ask_state { ASK_WAITS, ASK_TAKEN, ASK_ANSWERED, ASK_LOST };

struct ask {
    struct process process;
    int fd; /* -1: nothing is asked */
    uint64_t deadline_ms;
    char name[48];
};

/* Leaves a request that may be taken for `wait_ms`, once others that ask have ended, for which it
 * waits `others_ms`; false: *why is one line that says why not. */
bool ask_begin(struct ask *ask, int pid, const char *words, uint32_t wait_ms, uint32_t others_ms,
               const char **why);

/* How far it is; *seen is what the file holds, its texts ended. */
enum ask_state ask_look(const struct ask *ask, struct control_request *seen);

/* Removes it. */
void ask_end(struct ask *ask);

/* Begins, waits, and leaves the request to a process that has not begun to do it by then; true: it
 * was done, or left, *answer says which. Nothing is to be ended. */
bool ask_or_leave(struct ask *ask, int pid, const char *words, uint32_t wait_ms,
                  const char **answer);

/* Begins and waits; true: it was done, *answer is what the process says, and what follows the
 * request in the file can be read until ask_end. False: *answer says why not. */
bool ask_and_wait(struct ask *ask, int pid, const char *words, uint32_t wait_ms,
                  const char **answer);

/* The signal that came since a wait began, and should end this program; 0: none. */
int ask_interrupted_by(void);

#endif
