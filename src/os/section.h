/* SPDX-License-Identifier: MIT */
/* os/section.h - which locks a thread holds, and how it is protected from signals.
 *
 * Owns        a word a thread with a bit per lock, and where its outermost section began.
 * Invariants  a handler must not wait for the lock that it interrupted, and a thread that leaves a
 *             section by a jump out of a handler, or by cancellation, leaves its lock held. Neither
 *             is prevented beforehand: blocking signals takes two system calls (0.2 to 0.5 us), and
 *             of the many programs that handle signals hardly any allocates in a handler or jumps
 *             out of one. The first time is survived instead: hak_lock_is_inside tells a handler,
 *             which is served without locks (process/serve.h), and hak_lock_is_abandoned a thread
 *             that left by a jump, which repairs what it left. From then on the outermost section
 *             of every thread blocks signals, and there is no second time. The thread that jumped
 *             is found out by its next slow path, or its end; until then others wait for the lock.
 * Argument    hak_lock_held is set before a lock is had and cleared after it is given, so a handler
 *             may see it early or late but never misses a lock. The bad case is a handler that
 *             takes its own thread's live section for one left by a jump, and repairs what the
 *             thread goes on to use. It needs a frame of the section at or below the
 *             handler's. The frame is written before the bit and again after it: a handler between
 *             the two writes that ran a section of its own leaves a deeper frame behind, which is
 *             overwritten before another handler can come, unless that one comes in the same three
 *             instructions. Handlers run below what they interrupted or on a signal stack, which
 *             the kernel knows unless it is of the kind SS_AUTODISARM: where handlers use such
 *             stacks a thread without one may be on it, and nothing is taken for left. Others
 *             (coroutines switched by a handler) are told by their distance only, so a frame
 *             farther off than 1 MiB proves nothing.
 * Threads     each thread its own.
 * Tests       tests/unit/os/lock_test.c, tests/unit/process/start_test.c
 */
#ifndef HAK_OS_SECTION_H
#define HAK_OS_SECTION_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "os/copy_mark.h"
#include "os/os.h"

/* Bit r: this thread holds, or is about to hold, the lock of rank r. */
extern HAK_TLS uint32_t hak_lock_held;
/* Signals are blocked until the last lock is given. */
#define HAK_LOCK_BLOCKED (1u << 30)
/* This thread forks in a handler that interrupted it in a section: no lock was taken for it. */
#define HAK_LOCK_BLIND (1u << 29)
/* It settles a copy of the process (os/copy_mark.h). */
#define HAK_LOCK_SETTLES (1u << 28)
/* This thread forks and holds every lock, of data at rest: handlers of fork may allocate. */
#define HAK_LOCK_ALL (1u << 31)

#define HAK_LOCK_NO_RANKS (HAK_LOCK_BLOCKED | HAK_LOCK_BLIND | HAK_LOCK_SETTLES | HAK_LOCK_ALL)
/* Where on the stack this thread's outermost section began, while it lasts. */
extern HAK_TLS uintptr_t hak_lock_frame;
/* A jump goes up the stack by less than this. */
#define HAK_JUMP_BYTES_MOST ((uintptr_t)1 << 20)

/* True once signals are blocked around every section. */
extern _Atomic bool hak_lock_signals_matter;
void hak_lock_begin_blocked(void);
void hak_lock_end_blocked(void);

/* This thread holds a lock of that rank, or is about to. */
HAK_INLINE bool hak_lock_is_noted(uint32_t rank)
{
    return ((hak_lock_held >> rank) & 1u) != 0;
}

/* True in a handler of this thread's own fork. */
HAK_INLINE bool hak_lock_has_all(void)
{
    return (hak_lock_held & HAK_LOCK_ALL) != 0;
}

/* Of that rank or a higher one: in a handler, locks from there on are not available. Not while this
 * thread forks and holds them all. */
HAK_INLINE bool hak_lock_is_noted_from(uint32_t rank)
{
    return (hak_lock_held & ~HAK_LOCK_NO_RANKS) >> rank != 0 && !hak_lock_has_all();
}

/* True in a handler that interrupted its thread while that held a lock. */
HAK_INLINE bool hak_lock_is_inside(void)
{
    return hak_lock_held != 0 && !hak_lock_has_all();
}

/* The stack at `frame` has been left, by a jump: stacks grow down, and `here` is above it, or it is
 * the same function again. */
HAK_INLINE bool hak_frame_is_left_at(uintptr_t frame, uintptr_t here)
{
    return here - frame < HAK_JUMP_BYTES_MOST && !hak_os_may_be_on_signal_stack();
}

HAK_INLINE bool hak_frame_is_left(uintptr_t frame)
{
    return hak_frame_is_left_at(frame, (uintptr_t)__builtin_frame_address(0));
}

/* The section that this thread is in was left by a jump: the stack it ran on is gone. False where
 * that cannot be determined. */
HAK_INLINE bool hak_lock_is_abandoned(void)
{
    return HAK_UNLIKELY(hak_lock_is_inside()) && hak_frame_is_left(hak_lock_frame);
}

/* From now on every section blocks signals: a handler was seen inside the allocator. */
HAK_INLINE void hak_lock_note_handler(void)
{
    hak_store_relaxed(&hak_lock_signals_matter, true);
}

HAK_INLINE void hak_lock_begin(uint32_t rank)
{
    if (hak_lock_held != 0) {
        hak_lock_held |= 1u << rank;
        hak_compiler_fence();
        return;
    }
    hak_copy_look();
    if (HAK_UNLIKELY(hak_load_relaxed(&hak_lock_signals_matter)))
        hak_lock_begin_blocked();
    hak_lock_frame = (uintptr_t)__builtin_frame_address(0);
    hak_compiler_fence();
    hak_lock_held |= 1u << rank;
    hak_compiler_fence();
    hak_lock_frame = (uintptr_t)__builtin_frame_address(0);
    hak_compiler_fence();
}

HAK_INLINE void hak_lock_end(uint32_t rank)
{
    hak_compiler_fence();
    uint32_t held = hak_lock_held & ~(1u << rank);
    hak_lock_held = held;
    if (HAK_UNLIKELY(held == HAK_LOCK_BLOCKED))
        hak_lock_end_blocked();
}

/* The forking thread blocks signals, takes every lock, then says so; afterwards, in parent and
 * child, it takes that back before it gives or resets the locks. False: a handler forks that
 * interrupted a section of its own thread, and must take none until hak_lock_end_blind_fork. */
bool hak_lock_begin_fork(void);
bool hak_lock_is_fork_blind(void);
void hak_lock_end_blind_fork(void);
void hak_lock_note_all(void);
void hak_lock_forget_all(void);
/* In the child, with every lock reset: signals are as they were. */
void hak_lock_end_fork_in_child(void);

#endif
