/* SPDX-License-Identifier: MIT */
#include "heap/flush.h"

#include "base/check.h"
#include "heap/heaps.h"
#include "misuse/report.h"
#include "policy/policy_table.h"
#include "slab/slab_give.h"

#include <string.h>

/* Blocks of one word of a slab's bitmap; none, if the word's blocks have no bytes. */
struct run {
    struct slab *slab;
    uintptr_t start; /* of the word's first block */
    size_t bytes;    /* of all the word's blocks */
    uint64_t mask;
    uint32_t word_index;
    uint32_t count;
};

/* A run of one block; behind the last one of its slab, too. */
HAK_INLINE struct run begin(struct slab *slab, const void *block)
{
    uint32_t index;
    if (HAK_UNLIKELY(!hak_slab_find_start(slab, block, &index)))
        hak_report_stray(block, slab->class_index);
    uintptr_t start = (uintptr_t)block - (size_t)(index % 64) * slab->block_bytes;
    size_t blocks = hak_least(64, slab->block_count - (index & ~63u));
    return (struct run){.slab = slab,
                        .start = start,
                        .bytes = blocks * slab->block_bytes,
                        .mask = 1ull << (index % 64),
                        .word_index = index / 64,
                        .count = 1};
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

/* Blocks were returned to a slab of the heap, which is entered. */
HAK_INLINE void settle(struct heap *heap, struct slab *slab)
{
    if (HAK_UNLIKELY(!hak_heap_is_settled(slab)))
        hak_heap_settle(heap, slab);
}

HAK_INLINE void give(struct heap *heap, const struct run *run)
{
    hak_slab_give_word(run->slab, run->word_index, run->mask, run->count);
    settle(heap, run->slab);
}

/* relaxed: under the lock of its heap it does not change */
HAK_INLINE bool is_of(const struct slab *slab, const struct heap *heap)
{
    return hak_load_relaxed(&slab->owner) == &heap->owner;
}

/* Frees the blocks of one heap, which is entered. The others come to the front; returns how
 * many. */
static HAK_NOINLINE uint32_t give_blocks(struct heap *heap, void **blocks, uint32_t count,
                                         uint32_t class_index)
{
    const uint64_t reciprocal = hak_size_classes[class_index].reciprocal;
    const size_t block_bytes = hak_size_classes[class_index].block_bytes;
    uint32_t left = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct slab *slab = hak_slab_of_class(blocks[i], class_index);
        size_t offset = (uintptr_t)blocks[i] - slab->start;
        uint32_t index = hak_block_index(reciprocal, offset);
        if (HAK_UNLIKELY(index * block_bytes != offset))
            hak_report_stray(blocks[i], class_index);
        if (HAK_UNLIKELY(!is_of(slab, heap))) {
            blocks[left++] = blocks[i];
            continue;
        }
        hak_slab_give_index(slab, index);
        settle(heap, slab);
    }
    hak_use_note(heap->owner.use, class_index, -(int64_t)(count - left));
    return left;
}

/* The same for blocks of any class. */
static HAK_NOINLINE uint32_t give_mixed(struct heap *heap, void **blocks, uint32_t count)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct slab *slab = hak_slab_of(blocks[i], HAK_CLASS_NONE);
        if (HAK_LIKELY(is_of(slab, heap)))
            hak_heap_give(heap, slab, blocks[i]);
        else
            blocks[left++] = blocks[i];
    }
    return left;
}

static void publish(const struct run *run)
{
    if (HAK_UNLIKELY(run->word_index * 64 + hak_bit_highest(run->mask) >= run->slab->block_count))
        hak_report_stray(hak_slab_block_at(run->slab, run->slab->block_count),
                         run->slab->class_index);
    hak_remote_publish(run->slab, run->word_index, run->mask);
}

static void count_published(struct stat_block *stats, uint32_t publishes, uint32_t blocks)
{
    if (HAK_LIKELY(publishes == 0))
        return;
    hak_stat_add_shared(stats, remote_publishes, publishes);
    hak_stat_add_shared(stats, remote_blocks, blocks);
}

/* Publishes the blocks of one heap, which is busy; as above. The first goes wherever it belongs by
 * now. */
