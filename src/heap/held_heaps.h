/* SPDX-License-Identifier: MIT */
/* heap/held_heaps.h - which heaps the calling thread is in.
 *
 * Owns        struct held_heaps, one a thread.
 * Invariants  a heap is noted before its lock is acquired and forgotten after its release: a
 *             handler may see it early or late, but never miss it. Heaps are left in the order
 *             opposite to that in which they were entered; a note says what was noted before it, so
 *             forgetting is one store whatever handlers did.
 * Argument    The bad case is a handler that takes a live slow path of its own thread for one that
 *             was left by a jump. It distinguishes them by the position of the stack. So how many
 *             heaps there are and where the last was taken are one word: no handler sees the one
 *             without the other. The place of the note is written before the word, and again after
 *             it, since a handler that came before the word may have used it.
 * Threads     each its own.
 * Tests       tests/unit/heap/heaps_test.c, docs/model/lost_lock.pml
 */
#ifndef HAK_HEAP_HELD_HEAPS_H
#define HAK_HEAP_HELD_HEAPS_H

#include "base/atomic.h"
#include "base/compiler.h"

/* A thread holds two at most, one of them to take a slab from; so does each handler inside. One
 * that finds no place gets a guarded block (process/serve.c). */
#define HAK_HELD_HEAPS_MOST 4u

/* Small, since the room for static thread storage is. */
struct held_heaps {
    uintptr_t note; /* how many, and where the thread's stack was when it took the last */
    uintptr_t before[HAK_HELD_HEAPS_MOST]; /* the note before each */
    uint16_t ids[HAK_HELD_HEAPS_MOST];     /* of the heaps, from 1 on */
};
extern HAK_TLS struct held_heaps hak_held_heaps;

/* Frames are aligned to 16 bytes. */
#define HAK_HELD_HEAPS_COUNT ((uintptr_t)15)

/* The calling thread was interrupted with a heap, or has one. */
HAK_INLINE bool hak_heap_is_held(void)
{
    return hak_held_heaps.note != 0;
}

/* The calling thread has the heap with this id, or is about to. */
HAK_INLINE bool hak_heap_is_noted(uint32_t id)
{
    for (uintptr_t i = hak_held_heaps.note & HAK_HELD_HEAPS_COUNT; i > 0; i--)
        if (hak_held_heaps.ids[i - 1] == id)
            return true;
    return false;
}

/* Notes that the heap is about to be taken; the caller has noted fewer than HAK_HELD_HEAPS_MOST. */
HAK_INLINE void hak_heap_note(uint32_t id)
{
    struct held_heaps *held = &hak_held_heaps;
    uintptr_t before = held->note;
    uintptr_t at = before & HAK_HELD_HEAPS_COUNT;
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0) & ~HAK_HELD_HEAPS_COUNT;
    held->ids[at] = (uint16_t)id;
    held->before[at] = before;
    hak_compiler_fence();
    hak_word_publish(&held->note, frame | (at + 1));
    hak_compiler_fence();
    /* Again: a handler before the note may have used the place itself. */
    held->ids[at] = (uint16_t)id;
    held->before[at] = before;
    hak_compiler_fence();
}

HAK_INLINE void hak_heap_forget(uintptr_t before)
{
    hak_compiler_fence();
    hak_word_publish(&hak_held_heaps.note, before);
    hak_compiler_fence();
}

#endif
