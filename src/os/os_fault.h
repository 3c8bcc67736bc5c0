/* SPDX-License-Identifier: MIT */
/* os/os_fault.h - makes memory system calls fail, and the machine other than it is, for tests.
 *
 * Owns        the countdown and what is faked; they work at check level 2 and are compiled
 *             away below.
 * Invariants  with hak_os_fault_every(n) each n-th memory call, or start of a thread, fails as if
 *             the kernel had refused it. A page size set before hak_os_start holds for all of
 *             hakmem, and memory calls that do not begin and end at such a page abort.
 * Threads     the counter is atomic; which thread meets the failing call is open.
 * Tests       tests/unit/os/os_test.c, tests/model/
 */
#ifndef HAK_OS_OS_FAULT_H
#define HAK_OS_OS_FAULT_H

#include "base/atomic.h"
#include "base/compiler.h"

/* Kinds of calls, for tests that let one of them fail: mmap, mprotect, madvise, mremap, clone. */
enum os_fault_kind {
    FAULT_MAP = 1,
    FAULT_PROTECT = 2,
    FAULT_ADVISE = 4,
    FAULT_MOVE = 8,
    FAULT_THREAD = 16,
};

struct os_fault {
    _Atomic uint32_t kinds; /* a set of enum os_fault_kind; 0: all */
    _Atomic uint32_t every;
    _Atomic uint32_t calls;
    _Atomic uint32_t injected;
    _Atomic uint32_t page_bytes;    /* 0: as large as the kernel's */
    _Atomic uint32_t huge_pages;    /* 0: the kernel's setting; else an enum os_huge and 1 */
    _Atomic uint32_t node_count;    /* 0: as many nodes as the machine has */
    _Atomic uint32_t node;          /* on which every thread runs, where they are faked */
    _Atomic uint32_t loses_targets; /* moves that fail lose their target, too */
    _Atomic(void (*)(void)) watch;  /* called before each such call; NULL: nobody looks */
};
extern struct os_fault hak_os_fault;

/* Each n-th memory call fails from now on; 0 switches off. */
HAK_INLINE void hak_os_fault_every(uint32_t n)
{
    hak_store_relaxed(&hak_os_fault.calls, 0);
    hak_store_relaxed(&hak_os_fault.every, n);
}

/* True when the call of that kind about to be made must fail. */
HAK_INLINE bool hak_os_fault_is_due(enum os_fault_kind kind)
{
    if (HAK_CHECK_LEVEL < 2)
        return false;
    void (*watch)(void) = hak_load_relaxed(&hak_os_fault.watch);
    if (watch != NULL)
        watch();
    uint32_t every = hak_load_relaxed(&hak_os_fault.every);
    uint32_t kinds = hak_load_relaxed(&hak_os_fault.kinds);
    if (kinds != 0 && (kinds & (uint32_t)kind) == 0)
        return false;
    if (every == 0 || (hak_fetch_add_relaxed(&hak_os_fault.calls, 1) + 1) % every != 0)
        return false;
    hak_fetch_add_relaxed(&hak_os_fault.injected, 1);
    return true;
}

#endif