static uint32_t publish_all(const struct heap *heap, void **blocks, uint32_t count,
                            uint32_t class_index, struct stat_block *stats)
{
    struct run first = begin(hak_slab_of(blocks[0], class_index), blocks[0]);
    uint32_t left = 0;
    publish(&first);
    for (uint32_t i = 1; i < count; i++) {
        struct slab *slab = hak_slab_of(blocks[i], class_index);
        if (heap_of(slab) == heap) {
            struct run run = begin(slab, blocks[i]);
            publish(&run);
        } else {
            blocks[left++] = blocks[i];
        }
    }
    count_published(stats, count - left, count - left);
    return left;
}

/* Of the class, or of any. */
static void flush(void **blocks, uint32_t count, uint32_t class_index, struct stat_block *stats)
{
    while (count != 0) {
        struct heap *heap = heap_of(hak_slab_of(blocks[0], class_index));
        if (HAK_LIKELY(try_enter(heap))) {
            count = class_index == HAK_CLASS_NONE ? give_mixed(heap, blocks, count)
                                                  : give_blocks(heap, blocks, count, class_index);
            hak_heap_leave(heap);
        } else {
            count = publish_all(heap, blocks, count, class_index, stats);
        }
    }
}

/* By their words, if they suit and are of so few. */
static bool try_words(void *const *blocks, uint32_t count, uint32_t class_index,
                      struct stat_block *stats)
{
    struct few_words few;
    struct words words = {few.words, few.places, HAK_WORDS_FEW, 0};
    if (!hak_words_suit(blocks, count, class_index))
        return false;
    hak_words_begin(&words);
    if (!hak_words_add(&words, blocks, count, class_index, false))
        return false;
    hak_flush_words(&words, class_index, stats);
    return true;
}

void hak_flush(void **blocks, uint32_t count, uint32_t class_index, struct stat_block *stats)
{
    if (!try_words(blocks, count, class_index, stats))
        flush(blocks, count, class_index, stats);
}

void hak_flush_mixed(void *const *blocks, uint32_t count, struct stat_block *stats)
{
    void *left[HAK_FLUSH_BLOCKS_MOST];
    hak_assert(count <= HAK_FLUSH_BLOCKS_MOST);
    memcpy(left, blocks, count * sizeof *left);
    flush(left, count, HAK_CLASS_NONE, stats);
}

/* Each n-th bit, from the lowest on. */
static const uint64_t each_bit[HAK_ROW_STEP_MOST + 1] = {
    0,
    0xffffffffffffffff,
    0x5555555555555555,
    0x9249249249249249,
    0x1111111111111111,
    0x1084210842108421,
    0x1041041041041041,
    0x8102040810204081,
    0x0101010101010101,
};

/* The blocks of the row's first one's word. */
static struct run begin_row(const struct row *row, uint32_t class_index)
{
    void *block = (void *)row->first;
    struct run run = begin(hak_slab_of(block, class_index), block);
    uint32_t block_bytes = run.slab->block_bytes, bit = hak_bit_lowest(run.mask);
    bool is_falling = row->step > UINTPTR_MAX / 2;
    uintptr_t step = is_falling ? -row->step : row->step;
    uint32_t blocks = (uint32_t)step / block_bytes, word_blocks = (uint32_t)run.bytes / block_bytes;
    if (HAK_UNLIKELY(blocks * block_bytes != step || blocks == 0 || bit >= word_blocks))
        return run; /* of one: what follows starts no block */
    uint32_t fit = (is_falling ? bit : word_blocks - 1 - bit) / blocks + 1;
    run.count = (uint32_t)hak_least(fit, row->length);
    uint32_t width = (run.count - 1) * blocks;
    run.mask = (each_bit[blocks] & hak_bit_low_mask(width + 1)) << (is_falling ? bit - width : bit);
    return run;
}

/* Another heap is entered, or none. */
static struct heap *change(struct heap *from, struct heap *to)
{
    if (from != NULL)
        hak_heap_leave(from);
    return try_enter(to) ? to : NULL;
}

/* What a flush by words or rows has done so far. */
struct pass {
    struct heap *inside; /* the heap that is entered, or none */
    uint32_t class_index;
    uint32_t published_blocks, publishes;
};

