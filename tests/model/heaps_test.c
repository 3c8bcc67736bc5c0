/* SPDX-License-Identifier: MIT */
/* tests/model/heaps_test.c - random operations over several heaps; contents are checked, heaps come
 * and go with blocks in them, and in the end every granule is accounted for. */
#include "account.h"
#include "heap/private_heap.h"
#include "public.h"
#include "reference.h"

#define HEAPS 5u

static struct reference references[HEAPS]; /* the live blocks of each heap */
static hakmem_heap *heaps[HEAPS];

static void take(struct reference *reference, hakmem_heap *heap)
{
    size_t bytes = draw_bytes(reference);
    size_t alignment = bytes <= 8 ? 8 : 16;
    void *block;
    switch (draw_below(reference, 4)) {
    case 0:
        block = hakmem_heap_calloc(heap, 1, bytes);
        CHECK(block != NULL);
        block_check_zero(block, bytes);
        break;
    case 1:
        alignment = draw_alignment(reference);
        block = hakmem_heap_aligned_alloc(heap, alignment, bytes);
        break;
    default:
        block = hakmem_heap_malloc(heap, bytes);
    }
    CHECK(block != NULL);
    CHECK_EQ(hakmem_heap_of(block), heap);
    reference_add(reference, block, bytes, alignment);
}

static void give(struct reference *reference, hakmem_heap *heap)
{
    uint32_t index = (uint32_t)draw_below(reference, reference->live_count);
    struct live live = reference_remove(reference, index);
    block_check(live.start, live.usable, live.usable, live.seed);
    if (draw_below(reference, 2) == 0)
        hak_free(live.start);
    else
        hakmem_heap_free(heap, live.start);
}

static void resize(struct reference *reference, hakmem_heap *heap)
{
    uint32_t index = (uint32_t)draw_below(reference, reference->live_count);
    struct live live = reference_remove(reference, index);
    size_t bytes = draw_bytes(reference) + 1;
    unsigned char *block = draw_below(reference, 2) == 0
                               ? hak_realloc(live.start, bytes)
                               : hakmem_heap_realloc(heap, live.start, bytes);
    CHECK(block != NULL);
    block_check(block, live.bytes < bytes ? live.bytes : bytes, live.usable, live.seed);
    CHECK_EQ(hakmem_heap_of(block), heap);
    reference_add(reference, block, bytes, bytes <= 8 ? 8 : 16);
}

static void renew(uint32_t index)
{
    if (heaps[index] != NULL) {
        struct hakmem_heap_stats stats = heap_stats_now(heaps[index]);
        CHECK_EQ(stats.live_block_count, references[index].live_count);
        CHECK(stats.live_bytes >= references[index].live_bytes);
        CHECK(stats.held_bytes >= stats.live_bytes);
        for (uint32_t i = 0; i < references[index].live_count; i++) {
            const struct live *live = &references[index].live[i];
            block_check(live->start, live->usable, live->usable, live->seed);
        }
        hakmem_heap_destroy(heaps[index]);
    }
    references[index].live_count = 0;
    references[index].live_bytes = 0;
    CHECK((heaps[index] = hakmem_heap_new()) != NULL);
}

static void step(uint32_t index, bool is_rising)
{
    struct reference *reference = &references[index];
    uint64_t choice = draw_below(reference, 32);
    bool is_full = reference->live_count == LIVE_MOST || reference->live_bytes > 48 * HAK_MIB;
    if (choice == 0 && draw_below(reference, 40) == 0)
        renew(index);
    else if (choice == 1)
        hakmem_heap_trim(heaps[index]);
    else if (!is_full && (reference->live_count == 0 || choice < (is_rising ? 20u : 10u)))
        take(reference, heaps[index]);
    else if (choice < 24 && !is_full)
        resize(reference, heaps[index]);
    else
        give(reference, heaps[index]);
}

static void run(uint64_t seed, uint32_t steps)
{
    check_print("seed %llu\n", (unsigned long long)seed);
    for (uint32_t i = 0; i < HEAPS; i++) {
        references[i].random = seed * HEAPS + i;
        renew(i);
    }
    for (uint32_t i = 0; i < steps; i++) {
        uint32_t index = (uint32_t)draw_below(&references[0], HEAPS);
        step(index, (i / 2000) % 2 == 0);
        if (i % 500 == 0) {
            struct private_heap *heap = hak_private_enter(heaps[index], "test");
            CHECK(hak_private_is_sound(heap));
            hak_private_leave(heap);
            CHECK(hak_span_heap_is_sound());
        }
    }
    for (uint32_t i = 0; i < HEAPS; i++) {
        renew(i);
        hakmem_heap_destroy(heaps[i]);
        heaps[i] = NULL;
    }
    check_nothing_is_live();
}

TEST(random_operations_over_heaps_agree_with_the_reference_seed_1)
{
    run(1, 30000);
}

TEST(random_operations_over_heaps_agree_with_the_reference_seed_2)
{
    run(2, 30000);
}
