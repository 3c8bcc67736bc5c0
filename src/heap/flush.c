/* SPDX-License-Identifier: MIT */
#include "heap/flush.h"

#include "base/check.h"
#include "heap/heaps.h"
#include "misuse/report.h"
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
    hak_misuse("double free", block, slab->block_bytes, "already free");
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

/* The slab of a block that was put into a bin of the class. It is in use for as long as nobody else
 * frees the block, too. */
static struct slab *slab_of(const void *block, uint32_t class_index)
{
    struct slab *slab = hak_slab_at(block);
    if (HAK_UNLIKELY(slab == NULL || slab->class_index != class_index))
        hak_misuse("double free", block, hak_size_classes[class_index].block_bytes,
                   "its slab is gone");
    return slab;
}

/* Gathers the first blocks of those that share a word of one slab's bitmap; returns how many.
 * Blocks that were allocated together come back together: most need no look at their slab. */
static uint32_t gather(struct batch *batch, void *const *blocks, uint32_t count,
                       uint32_t class_index)
{
    struct slab *slab = slab_of(blocks[0], class_index);
    const struct slab shape = {
        .start = slab->start, .reciprocal = slab->reciprocal, .block_bytes = slab->block_bytes};
    uint32_t index;
    if (HAK_UNLIKELY(!hak_slab_find_start(&shape, blocks[0], &index) || index >= slab->block_count))
        hak_slab_index_of(slab, blocks[0], "invalid free"); /* says what is wrong with it */
    uint32_t first = index & ~63u;
    uint32_t limit = (uint32_t)hak_least(64, slab->block_count - first);
    uint32_t at = 0;
    uint64_t mask = 0;
    do {
        uint64_t bit = 1ull << (index - first);
        if (HAK_UNLIKELY(mask & bit))
            report_twice(blocks[at], slab);
        mask |= bit;
        at++;
    } while (at < count && hak_slab_find_start(&shape, blocks[at], &index) &&
             index - first < limit);
    struct run *run = run_of(batch, slab, first / 64);
    if (HAK_UNLIKELY(run->mask & mask))
        report_twice(blocks[0], slab);
    run->mask |= mask;
    return at;
}

static struct heap *heap_of(const struct run *run)
{
    /* acquire: partner is the release in hak_heap_receive */
    return hak_heap_of(hak_load_acquire(&run->slab->owner));
}

/* A handler that interrupted its thread with a lock must not need what an emptied slab does. */
static bool try_enter(struct heap *heap)
{
    return !heap->owner.is_private && HAK_LIKELY(!hak_lock_is_inside()) && hak_heap_try_enter(heap);
}

static void publish(const struct run *run, struct stat_block *stats)
{
    hak_stat_add_shared(stats, remote_publishes, 1);
    hak_stat_add_shared(stats, remote_blocks, hak_bit_count(run->mask));
    hak_remote_publish(run->slab, run->word_index, run->mask);
}

/* The heap is entered. */
static void give(struct heap *heap, const struct run *run, bool is_last_of_slab)
{
    hak_slab_give_word(run->slab, run->word_index, run->mask);
    hak_use_note(heap->owner.use, run->slab->class_index, -(int64_t)hak_bit_count(run->mask));
    if (is_last_of_slab)
        hak_heap_settle(heap, run->slab);
}

/* Brings all runs of one heap home; the others stay in the batch. */
static void send_some(struct batch *batch, struct stat_block *stats)
{
    struct heap *heap = heap_of(&batch->runs[0]);
    bool is_entered = try_enter(heap);
    uint32_t left = 0;
    for (uint32_t i = 0; i < batch->count; i++) {
        struct run *run = &batch->runs[i];
        bool is_last_of_slab = i + 1 == batch->count || run[1].slab != run->slab;
        if (!is_entered && (i == 0 || heap_of(run) == heap))
            publish(run, stats);
        else if (is_entered && heap_of(run) == heap)
            give(heap, run, is_last_of_slab);
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
    for (uint32_t at = 0; at < count;)
        at += gather(&batch, blocks + at, count - at, class_index);
    while (batch.count != 0)
        send_some(&batch, stats);
}

void hak_flush_one(struct slab *slab, void *block)
{
    uint32_t index = hak_slab_index_of(slab, block, "invalid free");
    /* acquire: as in heap_of */
    struct heap *heap = hak_heap_of(hak_load_acquire(&slab->owner));
    if (try_enter(heap)) {
        bool is_its = hak_load_relaxed(&slab->owner) == &heap->owner;
        if (is_its)
            hak_heap_give(heap, slab, block);
        hak_heap_leave(heap);
        if (is_its)
            return;
    }
    hak_remote_publish(slab, index / 64, 1ull << (index % 64));
}

/* What one heap's cache of spans may hold: a share of the most large blocks ever. */
static size_t spans_most(void)
{
    size_t share =
        hak_large_peak_bytes() / 100 * hak_policy_read(span_cache_percent) / (hak_heap_count() + 1);
    return hak_least(share, hak_policy_read(span_cache_bytes));
}

/* The processor's heap, made if there is none yet; NULL: somebody is inside. */
static struct heap *enter_near(void)
{
    struct heap *heap = hak_heap_near();
    if (heap == NULL)
        return hak_lock_is_inside() ? NULL : hak_heap_enter();
    return try_enter(heap) ? heap : NULL;
}

void hak_flush_large(void *block)
{
    struct span *span = hak_large_end(block);
    struct heap *heap = hak_large_may_keep(span) ? enter_near() : NULL;
    if (heap == NULL) {
        hak_large_give_up(span);
        return;
    }
    hak_large_keep(&heap->spans, span, spans_most());
    hak_heap_leave(heap);
}
