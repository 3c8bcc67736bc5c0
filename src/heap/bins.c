/* SPDX-License-Identifier: MIT */
#include "heap/bins.h"

#include "base/bits.h"
#include "base/check.h"
#include "heap/cache.h"
#include "heap/cpu_cache.h"
#include "heap/slot.h"

#include <string.h>

hak_static_assert(sizeof(struct bin) == HAK_BIN_SCALE * 4,
                  "a scaled bin is a quarter of an offset");
hak_static_assert(offsetof(struct rseq_area, section) == 8, "as the assembly has it");
hak_static_assert(offsetof(struct bin, limit) == 4, "as the assembly has it");
hak_static_assert(offsetof(struct bin, bottom) == 6, "as the assembly has it");
hak_static_assert(HAK_CLASS_EVEN_BYTES_MAX == 4096, "as the assembly has it");
hak_static_assert(HAK_CLASS_HOT_BYTES_MAX == 32768, "as the assembly has it");
hak_static_assert(HAK_CLASS_BYTES_MAX == 131072, "as the assembly has it");
hak_static_assert(HAK_CACHE_LINE_BYTES == 64, "as the assembly has it");
hak_static_assert(HAK_ORDINARY_ALIGNMENT == 16, "as the assembly has it");
hak_static_assert(PARTITION_ORDINARY == 0, "as the assembly has it");
hak_static_assert(sizeof hak_draw_mean_bytes == 8, "as the assembly has it");

hak_static_assert(HAK_ID_CLOSED + 1 == 4096, "as the assembly has it");

/* The header of a bin is stored whole. */
union header {
    struct bin bin;
    uint64_t word;
};

static void store_header(struct bin *bin, struct bin value)
{
    union header header = {.bin = value};
    hak_compiler_fence();
    /* release: partner is the sequence that reads the slots by this top, on another processor */
    __atomic_store_n((uint64_t *)(void *)bin, header.word, __ATOMIC_RELEASE);
    hak_compiler_fence();
}

/* Of a slot, whose thread is the caller. As hak_cpu_cache_lower; in one step, for handlers that pop
 * in between. */
