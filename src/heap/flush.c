/* SPDX-License-Identifier: MIT */
#include "heap/flush.h"

#include "base/check.h"
#include "heap/heaps.h"
#include "heap/neighbours.h"
#include "misuse/report.h"
#include "policy/policy_table.h"
#include "slab/slab_give.h"

/* Blocks of one word of a slab's bitmap. */
struct run {
    struct slab *slab;
    uint64_t mask;
    uint32_t word_index;
    uint32_t count;
};

static _Noreturn HAK_NOINLINE void report_twice(const void *block, uint32_t class_index)
{
    hak_misuse("double free", block, hak_size_classes[class_index].block_bytes, "already free");
}

/* No block of the class starts there. */
static HAK_NOINLINE void report_stray(const void *block, uint32_t class_index)
{
    struct slab *slab = hak_slab_at(block);
    if (slab == NULL || slab->class_index != class_index)
        hak_misuse("double free", block, hak_size_classes[class_index].block_bytes,
                   "its slab is gone");
    hak_slab_index_of(slab, block, "invalid free");
}

/* The slab of a block that was put into a bin of the class. It is in use for as long as nobody else
 * frees the block, too. */
HAK_INLINE struct slab *slab_of(const void *block, uint32_t class_index)
{
    uint32_t granule = hak_granule_of(block);
    if (HAK_UNLIKELY(hak_tag_read(granule) != hak_tag_of(class_index)))
        report_stray(block, class_index);
    return hak_owner_read(granule);
}

/* A block's slab and its index there. */
HAK_INLINE struct slab *find(const void *block, uint32_t class_index, uint32_t *index)
{
    const struct size_class *shape = &hak_size_classes[class_index];
    struct slab *slab = slab_of(block, class_index);
    size_t offset = (uintptr_t)block - slab->start;
    *index = hak_block_index(shape->reciprocal, offset);
    if (HAK_UNLIKELY((size_t)*index * shape->block_bytes != offset || *index >= slab->block_count))
        report_stray(block, class_index);
    return slab;
}

/* What the free of these blocks will write is fetched meanwhile. */
HAK_INLINE void fetch(struct slab *slab, uint32_t word_index)
{
    __builtin_prefetch((void *)&slab->words[word_index], 1);
    __builtin_prefetch(&slab->used, 1);
}

/* Gathers blocks that follow each other and share a word of one slab's bitmap. Where the next block
 * is of the same slab, that is not looked up. Returns the end of the runs. */
static struct run *gather(void *const *blocks, uint32_t count, uint32_t class_index,
                          struct run *runs)
{
    const struct size_class *shape = &hak_size_classes[class_index];
    const uint64_t reciprocal = shape->reciprocal;
    const size_t block_bytes = shape->block_bytes;
    const size_t slab_bytes = shape->block_count * block_bytes;
    struct run run = {NULL, 0, 0, 0};
    uintptr_t start = UINTPTR_MAX; /* of the run's slab */
    for (uint32_t i = 0; i < count; i++) {
        struct slab *slab = run.slab;
        size_t offset = (uintptr_t)blocks[i] - start;
        uint32_t index = hak_block_index(reciprocal, offset);
        if (offset >= slab_bytes || index * block_bytes != offset) {
            slab = find(blocks[i], class_index, &index);
            start = slab->start;
        }
        uint64_t bit = 1ull << (index % 64);
        if (slab == run.slab && index / 64 == run.word_index) {
            if (HAK_UNLIKELY((run.mask & bit) != 0))
                report_twice(blocks[i], class_index);
            run.mask |= bit;
            run.count++;
            continue;
        }
        fetch(slab, index / 64);
        if (run.count != 0)
            *runs++ = run;
        run = (struct run){slab, bit, index / 64, 1};
    }
    if (run.count != 0)
        *runs++ = run;
    return runs;
}

/* The same for blocks that are mostly neighbours. */
static struct run *gather_neighbours(void *const *blocks, uint32_t count, uint32_t class_index,
                                     struct run *run)
{
    const struct size_class *shape = &hak_size_classes[class_index];
    for (uint32_t length; count > 0; run++, blocks += length, count -= length) {
        uint32_t index;
        bool is_falling;
        struct slab *slab = find(*blocks, class_index, &index);
        fetch(slab, index / 64);
        length =
            hak_neighbours(blocks, (uint32_t)hak_least(count, 64), shape->block_bytes, &is_falling);
        uint32_t in_word = is_falling ? index % 64 + 1 : 64 - index % 64;
        if (!is_falling)
            in_word = (uint32_t)hak_least(in_word, slab->block_count - index);
        length = (uint32_t)hak_least(length, in_word);
        uint32_t lowest = is_falling ? index - (length - 1) : index;
        *run = (struct run){slab, hak_bit_low_mask(length) << (lowest % 64), index / 64, length};
    }
    return run;
}

static struct heap *heap_of(const struct slab *slab)
{
    /* acquire: partner is the release in hak_heap_receive */
    return hak_heap_of(hak_load_acquire(&slab->owner));
}

