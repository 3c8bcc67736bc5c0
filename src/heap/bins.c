/* SPDX-License-Identifier: MIT */
#include "heap/bins.h"

#include "base/check.h"
#include "heap/cache.h"
#include "heap/cpu_cache.h"

hak_static_assert(sizeof(struct bin) == HAK_BIN_SCALE * 4,
                  "a scaled bin is a quarter of an offset");
hak_static_assert(offsetof(struct rseq_area, section) == 8, "as the assembly has it");
hak_static_assert(offsetof(struct bin, limit) == 4, "as the assembly has it");
hak_static_assert(HAK_CLASS_HOT_BYTES_MAX == 32768, "as the assembly has it");

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

/* Of a slot, whose thread is the caller. */
static uint32_t slot_close(struct bin *bin)
{
    struct bin closed = {.countdown = bin->countdown, .closed_top = hak_word_peek(&bin->top)};
    if (closed.closed_top != 0)
        store_header(bin, closed);
    return closed.closed_top;
}

/* The limit as it was. */
static void slot_open(struct bin *bin, uint32_t top, uint32_t limit)
{
    store_header(
        bin,
        (struct bin){.top = (uint16_t)top, .countdown = bin->countdown, .limit = (uint16_t)limit});
}

uint32_t hak_slot_pop_some(struct bins *bins, uint32_t class_index, void **blocks, uint32_t most)
{
    struct bin *bin = hak_bin_of(bins, class_index);
    uint32_t limit = hak_word_peek(&bin->limit);
    uint32_t top = slot_close(bin), count = 0;
    if (top == 0)
        return 0;
    void **words = (void **)(void *)bins;
    for (; count < most && words[top] != NULL; top--)
        blocks[count++] = words[top];
    slot_open(bin, top, limit);
    return count;
}

uint32_t hak_slot_push_some(struct bins *bins, uint32_t class_index, void *const *blocks,
                            uint32_t count)
{
    struct bin *bin = hak_bin_of(bins, class_index);
    uint32_t limit = hak_word_peek(&bin->limit);
    uint32_t top = slot_close(bin), pushed = 0;
    if (top == 0)
        return 0;
    void **words = (void **)(void *)bins;
    while (pushed < count && top < limit)
        words[++top] = blocks[count - ++pushed];
    slot_open(bin, top, limit);
    return pushed;
}

static struct bins *bins_here(uint32_t id)
{
    return hak_word_peek(&hak_bins_of[id]);
}

void *hak_bin_pop(uint32_t class_index)
{
    uint32_t id = hak_here_id();
    if (hak_id_is_processor(id))
        return hak_cpu_cache_pop(HAK_BIN_OF_CLASS(class_index));
    struct bins *bins = bins_here(id);
    struct bin *bin = hak_bin_of(bins, class_index);
    void *block = ((void **)(void *)bins)[hak_word_peek(&bin->top)];
    if (block == NULL)
        return NULL;
    bool is_due = bin->countdown == 0;
    hak_bin_commit(bin, -0x10001);
    return is_due ? hak_bin_note(block, bins, HAK_BIN_OF_CLASS(class_index)) : block;
}

bool hak_bin_push(uint32_t class_index, void *block)
{
    uint32_t id = hak_here_id();
    if (hak_id_is_processor(id))
        return hak_cpu_cache_push(HAK_BIN_OF_CLASS(class_index), block);
    struct bins *bins = bins_here(id);
    struct bin *bin = hak_bin_of(bins, class_index);
    uint32_t limit = hak_word_peek(&bin->limit), top = hak_word_peek(&bin->top);
    if (top >= limit)
        return false;
    hak_word_publish(&((void **)(void *)bins)[top + 1], block);
    hak_compiler_fence();
    hak_bin_commit(bin, 1);
    return true;
}

bool hak_bin_close(struct bins *bins, uint32_t class_index, uint32_t *top)
{
    uint32_t id = hak_here_id();
    if (hak_id_is_processor(id))
        *top = hak_cpu_cache_close(HAK_BIN_OF_CLASS(class_index), bins);
    else
        *top = bins_here(id) == bins ? slot_close(hak_bin_of(bins, class_index)) : 0;
    return *top != 0;
}

void hak_bin_open(struct bins *bins, uint32_t class_index, uint32_t top, uint32_t limit)
{
    slot_open(hak_bin_of(bins, class_index), top, limit);
}
