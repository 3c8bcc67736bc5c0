/* SPDX-License-Identifier: MIT */
/* tests/race/supply_race.c - threads that all need new slabs at once: memory is added outside of
 * heaps, for all that wait for it, and within the limit. */
#include "api/api.h"
#include "base/bits.h"
#include "heap/flush.h"
#include "heap/heaps.h"
#include "heap/refill.h"
#include "heap/supply.h"
#include "model/account.h"
#include "process/start.h"
#include "racers.h"
#include "span/span_heap.h"

#define TAKERS 6u
#define BLOCKS 600u
#define BLOCK_BYTES 32768u

static uint32_t *blocks[TAKERS][BLOCKS];

static void write_all(uint32_t *block, uint32_t word)
{
    for (uint32_t i = 0; i < BLOCK_BYTES / sizeof *block; i += 1024)
        block[i] = word;
}

static void take(struct racer *racer)
{
    for (uint32_t i = 0; i < BLOCKS; i++) {
        uint32_t *block = hak_take_one(hak_class_of(BLOCK_BYTES), NULL);
        CHECK(block != NULL);
        write_all(block, racer->index * BLOCKS + i);
        blocks[racer->index][i] = block;
        stumble(racer);
        if (draw(racer) % 64 == 0)
            hak_supply_grow_ahead(hak_class_of(BLOCK_BYTES), &hak_heap_at(0)->owner,
                                  &hak_heap_at(0)->stats);
    }
}

/* None is in two hands. */
static void check_contents(void)
{
    for (uint32_t taker = 0; taker < TAKERS; taker++)
        for (uint32_t i = 0; i < BLOCKS; i++)
            for (uint32_t at = 0; at < BLOCK_BYTES / sizeof **blocks[0]; at += 1024)
                CHECK_EQ(blocks[taker][i][at], taker * BLOCKS + i);
}

static void give_all_back(void)
{
    for (uint32_t taker = 0; taker < TAKERS; taker++)
        for (uint32_t i = 0; i < BLOCKS; i++)
            hak_flush_one(hak_slab_at(blocks[taker][i]), blocks[taker][i]);
    heaps_empty();
    CHECK_EQ(hak_slab_record_count(), 0);
    hak_supply_trim();
}

/* For all slabs that there are, and one that is added ahead. */
static uint32_t superslabs_needed(void)
{
    size_t granules =
        hak_slab_record_count() * hak_size_classes[hak_class_of(BLOCK_BYTES)].granule_count;
    return (uint32_t)(hak_align_up(granules, HAK_SUPERSLAB_GRANULES) / HAK_SUPERSLAB_GRANULES) + 1;
}

#define LIMIT_BYTES (64 * HAK_MIB)
#define GROWN_BYTES (14 * HAK_MIB)
#define ROUNDS 300u

static pthread_barrier_t round_line;

/* Half of them take new blocks. All six do not fit, so some are refused. */
static void grow_together(struct racer *racer)
{
    for (uint32_t i = 0; i < ROUNDS; i++) {
        void *block = hak_malloc(HAK_MIB);
        pthread_barrier_wait(&round_line);
        stumble(racer);
        void *grown =
            racer->index % 2 == 0 ? hak_realloc(block, GROWN_BYTES) : hak_malloc(GROWN_BYTES);
        pthread_barrier_wait(&round_line);
        CHECK(hak_held_bytes() <= LIMIT_BYTES);
        pthread_barrier_wait(&round_line);
        if (racer->index % 2 != 0 || grown == NULL)
            hak_free(block);
        hak_free(grown);
    }
}

TEST(blocks_that_grow_together_stay_within_the_limit)
{
    CHECK(hak_process_start());
    hak_store_relaxed(&hak_policy.limit_bytes, LIMIT_BYTES);
    CHECK_EQ(pthread_barrier_init(&round_line, NULL, TAKERS), 0);
    race_alike(TAKERS, grow_together);
}

TEST(memory_is_added_once_for_all_that_wait_for_it)
{
    CHECK(hak_process_start());
    hak_heaps_note_threads(TAKERS);
    hak_heap_leave(hak_heap_enter());
    race_alike(TAKERS, take);
    check_contents();
    CHECK(hak_pool_superslab_count() <= superslabs_needed());
    give_all_back();
    CHECK(hak_span_heap_is_sound());
    CHECK_EQ(hak_pool_free_count_all(), hak_pool_superslab_count() * HAK_SUPERSLAB_GRANULES);
    CHECK_EQ(hak_span_warm_bytes() + hak_span_clean_bytes() +
                 hak_pool_superslab_count() * HAK_SUPERSLAB_BYTES,
             hak_load_relaxed(&hak_region.committed_bytes));
}