static uint32_t slot_lower(struct bin *bin, uint32_t countdown)
{
    uint32_t *word = (uint32_t *)(void *)bin;
    uint32_t before = hak_word_peek(word), lower;
    do {
        if ((before & 0xffff) == 0)
            return 0;
        if (before >> 16 <= countdown)
            break;
        lower = (before & 0xffff) | countdown << 16;
    } while (!__atomic_compare_exchange_n(word, &before, lower, false, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    return (before >> 16) + 1;
}

/* Of a slot, whose thread is the caller. */
static uint32_t slot_close(struct bin *bin)
{
    struct bin closed = {.countdown = bin->countdown, .bottom = hak_word_peek(&bin->top)};
    if (closed.bottom != 0)
        store_header(bin, closed);
    return closed.bottom;
}

static void slot_open(struct bin *bin, struct bin_slots slots)
{
    store_header(bin, (struct bin){.top = (uint16_t)slots.top,
                                   .countdown = bin->countdown,
                                   .limit = (uint16_t)slots.limit,
                                   .bottom = (uint16_t)slots.bottom});
}

/* Closes a slot's bin, too; what was its slots then. `top` is 0 if it was closed or had none. A
 * handler may push and pop until it is closed, and does not move it. */
static struct bin_slots slot_seize(struct bin *bin)
{
    struct bin_slots slots = {.bottom = hak_word_peek(&bin->bottom),
                              .limit = hak_word_peek(&bin->limit)};
    slots.top = slot_close(bin);
    return slots;
}

uint32_t hak_slot_pop_some(struct bins *bins, uint32_t class_index, void **blocks, uint32_t most)
{
    struct bin *bin = hak_bin_of(bins, class_index);
    struct bin_slots slots = slot_seize(bin);
    if (slots.top == 0)
        return 0;
    uint32_t count = (uint32_t)hak_least(slots.bottom - slots.top, most);
    memcpy(blocks, (void **)(void *)bins + slots.top, count * sizeof *blocks);
    slots.top += count;
    slot_open(bin, slots);
    return count;
}

uint32_t hak_slot_push_some(struct bins *bins, uint32_t class_index, void *const *blocks,
                            uint32_t count)
{
    struct bin *bin = hak_bin_of(bins, class_index);
    struct bin_slots slots = slot_seize(bin);
    if (slots.top == 0)
        return 0;
    uint32_t pushed = (uint32_t)hak_least(hak_excess(slots.top, slots.limit), count);
    slots.top -= pushed;
    memcpy((void **)(void *)bins + slots.top, blocks + count - pushed, pushed * sizeof *blocks);
    slot_open(bin, slots);
    return pushed;
}

static struct bins *bins_here(uint32_t id)
{
    return hak_word_peek(&hak_bins_of[id]);
}

struct popped hak_bin_pop_noted(uint32_t class_index)
{
    uint32_t id = hak_here_id();
    if (HAK_LIKELY(hak_id_is_processor(id)))
        return hak_cpu_cache_pop(HAK_BIN_OF_CLASS(class_index));
    struct bins *bins = bins_here(id);
    return hak_slot_pop_noted(bins, hak_bin_of(bins, class_index));
}

void *hak_bin_pop(uint32_t class_index)
{
    struct popped popped = hak_bin_pop_noted(class_index);
    if (HAK_UNLIKELY(popped.noted != NULL))
        hak_bin_note(popped.noted, HAK_BIN_OF_CLASS(class_index));
    return popped.block;
}

/* Draws the distance to the bin's next sample, and sets the countdown to it. Returns by how much it
 * is lower. */
static uint32_t draw_next(struct cache *cache, struct bins *bins, uint32_t class_index)
{
    uint32_t times = hak_draw_doublings();
    uint32_t distance =
        hak_draw_distance(hak_size_classes[class_index].block_bytes, times, HAK_POPS_NOTED);
    uint32_t countdown = distance - 1, before = 0, id = hak_here_id();
    if (hak_id_is_processor(id))
        before = hak_cpu_cache_lower(HAK_BIN_OF_CLASS(class_index), bins, countdown);
    else if (bins_here(id) == bins)
        before = slot_lower(hak_bin_of(bins, class_index), countdown);
    if (before == 0)
        return 0;
    bool is_due = before > countdown;
    hak_store_relaxed(&cache->drawn[class_index],
                      (uint8_t)(is_due ? DRAW_DUE + times : DRAW_LATER));
    return is_due ? before - 1 - countdown : 0;
}

/* By what the countdown that ran out stood for. */
static uint64_t weight_of(uint32_t drawn, uint32_t class_index)
{
    uint32_t bytes = hak_size_classes[class_index].block_bytes;
    if (drawn >= DRAW_DUE)
        return hak_draw_weight(bytes, drawn - DRAW_DUE);
    return drawn == DRAW_NONE ? hak_draw_coin(bytes) : 0;
}

uint64_t hak_bin_note(struct bins *bins, size_t scaled)
{
    /* The bins may be another cache's by now: the sum is right all the same. */
    struct cache *cache = hak_word_peek(&bins->cache);
    uint32_t class_index = (uint32_t)(scaled / HAK_BIN_SCALE) - 1, lowered = 0;
    uint64_t weight = 0;
    if (hak_draw_is_on()) {
        /* relaxed: of two threads that take turns here one gets it; it orders nothing */
        uint32_t drawn =
            atomic_exchange_explicit(&cache->drawn[class_index], DRAW_NONE, memory_order_relaxed);
        lowered = draw_next(cache, bins, class_index);
        weight = weight_of(drawn, class_index);
    }
    hak_fetch_add_relaxed(&cache->popped[class_index], HAK_POPS_NOTED - lowered);
    return weight;
}

void hak_bin_draw(struct cache *cache, uint32_t class_index)
{
    if (hak_load_relaxed(&cache->drawn[class_index]) != DRAW_NONE)
        return;
    uint32_t lowered = draw_next(cache, hak_cache_bins(cache), class_index);
    hak_fetch_sub_relaxed(&cache->popped[class_index], lowered);
}

bool hak_bin_push(uint32_t class_index, void *block)
{
    uint32_t id = hak_here_id();
    if (hak_id_is_processor(id))
        return hak_cpu_cache_push(HAK_BIN_OF_CLASS(class_index), block);
    struct bins *bins = bins_here(id);
    return hak_slot_push(bins, hak_bin_of(bins, class_index), block);
}

bool hak_bin_has_on_top(uint32_t class_index, const void *block)
{
    uint32_t id = hak_here_id();
    struct bins *bins = bins_here(id);
    uint32_t top = hak_word_peek(&hak_bin_of(bins, class_index)->top);
    bool is_there = hak_word_peek((void **)(void *)bins + top) == block;
    hak_compiler_fence();
    /* Bins that this thread has left change meanwhile, and slots need not be seen before tops. */
    return is_there && hak_here_id() == id;
}

bool hak_bin_close(struct bins *bins, uint32_t class_index, uint32_t *top)
{
    uint32_t id = hak_here_id();
    const struct cache *own = hak_own_cache();
    if (hak_id_is_processor(id))
        *top = hak_cpu_cache_close(HAK_BIN_OF_CLASS(class_index), bins);
    else
        *top = own != NULL && own->bins == bins ? slot_close(hak_bin_of(bins, class_index)) : 0;
    return *top != 0;
}

void hak_bin_open(struct bins *bins, uint32_t class_index, struct bin_slots slots)
{
    slot_open(hak_bin_of(bins, class_index), slots);
}
