/* SPDX-License-Identifier: MIT */
/* control/control.h - requests from other processes of the same user (`hakmem ctl`).
 *
 * Owns        when the process checks for a request, and how it is carried out
 *             (docs/adr/0029-requests-from-outside.md).
 * Invariants  a process checks at most once a second, first a second after its first tick: one
 *             system call, and none in one that ends before, that confined itself, or with
 *             stats_shm=never. A copy of the process starts afresh. A request is carried out with
 *             signals blocked, so neither a jump nor a cancellation leaves it half done.
 * Threads     one checks at a time, outside every heap and lock; the others continue.
 * Tests       tests/unit/control/control_test.c, tests/preload/ctl_preload.py
 */
#ifndef HAK_CONTROL_CONTROL_H
#define HAK_CONTROL_CONTROL_H

#include "base/compiler.h"

enum control_verdict {
    CONTROL_NOTHING, /* was asked */
    CONTROL_DONE,
    CONTROL_WATCHED, /* the process is watched: its statistics must be written periodically */
};

/* Looks if it is time, and does what is asked. */
enum control_verdict hak_control_tick(void);

#endif
