/* SPDX-License-Identifier: MIT */
/* base/atomic.h - short names for C11 atomics with their order spelled out.
 *
 * Owns        nothing.
 * Invariants  there is no default order: each use says what it needs, and its comment names the
 *             partner.
 * Tests       used by every race test
 */
#ifndef HAK_BASE_ATOMIC_H
#define HAK_BASE_ATOMIC_H

#include "base/compiler.h"

#include <stdatomic.h>

#define hak_load_relaxed(pointer) atomic_load_explicit((pointer), memory_order_relaxed)
#define hak_load_acquire(pointer) atomic_load_explicit((pointer), memory_order_acquire)
#define hak_store_relaxed(pointer, value)                                                          \
    atomic_store_explicit((pointer), (value), memory_order_relaxed)
#define hak_store_release(pointer, value)                                                          \
    atomic_store_explicit((pointer), (value), memory_order_release)
#define hak_fetch_add_relaxed(pointer, value)                                                      \
    atomic_fetch_add_explicit((pointer), (value), memory_order_relaxed)
#define hak_fetch_sub_relaxed(pointer, value)                                                      \
    atomic_fetch_sub_explicit((pointer), (value), memory_order_relaxed)
#define hak_fetch_or_relaxed(pointer, value)                                                       \
    atomic_fetch_or_explicit((pointer), (value), memory_order_relaxed)
#define hak_fetch_and_relaxed(pointer, value)                                                      \
    atomic_fetch_and_explicit((pointer), (value), memory_order_relaxed)
#define hak_fetch_add_acq_rel(pointer, value)                                                      \
    atomic_fetch_add_explicit((pointer), (value), memory_order_acq_rel)
#define hak_fetch_sub_acq_rel(pointer, value)                                                      \
    atomic_fetch_sub_explicit((pointer), (value), memory_order_acq_rel)
#define hak_fetch_or_release(pointer, value)                                                       \
    atomic_fetch_or_explicit((pointer), (value), memory_order_release)
#define hak_exchange_relaxed(pointer, value)                                                       \
    atomic_exchange_explicit((pointer), (value), memory_order_relaxed)
#define hak_exchange_acquire(pointer, value)                                                       \
    atomic_exchange_explicit((pointer), (value), memory_order_acquire)
#define hak_exchange_acq_rel(pointer, value)                                                       \
    atomic_exchange_explicit((pointer), (value), memory_order_acq_rel)
#define hak_exchange_release(pointer, value)                                                       \
    atomic_exchange_explicit((pointer), (value), memory_order_release)
#define hak_cas_relaxed(pointer, expected, desired)                                                \
    atomic_compare_exchange_strong_explicit((pointer), (expected), (desired),                      \
                                            memory_order_relaxed, memory_order_relaxed)
#define hak_cas_acquire(pointer, expected, desired)                                                \
    atomic_compare_exchange_strong_explicit((pointer), (expected), (desired),                      \
                                            memory_order_acquire, memory_order_relaxed)
#define hak_cas_release(pointer, expected, desired)                                                \
    atomic_compare_exchange_weak_explicit((pointer), (expected), (desired), memory_order_release,  \
                                          memory_order_relaxed)

/* Where each of two threads writes a word and then reads the other one's, one of them finds what
 * the other wrote: by a full fence in between, or by both operations of this order. */
#define hak_load_seq_cst(pointer) atomic_load_explicit((pointer), memory_order_seq_cst)
#define hak_fetch_add_seq_cst(pointer, value)                                                      \
    atomic_fetch_add_explicit((pointer), (value), memory_order_seq_cst)
#define hak_fence_full() atomic_thread_fence(memory_order_seq_cst)

/* A flag that one thread at a time has; false: another one has it. Taking it is acquire, giving it
 * back release: partners. */
HAK_INLINE bool hak_flag_take(_Atomic uint32_t *flag)
{
    uint32_t expected = 0;
    return hak_cas_acquire(flag, &expected, 1);
}

HAK_INLINE void hak_flag_give(_Atomic uint32_t *flag)
{
    hak_store_release(flag, 0);
}

/* A word that its owner alone writes, and others read without a lock: the owner's own loads stay
 * plain, only its stores and the others' loads are atomic. */
#define hak_word_publish(pointer, value) __atomic_store_n((pointer), (value), __ATOMIC_RELAXED)
#define hak_word_peek(pointer) __atomic_load_n((pointer), __ATOMIC_RELAXED)

/* A counter that one thread writes and others read: no read-modify-write. */
#define hak_counter_add(pointer, value)                                                            \
    hak_store_relaxed((pointer), hak_load_relaxed(pointer) + (value))

/* A counter of one processor, by threads that run on it: one instruction, which an interruption
 * cannot divide, and no locked one, which would wait for all stores before it. An addition is lost
 * where a thread that was moved to another processor meanwhile meets another one's in the same
 * nanoseconds. */
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define hak_counter_add_here(pointer, value)                                                       \
    __asm__("addq %1, %0" : "+m"(*(pointer)) : "r"(value) : "cc")
#else
#define hak_counter_add_here(pointer, value) hak_counter_add((pointer), (value))
#endif

#endif
