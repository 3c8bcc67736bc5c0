/* SPDX-License-Identifier: MIT */
/* os/lock_word.h - the word of a lock: free, or the id of its holder.
 *
 * Owns        the format of the word, and the calling thread's own word.
 * Invariants  the format is that of a futex with priority inheritance (futex(2), FUTEX_LOCK_PI):
 *             the kernel's id of the holder in the low 30 bits, HAK_WORD_INHERITS set while waiters
 *             lend the holder their priority. Ids end below 2^22. A thread whose id is not known
 *             has a word above all ids instead: one that was made after the process was confined,
 *             and a child of vfork, which lives on its parent's thread-local variables. The kernel
 *             finds no such thread, and nothing is lent.
 *             In a child of fork the forking thread has another id: between hak_word_begin_copy
 *             and hak_word_end_copy locks that it holds are known by the former one.
 * Threads     each its own.
 * Tests       tests/unit/os/lock_test.c, tests/preload/real_time.c
 */
#ifndef HAK_OS_LOCK_WORD_H
#define HAK_OS_LOCK_WORD_H

#include "base/atomic.h"
#include "base/compiler.h"

#define HAK_WORD_ID 0x3fffffffu
#define HAK_WORD_NO_ID 0x20000000u /* with bits of an address: the id is not known */
/* Threads sleep until the lock is given. To the kernel this bit says that the owner died; it keeps
 * or drops the bit, and reads it only where it finds no owner. */
#define HAK_WORD_SLEEPS 0x40000000u
/* FUTEX_WAITERS: only the kernel may give the lock away. */
#define HAK_WORD_INHERITS 0x80000000u

/* The calling thread's word, and the one that it had before it copied the process; 0: none yet. */
extern HAK_TLS uint32_t hak_word_own;
extern HAK_TLS uint32_t hak_word_former;
uint32_t hak_word_find(void);

HAK_INLINE uint32_t hak_word_self(void)
{
    uint32_t word = hak_word_own;
    return HAK_LIKELY(word != 0) ? word : hak_word_find();
}

/* The word of a thread whose thread-local variables lie there, without an id. They lie 64 bytes
 * apart at least, and within 2^35 bytes no two have the same word. */
HAK_INLINE uint32_t hak_word_of(uintptr_t address)
{
    return HAK_WORD_NO_ID | ((uint32_t)(address >> 6) & (HAK_WORD_NO_ID - 1));
}

/* True when `word` names the calling thread. */
HAK_INLINE bool hak_word_is_own(uint32_t word)
{
    uint32_t id = word & HAK_WORD_ID;
    return id != 0 && (id == hak_word_own || id == hak_word_former);
}

/* The calling thread, which holds no lock, has its id for a word from now on. */
void hak_word_name_thread(void);

/* In a copy of the process, by the thread that made it, before and after the locks are seen to. */
void hak_word_begin_copy(void);
void hak_word_end_copy(void);

#endif
