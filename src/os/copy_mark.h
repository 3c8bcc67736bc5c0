/* SPDX-License-Identifier: MIT */
/* os/copy_mark.h - how a process detects that it is a copy of another one.
 *
 * Owns        struct copy_mark, on a page that the kernel clears in every copy of the address space
 *             (MADV_WIPEONFORK, Linux 4.14): by fork, by _Fork, by clone without CLONE_VM.
 * Invariants  `state` is COPY_SETTLED except in a copy, until one of its threads has repaired what
 *             absent threads left half done. The child of a vfork shares the page, and is no copy:
 *             a process id would not tell the two apart. Where the kernel does not clear pages only
 *             fork(3) is detected, by its handlers.
 * Argument    Several threads of a copy may arrive together: one exchanges UNNOTICED for SETTLING,
 *             the others sleep until it is done. Its signals are blocked meanwhile, so no handler
 *             of its own can wait for it. A copy that is made while another thread settles finds
 *             the page cleared again and starts anew: each step can be repeated. The kernel makes
 *             the copy while no page fault of the process is served and no mapping changes: a
 *             thread stops at its first store to a page that the copy has already, and all it
 *             stored before is in the copy. So to the copy each other thread has stopped between
 *             two instructions, and what was visible to one of them is visible to the copy.
 * Threads     any, signal handlers too.
 * Tests       tests/unit/os/copy_mark_test.c, tests/preload/raw_fork.c
 */
#ifndef HAK_OS_COPY_MARK_H
#define HAK_OS_COPY_MARK_H

#include "base/atomic.h"
#include "base/compiler.h"

enum copy_state { COPY_UNNOTICED, COPY_SETTLED, COPY_SETTLING };

/* All of it is 0 in a copy. */
struct copy_mark {
    _Atomic uint32_t state;              /* enum copy_state */
    _Atomic uint32_t is_printing;        /* the buffer for statistics is in use */
    _Atomic uint32_t is_looking;         /* a thread checks for a request (control/control.h) */
    _Atomic uint32_t is_writing_profile; /* a thread writes, profile/output.h */
    _Atomic uint64_t next_look_ms;
    _Atomic uint64_t shown_until_ms; /* numbers are shown on request (stats/writer.h) */
};
extern struct copy_mark *hak_copy_mark;

/* Maps the page; `settle` is called once in each copy that notices. Before other threads exist. */
void hak_copy_mark_start(void (*settle)(void));

/* This process is a copy that has not been settled yet. */
HAK_INLINE bool hak_copy_is_unnoticed(void)
{
    /* relaxed: a thread that finds it settled by another one has met that one under a lock, or has
     * nothing to do with what it changed */
    return HAK_UNLIKELY(hak_load_relaxed(&hak_copy_mark->state) != COPY_SETTLED);
}

/* Returns with the copy settled. No lock may be taken before, nor awaited. */
void hak_copy_notice(void);

HAK_INLINE void hak_copy_look(void)
{
    if (hak_copy_is_unnoticed())
        hak_copy_notice();
}

/* In the child of fork(3), whose handlers do without being told by the page: clears it where the
 * kernel did not; then says that all is settled. */
void hak_copy_mark_clear(void);
void hak_copy_mark_settled(void);

#endif
