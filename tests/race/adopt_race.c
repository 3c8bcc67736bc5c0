/* SPDX-License-Identifier: MIT */
/* tests/race/adopt_race.c - heaps are parked, adopted and robbed of slabs by many threads; each
 * heap has one owner at a time. */
#include "cache/lifecycle.h"
#include "cache/refill.h"
#include "cache/registry.h"
#include "racers.h"

#define RACERS 4u
#define ROUNDS 8000u
#define SLOTS 128u
#define HEAPS 64u

static _Atomic(uint64_t *) slots[SLOTS];
static uint64_t entered[HEAPS]; /* plain, by heap: only its owner writes */
static uint64_t left[HEAPS];
static _Atomic uint64_t abandoned_count;

/* Puts a block into a slot, or nothing, and frees what was there. */
static void slot_exchange(uint64_t index, struct heap *heap, uint64_t *block)
{
    if (block != NULL)
        *block = (uintptr_t)block;
    block = atomic_exchange(&slots[index % SLOTS], block);
    if (block == NULL)
        return;
    CHECK_EQ(*block, (uintptr_t)block);
    struct slab *slab = hak_slab_at(block);
    CHECK(slab != NULL);
    hak_combine_add(&hak_cache_of(heap)->combine, slab, block, &heap->stats);
}

/* Takes blocks of one class into the slots, and frees what comes out of them. */
static void use(struct racer *racer, struct heap *heap)
{
    uint32_t class_index = (uint32_t)draw(racer) % 3 * 20 + 1;
    struct bin *bin = &hak_cache_of(heap)->hot.bins[class_index];
    for (uint64_t i = draw(racer) % 40; i > 0; i--) {
        uint64_t *block = NULL;
        if (draw(racer) % 3 != 0) {
            block = hak_bin_pop(bin);
            if (block == NULL)
                block = hak_cache_refill(hak_cache_of(heap), class_index);
            CHECK(block != NULL);
        }
        slot_exchange(draw(racer), heap, block);
    }
}

static void adopt_and_park(struct racer *racer)
{
    for (uint32_t i = 0; i < ROUNDS; i++) {
        struct heap *heap = hak_heap_adopt();
        CHECK(heap != NULL);
        uint32_t number = heap->number;
        CHECK(number < HEAPS);
        CHECK_EQ(hak_load_relaxed(&heap->state), HEAP_ACTIVE);
        CHECK_EQ(entered[number], left[number]);
        entered[number]++;
        hak_gate_enter(&heap->gate);
        use(racer, heap);
        stumble(racer);
        hak_cache_flush_all(hak_cache_of(heap));
        if (draw(racer) % 16 == 0)
            hak_heap_retire_spares(heap);
        CHECK(hak_cache_is_sound(hak_cache_of(heap)));
        left[number]++;
        hak_heap_park(heap);
        stumble(racer);
    }
}

/* Adopts every heap and sends home what waits in any of them. */
static void empty_all_heaps(void)
{
    struct heap *adopted[HEAPS];
    uint32_t count = 0;
    for (struct heap *heap = hak_registry_first(); heap != NULL; heap = heap->next)
        CHECK((adopted[count++] = hak_heap_adopt()) != NULL);
    for (uint32_t i = 0; i < 3 * count; i++) {
        hak_cache_flush_all(hak_cache_of(adopted[i % count]));
        hak_heap_retire_spares(adopted[i % count]);
    }
    for (uint32_t i = 0; i < count; i++)
        atomic_fetch_add(&abandoned_count,
                         hak_load_relaxed(&adopted[i]->stats.counters[HAK_STAT_abandoned_slabs]));
}

TEST(a_heap_has_one_owner_at_a_time_and_loses_no_block)
{
    CHECK(hak_process_start());
    race_alike(RACERS, adopt_and_park);
    CHECK_EQ(hak_load_relaxed(&hak_active_caches), 0);
    struct heap *heap = hak_heap_adopt();
    for (uint32_t i = 0; i < SLOTS; i++)
        slot_exchange(i, heap, NULL);
    hak_cache_flush_all(hak_cache_of(heap));
    hak_heap_park(heap);
    empty_all_heaps();
    CHECK_EQ(hak_slab_record_count(), 0);
    CHECK(atomic_load(&abandoned_count) > 0);
}
