/* SPDX-License-Identifier: MIT */
/* tests/interleave/sequences.h - restartable sequences (src/heap/cpu_cache_*.S) as the checker sees
 * them: the same steps in C, in place of src/heap/cpu_cache_none.c.
 *
 * Owns        what that file defines.
 * Invariants  a sequence looks at the table of bins, reads and writes slots, and commits by one
 *             store of the header; a fence in between sends it back, and so does a sequence of
 *             another thread on its processor, which comes after all that was done there before.
 * Threads     fibres.
 * Tests       tests/interleave/drain_interleave.c
 */
#ifndef TESTS_INTERLEAVE_SEQUENCES_H
#define TESTS_INTERLEAVE_SEQUENCES_H

#include "heap/bins.h"
#include "heap/cpu_cache.h"
#include "heap/slot.h"
#include "interleave.h"

const bool hak_has_cpu_caches = true;
const uint32_t hak_hot_size_step = 8;
uint8_t hak_hot_sizes[1];
struct bins *hak_bins_of[HAK_ID_CLOSED + 1] = {[HAK_ID_CLOSED] = (struct bins *)&hak_bins_closed};

/* By processor: the thread that was in a sequence there last; 0: none that is still there. Only
 * changed, never stored, so that each reads the newest, as the kernel knows it. */
static _Atomic uint32_t runner[2];
/* Where the thread goes on that has closed a bin; NULL: where it is. */
static struct rseq_area *moves_to;

/* The first step of a sequence. What depends on the address that is read comes after it, as an
 * acquire does. */
static struct bins *bins_now(void)
{
    uint32_t before = atomic_exchange(&runner[hak_here_id()], interleave_self());
    if (before != 0 && before != interleave_self())
        interleave_preempt(before);
    return __atomic_load_n(&hak_bins_of[hak_here_id()], __ATOMIC_ACQUIRE);
}

/* The same of slots and the top that leads to them. */
static uint32_t top_of(const struct bin *bin)
{
    return __atomic_load_n(&bin->top, __ATOMIC_ACQUIRE);
}

static void move(void)
{
    uint32_t me = interleave_self();
    atomic_compare_exchange_strong(&runner[hak_here_id()], &me, 0);
    hak_here = moves_to;
}

struct popped hak_cpu_cache_pop(size_t scaled)
{
    SEQUENCE_BEGIN();
    struct bins *bins = bins_now();
    struct bin *bin = hak_bin_at(bins, scaled);
    void *block = hak_word_peek(&((void **)(void *)bins)[top_of(bin)]);
    if (block != NULL)
        hak_bin_commit(bin, HAK_BIN_POPPED);
    interleave_sequence_end();
    return (struct popped){block, NULL};
}

bool hak_cpu_cache_push(size_t scaled, void *block)
{
    SEQUENCE_BEGIN();
    struct bins *bins = bins_now();
    struct bin *bin = hak_bin_at(bins, scaled);
    uint32_t *word = (uint32_t *)(void *)bin;
    uint32_t seen = __atomic_load_n(word, __ATOMIC_ACQUIRE), top = seen & 0xffff;
    void **slot = (void **)(void *)bins + top;
    bool is_room = top > hak_word_peek(&bin->limit) && hak_word_peek(slot) != block;
    if (is_room) {
        hak_word_publish(slot - 1, block);
        hak_word_publish(word, seen + (uint32_t)HAK_BIN_PUSHED);
    }
    interleave_sequence_end();
    return is_room;
}

/* These are not needed here: no bin is refilled, and none is noted. */
uint32_t hak_cpu_cache_pop_some(size_t scaled, void **blocks, uint32_t most)
{
    (void)scaled, (void)blocks, (void)most;
    interleave_fail("a sequence that is not modelled");
}

uint32_t hak_cpu_cache_push_some(size_t scaled, void *const *blocks, uint32_t count)
{
    (void)scaled, (void)blocks, (void)count;
    interleave_fail("a sequence that is not modelled");
}

uint32_t hak_cpu_cache_lower(size_t scaled, struct bins *bins, uint32_t countdown)
{
    (void)scaled, (void)bins, (void)countdown;
    interleave_fail("a sequence that is not modelled");
}

uint32_t hak_cpu_cache_close(size_t scaled, struct bins *bins)
{
    SEQUENCE_BEGIN();
    uint64_t top = 0;
    if (bins_now() == bins) {
        uint64_t *header = (uint64_t *)(void *)hak_bin_at(bins, scaled);
        uint64_t open = hak_word_peek(header);
        top = open & 0xffff;
        if (top != 0)
            hak_word_publish(header, (open & 0xffff0000) | top << 48);
    }
    interleave_sequence_end();
    if (top != 0 && moves_to != NULL)
        move();
    return (uint32_t)top;
}

#endif
