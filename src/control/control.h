/* SPDX-License-Identifier: MIT */
/* control/control.h - what other processes of the same user ask of this one (`hakmem ctl`).
 *
 * Owns        when it looks for a request, and what it does for one
 *             (docs/adr/0029-requests-from-outside.md).
 * Invariants  a process looks at most once a second, first a second after its first tick: one
 *             system call, and none in one that ends before, that confined itself, or with
 *             stats_shm=never. A copy of the process begins anew. A request is done with signals
 *             blocked, so neither a jump nor a cancellation leaves it half done.
 * Threads     one looks at a time, outside every heap and lock; the others go on.
 * Tests       tests/unit/control/control_test.c, tests/preload/ctl_preload.py
 */
#ifndef HAK_CONTROL_CONTROL_H
#define HAK_CONTROL_CONTROL_H

#include "base/compiler.h"

enum control_verdict {
    CONTROL_NOTHING, /* was asked */
    CONTROL_DONE,
    CONTROL_WATCHED, /* the process is watched: somebody has to write its numbers now and then */
};

/* Looks if it is time, and does what is asked. */
enum control_verdict hak_control_tick(void);

#endif
