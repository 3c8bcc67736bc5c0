/* SPDX-License-Identifier: MIT */
/* tests/interleave/sequences.h - restartable sequences (src/heap/cpu_cache_*.S) as the checker sees
 * them: the same steps in C, in place of src/heap/cpu_cache_none.c.
 *
 * Owns        what that file defines.
 * Invariants  a sequence looks at the table of bins, reads and writes slots, and commits by one
 *             store of the header; a fence in between sends it back. Each processor has one thread.
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

/* What depends on the address that is read comes after it, as an acquire does. */
static struct bins *bins_now(void)
{
    return __atomic_load_n(&hak_bins_of[hak_here_id()], __ATOMIC_ACQUIRE);
}

static void commit(struct bin *bin, int32_t change)
{
    hak_bin_commit(bin, change);
    interleave_sequence_end();
}

struct popped hak_cpu_cache_pop(size_t scaled)
{
    SEQUENCE_BEGIN();
    struct bins *bins = bins_now();
    struct bin *bin = hak_bin_at(bins, scaled);
    void *block = hak_word_peek(&((void **)(void *)bins)[hak_word_peek(&bin->top)]);
    if (block != NULL)
        commit(bin, HAK_BIN_POPPED);
    interleave_sequence_end();
    return (struct popped){block, NULL};
}

bool hak_cpu_cache_push(size_t scaled, void *block)
{
    SEQUENCE_BEGIN();
    struct bins *bins = bins_now();
    struct bin *bin = hak_bin_at(bins, scaled);
    uint32_t top = hak_word_peek(&bin->top);
    void **slot = (void **)(void *)bins + top;
    bool is_room = top > hak_word_peek(&bin->limit) && hak_word_peek(slot) != block;
    if (is_room) {
        hak_word_publish(slot - 1, block);
        commit(bin, HAK_BIN_PUSHED);
    }
    interleave_sequence_end();
    return is_room;
}

/* These are not needed here: no bin is refilled, moved or closed. */
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
    (void)scaled, (void)bins;
    interleave_fail("a sequence that is not modelled");
}

#endif
