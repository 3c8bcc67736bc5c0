/* SPDX-License-Identifier: MIT */
/* process/mend.h - repairs after slow paths that were left by a jump.
 *
 * Owns        hak_jumps_matter, and the lock around the start of the process.
 * Invariants  a slow path that was left by a jump (or cancelled) is detected by the thread's next
 *             one: its cache and the heap that it was in are lost; no other thread waits. From then
 *             on slow paths block signals, so that it does not recur.
 * Threads     as named.
 * Tests       tests/unit/process/start_test.c, tests/preload/life.c
 */
#ifndef HAK_PROCESS_MEND_H
#define HAK_PROCESS_MEND_H

#include "base/compiler.h"
#include "os/lock.h"

/* Heaps that this thread is in by a slow path that it left by a jump are lost; all of them at its
 * end. */
void hak_thread_mend_heaps(bool is_over);

/* True once a slow path was left by a jump or by cancellation: from then on slow paths block
 * signals, so that this costs the program memory a few times, not again and again. */
extern _Atomic bool hak_jumps_matter;

/* Releases the locks of a section that this thread left by a jump, and repairs what they protect,
 * losing what was free there. */
void hak_thread_mend(void);

/* The same for locks that an absent thread held; a copy of the process is the caller's own. */
void hak_mend_all(void);

/* Slow paths that are left by jumps lose what they held, so from now on they are not interrupted
 * any more. */
void hak_note_jump(void);

/* Around the start of the process. */
extern struct hak_lock hak_start_lock;

#endif