HAK_INLINE void send(struct pass *pass, const struct run *run)
{
    struct heap *heap = heap_of(run->slab);
    if (heap != pass->inside)
        pass->inside = change(pass->inside, heap);
    if (HAK_LIKELY(pass->inside != NULL && is_of(run->slab, pass->inside))) {
        hak_use_note(heap->owner.use, pass->class_index, -(int64_t)run->count);
        give(heap, run);
    } else {
        publish(run);
        pass->published_blocks += run->count;
        pass->publishes++;
    }
}

static void end(const struct pass *pass, struct stat_block *stats)
{
    if (pass->inside != NULL)
        hak_heap_leave(pass->inside);
    count_published(stats, pass->publishes, pass->published_blocks);
}

void hak_flush_rows(const struct rows *rows, uint32_t class_index, struct stat_block *stats)
{
    struct pass pass = {.class_index = class_index};
    for (uint32_t i = 0; i < rows->count; i++) {
        struct row row = rows->rows[i];
        while (row.length > 0) {
            struct run run = begin_row(&row, class_index);
            send(&pass, &run);
            row.first += run.count * row.step;
            row.length -= run.count;
        }
    }
    end(&pass, stats);
}

void hak_flush_words(const struct words *words, uint32_t class_index, struct stat_block *stats)
{
    struct pass pass = {.class_index = class_index};
    for (uint32_t i = 0; i < words->count; i++) {
        const struct word *word = &words->words[i];
        struct run run = {.slab = word->slab,
                          .mask = word->given,
                          .word_index = word->word_index,
                          .count = hak_bit_count(word->given)};
        if (run.mask != 0)
            send(&pass, &run);
    }
    end(&pass, stats);
}

/* The bits of the caller's blocks are stable, whichever thread holds the heap: they are in use. */
HAK_RACY void hak_flush_check(void *const *blocks, uint32_t count, uint32_t class_index)
{
    for (uint32_t i = 0; i < count; i++) {
        struct run run = begin(hak_slab_of(blocks[i], class_index), blocks[i]);
        hak_slab_check_word(run.slab, run.word_index, run.mask);
    }
}

void hak_flush_one(struct slab *slab, void *block)
{
    uint32_t index = hak_slab_index_of(slab, block, "invalid free");
    struct heap *heap = heap_of(slab);
    if (try_enter(heap)) {
        bool is_its = is_of(slab, heap);
        if (is_its)
            hak_heap_give(heap, slab, block);
        hak_heap_leave(heap);
        if (is_its)
            return;
    }
    hak_remote_publish(slab, index / 64, 1ull << (index % 64));
}

size_t hak_flush_spans_most(void)
{
    size_t share =
        hak_large_peak_bytes() / 100 * hak_policy_read(span_cache_percent) / (hak_heap_count() + 1);
    return hak_least(share, hak_policy_read(span_cache_bytes));
}

/* What the processor's cache has apart from the others. */
static size_t recent_bytes(void)
{
    const struct heap *heap = hak_heap_own();
    return heap == NULL ? 0 : hak_recent_bytes(&heap->spans.recent);
}

/* Among the others of the cache; false: it has no place there. */
static bool keep(struct span *span)
{
    if (!hak_large_may_keep(span))
        return false;
    size_t most = hak_flush_spans_most(), apart = recent_bytes();
    if (apart != 0 && hak_span_bytes(span) + apart > most)
        return false;
    struct heap *heap = hak_heap_try_near();
    if (heap == NULL)
        return false;
    hak_large_keep(&heap->spans, span, most - hak_least(apart, most));
    hak_heap_leave(heap);
    return true;
}

void hak_flush_span(struct span *span)
{
    if (!keep(span))
        hak_large_give_up(span);
}

/* Makes it one of the recent spans; others leave in its stead. */
static void keep_recent(struct recent_spans *recent, struct span *span)
{
    struct span *left = hak_recent_keep(recent, span);
    do {
        if (left != NULL)
            hak_flush_span(left);
        left = hak_recent_pop_excess(recent);
    } while (left != NULL);
}

void hak_flush_large(void *block)
{
    struct span *span = hak_large_end(block);
    struct heap *heap = hak_heap_own();
    if (heap != NULL && hak_span_cache_is_in_use(&heap->spans) && hak_large_may_keep(span))
        keep_recent(&heap->spans.recent, span);
    else
        hak_flush_span(span);
}
