/* SPDX-License-Identifier: MIT */
/* os/thread.h - a thread of hakmem's own that libc does not know.
 *
 * Owns        what such a thread stands on: a stack, and thread-local variables at the places where
 *             every other thread has them, all zero but for what libc keeps its guards in.
 * Invariants  made by clone(2), not by libc: libc goes on taking the process for one of a single
 *             thread if it was one, ends it with its last thread, and takes no lock when ours is
 *             made, so that it may be made anywhere. What the thread runs calls nothing of libc but
 *             plain system calls and memory functions, and never hakmem's malloc. It receives no
 *             signal, is scheduled as an ordinary thread whatever thread made it, and has no
 *             restartable sequence. Changes of user id do not reach it: it is ended before them
 *             (os/identity.h).
 * Threads     one at a time starts a given thread, which is over. The kernel clears `id` when the
 *             thread is over, and wakes the threads that wait for that: its memory may be used
 *             again then. It counts as one of the process's threads for a moment longer.
 * Tests       tests/unit/os/thread_test.c, tests/preload/ending.c
 */
#ifndef HAK_OS_THREAD_H
#define HAK_OS_THREAD_H

#include "base/atomic.h"
#include "base/compiler.h"

struct os_thread {
    _Atomic uint32_t id;      /* the kernel's; 0: over */
    _Atomic uint32_t last_id; /* the same, and stays */
    bool was_left;            /* it ran in the process that this one was copied from */
    char *area;               /* guard page, stack, thread-local variables; NULL: none yet */
    size_t area_bytes;
};

#define HAK_THREAD_STACK_BYTES (128 * (size_t)1024)

/* Runs `run` in a thread of its own; false when there can be none (also under sanitizers, which
 * know libc's threads only). `variable` is one of the thread-local variables that `run` needs: they
 * lie within 64 KiB of it, of errno, or of hak_lock_held. Keeps errno. */
bool hak_os_thread_start(struct os_thread *thread, void (*run)(void), const void *variable);

HAK_INLINE bool hak_os_thread_is_over(const struct os_thread *thread)
{
    /* acquire: partner is the kernel, which clears the word after the thread's last access */
    return hak_load_acquire(&thread->id) == 0;
}

/* Sleeps until the thread is over, `timeout_ms` at most. */
void hak_os_thread_await(const struct os_thread *thread, uint32_t timeout_ms);

/* Yields until the kernel no longer lists the thread, 100 ms at most: it counts among the process's
 * threads for a moment after it is over. */
void hak_os_thread_await_end(const struct os_thread *thread);

/* In the child of a fork: the thread is not here. */
void hak_os_thread_forget(struct os_thread *thread);

/* In the thread: its name for ps and debuggers, 15 bytes at most; the ordinary scheduling policy,
 * or a lower one that the process's first thread has, and the processors of that one, whatever its
 * maker had. */
void hak_os_thread_name(const char *name);
void hak_os_thread_be_ordinary(void);

#endif
