/* SPDX-License-Identifier: MIT */
/* tests/fuzz/heaps_fuzz.c - private heaps come and go with blocks in them; contents, membership and
 * numbers are checked. */
#include "fuzz.h"
#include "hakmem/hakmem.h"
#include "heap/private_heap.h"

#define HEAPS 4u

static struct reference references[HEAPS];
static hakmem_heap *heaps[HEAPS];

static void take(struct input *input, uint32_t index)
{
    size_t bytes = input_bytes(input);
    size_t alignment = bytes <= 8 ? 8 : 16;
    if (!has_room(&references[index], bytes))
        return;
    void *block;
    switch (input_byte(input) % 3) {
    case 0:
        block = hakmem_heap_malloc(heaps[index], bytes);
        break;
    case 1:
        block = hakmem_heap_calloc(heaps[index], 1, bytes);
        CHECK(block != NULL);
        block_check_zero(block, bytes);
        break;
    default:
        alignment = input_alignment(input);
        block = hakmem_heap_aligned_alloc(heaps[index], alignment, bytes);
    }
    CHECK(block != NULL);
    CHECK_EQ(hakmem_heap_of(block), heaps[index]);
    reference_add(&references[index], block, bytes, alignment);
}

static void give(struct input *input, uint32_t index)
{
    struct reference *reference = &references[index];
    if (reference->live_count == 0)
        return;
    struct live live = live_remove(reference, (uint32_t)input_below(input, reference->live_count));
    if (input_byte(input) % 2 == 0)
        hak_free(live.start);
    else
        hakmem_heap_free(heaps[index], live.start);
}

static void resize(struct input *input, uint32_t index)
{
    struct reference *reference = &references[index];
    size_t bytes = input_bytes(input) + 1;
    if (reference->live_count == 0 || !has_room(reference, bytes))
        return;
    struct live live = live_remove(reference, (uint32_t)input_below(input, reference->live_count));
    unsigned char *block = input_byte(input) % 2 == 0
                               ? hak_realloc(live.start, bytes)
                               : hakmem_heap_realloc(heaps[index], live.start, bytes);
    CHECK(block != NULL);
    block_check(block, live.bytes < bytes ? live.bytes : bytes, live.usable, live.seed);
    CHECK_EQ(hakmem_heap_of(block), heaps[index]);
    reference_add(reference, block, bytes, bytes <= 8 ? 8 : 16);
}

static void destroy(uint32_t index)
{
    struct hakmem_heap_stats stats;
    if (heaps[index] == NULL)
        return;
    struct reference *reference = &references[index];
    CHECK_EQ(hakmem_heap_stats_get(heaps[index], &stats, sizeof stats), 0);
    CHECK_EQ(stats.live_block_count, reference->live_count);
    CHECK(stats.live_bytes >= reference->live_bytes && stats.held_bytes >= stats.live_bytes);
    for (uint32_t i = 0; i < reference->live_count; i++)
        live_check(&reference->live[i]);
    struct private_heap *heap = hak_private_enter(heaps[index], "fuzz");
    CHECK(hak_private_is_sound(heap));
    hak_private_leave(heap);
    hakmem_heap_destroy(heaps[index]);
    heaps[index] = NULL;
    reference->live_count = 0;
    reference->live_bytes = 0;
}

static void step(struct input *input)
{
    uint32_t choice = input_byte(input) % 16;
    uint32_t index = input_byte(input) % HEAPS;
    if (heaps[index] == NULL)
        CHECK((heaps[index] = hakmem_heap_new()) != NULL);
    if (choice < 7)
        take(input, index);
    else if (choice < 10)
        resize(input, index);
    else if (choice < 14)
        give(input, index);
    else if (choice == 14)
        hakmem_heap_trim(heaps[index]);
    else
        destroy(index);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t byte_count)
{
    struct input input = {bytes, bytes + byte_count};
    while (!input_is_over(&input))
        step(&input);
    for (uint32_t i = 0; i < HEAPS; i++)
        destroy(i);
    CHECK(hak_span_heap_is_sound());
    return 0;
}
