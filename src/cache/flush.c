/* SPDX-License-Identifier: MIT */
#include "cache/flush.h"

#include "base/check.h"
#include "cache/heaps.h"
#include "harden/checks.h"
#include "policy/policy_table.h"

#include <string.h>

/* Words of bitmaps that are found again without a search. */
#define PLACES 64u

/* Blocks of one word of a slab's bitmap. */
struct run {
    struct slab *slab;
    uint64_t mask;
    uint32_t word_index;
};

struct batch {
    uint32_t count;
    uint8_t places[PLACES]; /* which run of these words came last, by a hash */
    struct run runs[HAK_FLUSH_BLOCKS_MOST];
};

static _Noreturn void report_twice(const void *block, const struct slab *slab)
{
    hak_misuse("double free", block, slab->block_bytes, "already freed by this thread");
}

/* The run of that word, empty if there was none. */
static struct run *run_of(struct batch *batch, struct slab *slab, uint32_t word_index)
{
    uintptr_t line = (uintptr_t)slab / HAK_CACHE_LINE_BYTES;
    uint8_t *place = &batch->places[((line ^ line / 64) + word_index) % PLACES];
    struct run *run = &batch->runs[*place];
    if (HAK_LIKELY(*place < batch->count && run->slab == slab && run->word_index == word_index))
        return run;
    *place = (uint8_t)batch->count;
    run = &batch->runs[batch->count++];
    *run = (struct run){.slab = slab, .word_index = word_index};
    __builtin_prefetch((void *)&slab->words[word_index], 1);
    return run;
}

static void gather(struct batch *batch, void *block, uint32_t class_index)
{
    struct slab *slab = hak_slab_at(block);
    uint32_t index;
    if (HAK_UNLIKELY(slab == NULL || slab->class_index != class_index))
        hak_misuse("double free", block, hak_size_classes[class_index].block_bytes,
                   "its slab is gone");
    if (HAK_UNLIKELY(!hak_slab_find_start(slab, block, &index) || index >= slab->block_count))
        hak_slab_index_of(slab, block, "invalid free"); /* says what is wrong with it */
    struct run *run = run_of(batch, slab, index / 64);
    uint64_t bit = 1ull << (index % 64);
    if (HAK_UNLIKELY(run->mask & bit))
        report_twice(block, slab);
    run->mask |= bit;
}

static struct heap *heap_of(const struct run *run)
{
    /* acquire: partner is the release in hak_heap_receive */
    return hak_heap_of(hak_load_acquire(&run->slab->owner));
}

static void publish(const struct run *run, struct stat_block *stats)
{
    hak_stat_add(stats, remote_publishes, 1);
    hak_stat_add(stats, remote_blocks, hak_bit_count(run->mask));
    hak_remote_publish(run->slab, run->word_index, run->mask);
}

/* Brings all runs of one heap home; the others stay in the batch. */
static void send_some(struct batch *batch, struct stat_block *stats)
{
    struct heap *heap = heap_of(&batch->runs[0]);
    bool is_entered = !heap->owner.is_private && hak_heap_try_enter(heap);
    uint32_t left = 0;
    for (uint32_t i = 0; i < batch->count; i++) {
        struct run *run = &batch->runs[i];
        if (!is_entered && (i == 0 || heap_of(run) == heap))
            publish(run, stats);
        else if (is_entered && heap_of(run) == heap)
            hak_heap_give_word(heap, run->slab, run->word_index, run->mask);
        else
            batch->runs[left++] = *run;
    }
    if (is_entered)
        hak_heap_leave(heap);
    batch->count = left;
}

void hak_flush(void *const *blocks, uint32_t count, uint32_t class_index, struct stat_block *stats)
{
    struct batch batch;
    batch.count = 0;
    memset(batch.places, 0, sizeof batch.places);
    hak_assert(count <= HAK_FLUSH_BLOCKS_MOST);
    for (uint32_t i = 0; i < count; i++)
        gather(&batch, blocks[i], class_index);
    while (batch.count != 0)
        send_some(&batch, stats);
}

void hak_flush_one(struct slab *slab, void *block)
{
    uint32_t index = hak_slab_index_of(slab, block, "invalid free");
    /* acquire: as in heap_of */
    struct heap *heap = hak_heap_of(hak_load_acquire(&slab->owner));
    if (!heap->owner.is_private && hak_heap_try_enter(heap)) {
        bool is_its = hak_load_relaxed(&slab->owner) == &heap->owner;
        if (is_its)
            hak_heap_give(heap, slab, block);
        hak_heap_leave(heap);
        if (is_its)
            return;
    }
    hak_remote_publish(slab, index / 64, 1ull << (index % 64));
}

/* What one heap's cache of spans may hold: a share of the most large blocks that there ever were. */
static size_t spans_most(void)
{
    size_t share =
        hak_large_peak_bytes() / 100 * hak_policy_read(span_cache_percent) / (hak_heap_count() + 1);
    return hak_least(share, hak_policy_read(span_cache_bytes));
}

void hak_flush_large(void *block)
{
    struct span *span = hak_large_end(block);
    struct heap *heap = hak_heap_near();
    if (heap == NULL || !hak_large_may_keep(span) || !hak_heap_try_enter(heap)) {
        hak_large_give_up(span);
        return;
    }
    hak_large_keep(&heap->spans, span, spans_most());
    hak_heap_leave(heap);
}
