/* SPDX-License-Identifier: MIT */
/* tests/race/sweep_race.c - blocks are taken and freed while slabs are out and lose their pages: no
 * byte in use is lost, and no slab. */
#include "api/api.h"
#include "heap/flush.h"
#include "heap/heaps.h"
#include "heap/refill.h"
#include "heap/sweep.h"
#include "model/account.h"
#include "process/start.h"
#include "racers.h"

#define TAKERS 3u
#define SLOTS 6000u
#define STEPS 60000u
#define CLASS hak_class_of(256)
#define WORDS (256 / sizeof(uint64_t))

static uint64_t *slots[TAKERS][SLOTS];
static _Atomic uint32_t takers_done_count;
static _Atomic uint64_t purged_bytes;

static void check(const uint64_t *block)
{
    for (uint32_t i = 0; i < WORDS; i++)
        CHECK_EQ(block[i], (uintptr_t)block + i);
}

static uint64_t *take(void)
{
    uint64_t *block = hak_take_one(CLASS, NULL);
    CHECK(block != NULL);
    for (uint32_t i = 0; i < WORDS; i++)
        block[i] = (uintptr_t)block + i;
    return block;
}

static void give(uint64_t *block)
{
    check(block);
    hak_flush_one(hak_slab_at(block), block);
}

/* Fills many slots and empties most, in turn: slabs become sparse, and empty. */
static void replace(struct racer *racer)
{
    for (uint32_t step = 0; step < STEPS; step++) {
        uint64_t **slot = &slots[racer->index][draw(racer) % SLOTS];
        bool is_filling = step / (STEPS / 6) % 2 == 0;
        if (*slot != NULL)
            give(*slot);
        *slot = is_filling || draw(racer) % 64 == 0 ? take() : NULL;
        stumble(racer);
    }
    atomic_fetch_add(&takers_done_count, 1);
}

static void sweep_heap(struct racer *racer, struct heap *heap)
{
    struct whole_sweep whole = {0};
    struct swept swept;
    bool is_over = false;
    while (!is_over && hak_heap_enter_within(heap, 100)) {
        is_over = hak_heap_sweep_whole(heap, &whole, &swept);
        CHECK(hak_heap_is_sound(heap));
        hak_heap_leave(heap);
        stumble(racer);
        atomic_fetch_add(&purged_bytes, hak_heap_purge_swept(heap, &swept));
    }
}

static void sweep(struct racer *racer)
{
    do { /* once at least, if the others are done before its first turn */
        for (uint32_t i = 0; i < hak_heap_count(); i++)
            sweep_heap(racer, hak_heap_at(i));
    } while (atomic_load(&takers_done_count) < TAKERS);
}

TEST(pages_of_slabs_in_use_go_back_while_blocks_come_and_go)
{
    CHECK(hak_process_start());
    hak_heaps_note_threads(TAKERS);
    race(TAKERS + 1, (void (*const[])(struct racer *)){replace, replace, replace, sweep});
    for (uint32_t taker = 0; taker < TAKERS; taker++)
        for (uint32_t i = 0; i < SLOTS; i++)
            if (slots[taker][i] != NULL)
                give(slots[taker][i]);
    heaps_empty();
    CHECK_EQ(hak_slab_record_count(), 0); /* none is out for ever */
    CHECK(atomic_load(&purged_bytes) > 0 || HAK_TINY);
}
