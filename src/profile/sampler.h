/* SPDX-License-Identifier: MIT */
/* profile/sampler.h - the life of a sampled block, from its request to its end.
 *
 * Owns        the heap that small samples come from.
 * Invariants  heap/draw.h says which requests are samples. One for a size class is served from a
 *             heap of hakmem's own (heap/private_heap.h), with a block of the same class: its tag
 *             sends each free to the slow path, where the sample's end is recorded. Where the free
 *             is slow anyway, an ordinary block is only noted: above 128 KiB, and in hardened mode.
 *                 hot path        the popped block goes back into its bin, or home, and counts as
 *                                 not popped
 *                 realloc         in place below 128 KiB it is the same life, of another size; else
 *                                 one ends and another may begin, by the new size
 *                 usable size     that of the class
 *                 memalign, new   as malloc
 *                 hakmem_heap     its blocks are only noted, as their free is slow anyway; what
 *                                 lives when the heap is destroyed ends then
 *                 zero size       counts as one byte
 *                 guard pages     a sample is not guarded, and a guarded block is no sample
 *                 limits, census  samples are live blocks of slabs as all others, in another heap
 *                 trim            sweeps that heap as those of the program
 *                 fork            the child has its parent's samples, and ends them as its own;
 *                                 a heap that somebody was inside is closed there: no sample, then,
 *                                 is followed to its end
 *             What cannot be followed to its end - out of memory, in a handler that interrupted
 *             hakmem, no room - is an ordinary block, counted as allocated and freed at once.
 * Threads     any, signal handlers too.
 * Tests       tests/unit/profile/sampler_test.c, tests/preload/profile.c
 */
#ifndef HAK_PROFILE_SAMPLER_H
#define HAK_PROFILE_SAMPLER_H

#include "heap/draw.h"
#include "os/frames.h"
#include "profile/live.h"

/* A request that was drawn. */
struct sampled_request {
    size_t bytes;
    uint64_t weight; /* how many it stands for */
    struct os_caller caller;
    const void *heap; /* the program's heap that serves it; NULL: none */
};

/* A block of the class for it, zero if wished; NULL: an ordinary one will do, and is counted. */
void *hak_sampler_take(const struct sampled_request *request, uint32_t class_index, bool is_zero);

/* The request was served with this block, whose free is slow. */
void hak_sampler_note(const struct sampled_request *request, const void *block);

/* From the first sample on; before it there is no sample that could end. */
extern _Atomic bool hak_sampler_has_begun;
HAK_INLINE bool hak_sampler_watches(void)
{
    /* relaxed: a thread that has a sampled block has met the thread that got it */
    return HAK_UNLIKELY(hak_load_relaxed(&hak_sampler_has_begun));
}

/* The block is about to be freed: ends its life, if it is a sample. */
void hak_sampler_end(const void *block);

/* The program's heap is about to be destroyed: ends the lives of its samples. */
void hak_sampler_end_heap(const void *heap);

/* The block has another size, as its program sees it: so has its sample, if it is one. */
void hak_sampler_resize(const void *block, size_t bytes);

/* Around a change of size that may move a block: its sample is taken away, false: it is none; and
 * comes back where nothing changed, or ends. */
bool hak_sampler_lift(const void *block, struct live_sample *sample);
void hak_sampler_put_back(const void *block, const struct live_sample *sample);
void hak_sampler_end_lifted(const struct live_sample *sample);

#endif