/* A handler that interrupted its thread with a lock must not need what an emptied slab does. */
static bool try_enter(struct heap *heap)
{
    return !heap->owner.is_private && HAK_LIKELY(!hak_lock_is_inside()) && hak_heap_try_enter(heap);
}

/* Frees the runs of one heap, which is entered; the others stay. Returns how many do. Blocks of one
 * class that follow each other are counted at once. */
static uint32_t give(struct heap *heap, struct run *runs, uint32_t count)
{
    uint32_t left = 0, freed = 0, class_index = runs->slab->class_index;
    for (const struct run *run = runs; run != runs + count; run++) {
        struct slab *slab = run->slab;
        /* relaxed: under the lock of its heap it does not change */
        if (HAK_UNLIKELY(hak_load_relaxed(&slab->owner) != &heap->owner)) {
            runs[left++] = *run;
            continue;
        }
        hak_slab_give_word(slab, run->word_index, run->mask, run->count);
        if (HAK_UNLIKELY(slab->class_index != class_index)) {
            hak_use_note(heap->owner.use, class_index, -(int64_t)freed);
            class_index = slab->class_index;
            freed = 0;
        }
        freed += run->count;
        if (HAK_UNLIKELY(!hak_heap_is_settled(slab)))
            hak_heap_settle(heap, slab);
    }
    hak_use_note(heap->owner.use, class_index, -(int64_t)freed);
    return left;
}

/* Publishes the runs of one heap, which is busy; as above. */
static uint32_t publish(const struct heap *heap, struct run *runs, uint32_t count,
                        struct stat_block *stats)
{
    uint32_t left = 0, blocks = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (i != 0 && heap_of(runs[i].slab) != heap) {
            runs[left++] = runs[i];
            continue;
        }
        blocks += runs[i].count;
        hak_remote_publish(runs[i].slab, runs[i].word_index, runs[i].mask);
    }
    hak_stat_add_shared(stats, remote_publishes, count - left);
    hak_stat_add_shared(stats, remote_blocks, blocks);
    return left;
}

static void flush_runs(struct run *runs, uint32_t run_count, struct stat_block *stats)
{
    while (run_count != 0) {
        struct heap *heap = heap_of(runs[0].slab);
        if (HAK_LIKELY(try_enter(heap))) {
            run_count = give(heap, runs, run_count);
            hak_heap_leave(heap);
        } else {
            run_count = publish(heap, runs, run_count, stats);
        }
    }
}

void hak_flush(void *const *blocks, uint32_t count, uint32_t class_index, struct stat_block *stats)
{
    struct run runs[HAK_FLUSH_BLOCKS_MOST];
    hak_assert(count <= HAK_FLUSH_BLOCKS_MOST);
    const struct run *end = gather(blocks, count, class_index, runs);
    flush_runs(runs, (uint32_t)(end - runs), stats);
}

void hak_flush_neighbours(void *const *blocks, uint32_t count, uint32_t class_index,
                          struct stat_block *stats)
{
    struct run runs[HAK_FLUSH_BLOCKS_MOST];
    hak_assert(count <= HAK_FLUSH_BLOCKS_MOST);
    const struct run *end = gather_neighbours(blocks, count, class_index, runs);
    flush_runs(runs, (uint32_t)(end - runs), stats);
}

void hak_flush_mixed(void *const *blocks, uint32_t count, struct stat_block *stats)
{
    struct run runs[HAK_FLUSH_BLOCKS_MOST];
    hak_assert(count <= HAK_FLUSH_BLOCKS_MOST);
    for (uint32_t i = 0; i < count; i++) {
        struct slab *slab = hak_owner_read(hak_granule_of(blocks[i]));
        uint32_t index = hak_block_index(slab->reciprocal, (uintptr_t)blocks[i] - slab->start);
        runs[i] = (struct run){slab, 1ull << (index % 64), index / 64, 1};
    }
    flush_runs(runs, count, stats);
}

/* Of blocks in the caller's hands the bits are stable, whoever holds the heap: they are in use. */
static HAK_RACY void check(const struct run *run)
{
    hak_slab_check_word(run->slab, run->word_index, run->mask);
}

void hak_flush_check(void *const *blocks, uint32_t count, uint32_t class_index)
{
    struct run runs[HAK_FLUSH_BLOCKS_MOST];
    for (uint32_t n; count > 0; blocks += n, count -= n) {
        n = (uint32_t)hak_least(count, HAK_FLUSH_BLOCKS_MOST);
        const struct run *end = gather(blocks, n, class_index, runs);
        for (const struct run *run = runs; run != end; run++)
            check(run);
    }
}

void hak_flush_one(struct slab *slab, void *block)
{
    uint32_t index = hak_slab_index_of(slab, block, "invalid free");
    struct heap *heap = heap_of(slab);
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

void hak_flush_large(void *block)
{
    struct span *span = hak_large_end(block);
    struct heap *heap = hak_large_may_keep(span) ? hak_heap_try_near() : NULL;
    if (heap == NULL) {
        hak_large_give_up(span);
        return;
    }
    hak_large_keep(&heap->spans, span, spans_most());
    hak_heap_leave(heap);
}
