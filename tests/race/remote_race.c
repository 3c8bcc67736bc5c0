/* SPDX-License-Identifier: MIT */
/* tests/race/remote_race.c - many publishers against an owner who collects, also while slabs change
 * their owner. What a publisher wrote into a block happens before the owner hands it out again. */
#include "cache/lifecycle.h"
#include "cache/refill.h"
#include "cache/registry.h"
#include "cache/supply.h"
#include "racers.h"
#include "region/tag_map.h"

#define PUBLISHERS 3u
#define MAILBOXES 256u
#define BLOCKS 200000u
#define CLASS_INDEX 4u /* 64 bytes */

/* Blocks on their way from owners to publishers. */
static _Atomic(uint64_t *) mailboxes[MAILBOXES];
static _Atomic uint32_t handed_count;
static _Atomic uint32_t freed_count;
static _Atomic bool is_closed;

static void block_hand_out(struct racer *racer, uint64_t *block)
{
    block[0] = (uintptr_t)block ^ 0x5555;
    block[7] = 1;
    atomic_fetch_add(&handed_count, 1);
    for (;;) {
        uint64_t *none = NULL;
        if (atomic_compare_exchange_strong(&mailboxes[draw(racer) % MAILBOXES], &none, block))
            return;
        stumble(racer);
    }
}

/* A block from the mailboxes, written to; NULL: none was found. */
static uint64_t *block_receive(struct racer *racer)
{
    uint32_t at = (uint32_t)draw(racer);
    for (uint32_t i = 0; i < MAILBOXES; i++) {
        uint64_t *block = atomic_exchange(&mailboxes[(at + i) % MAILBOXES], NULL);
        if (block == NULL)
            continue;
        CHECK_EQ(block[0], (uintptr_t)block ^ 0x5555);
        CHECK_EQ(block[7], 1);
        block[0] = 0;
        block[7] = 2;
        return block;
    }
    return NULL;
}

static bool is_over(void)
{
    return atomic_load(&is_closed) && atomic_load(&freed_count) == atomic_load(&handed_count);
}

static struct slab_owner owner = {.heap_id = 77};
static struct slab *slab;
static uint32_t collected_count;

static void collect(struct racer *racer)
{
    struct slab *chain = hak_pending_take_all(&owner);
    while (chain != NULL) {
        struct slab *next = hak_pending_next(chain);
        bool is_done = false;
        CHECK_EQ(chain, slab);
        CHECK_EQ(next, NULL); /* on one pending stack at most once */
        stumble(racer);
        collected_count += hak_remote_collect(chain, &is_done);
        CHECK(hak_slab_is_sound(chain));
        /* The count covers every bit that can be seen. */
        CHECK((int32_t)hak_load_relaxed(&chain->remote_count) >= 0);
        stumble(racer);
        if (!is_done)
            hak_pending_push(chain);
        chain = next;
    }
}

static void hand_out_and_collect(struct racer *racer)
{
    void *blocks[16];
    for (uint32_t handed = 0; handed < BLOCKS;) {
        uint32_t count = hak_slab_take(slab, blocks, 1 + (uint32_t)draw(racer) % 16);
        for (uint32_t i = 0; i < count; i++)
            block_hand_out(racer, blocks[i]);
        handed += count;
        collect(racer);
    }
    atomic_store(&is_closed, true);
}

/* Publishes blocks of one word together, as the combining table does. */
static void publish_groups(struct racer *racer)
{
    while (!is_over()) {
        uint64_t *block = block_receive(racer);
        stumble(racer);
        if (block == NULL)
            continue;
        uint32_t index = hak_slab_index_of(slab, block, "test");
        uint64_t mask = 1ull << (index % 64);
        for (uint64_t i = draw(racer) % 6; i > 0 && (block = block_receive(racer)) != NULL; i--) {
            uint32_t other = hak_slab_index_of(slab, block, "test");
            if (other / 64 != index / 64) {
                hak_remote_publish(slab, other / 64, 1ull << (other % 64));
                atomic_fetch_add(&freed_count, 1);
            } else {
                mask |= 1ull << (other % 64);
            }
        }
        hak_remote_publish(slab, index / 64, mask);
        atomic_fetch_add(&freed_count, hak_bit_count(mask));
    }
}

TEST(every_block_that_publishers_free_comes_home_once)
{
    CHECK(hak_process_start());
    struct stat_block stats = {{0}};
    slab = hak_supply_slab(CLASS_INDEX, &owner, &stats);
    CHECK(slab != NULL);
    void (*const bodies[])(struct racer *) = {hand_out_and_collect, publish_groups, publish_groups,
                                              publish_groups};
    race(1 + PUBLISHERS, bodies);
    struct racer self = {0, 1, NULL};
    collect(&self);
    CHECK_EQ(collected_count, atomic_load(&handed_count));
    CHECK_EQ(slab->used, 0);
    CHECK_EQ(hak_load_relaxed(&slab->remote_count), 0);
    CHECK_EQ(hak_load_relaxed(&owner.pending), NULL);
    hak_supply_retire(slab);
    CHECK_EQ(hak_slab_record_count(), 0);
}

static struct heap *heaps[2];
static _Atomic uint32_t owners_done_count;
static pthread_mutex_t heaps_lock = PTHREAD_MUTEX_INITIALIZER; /* stands for the registry's */

/* Who holds the lock owns both heaps: takes blocks, collects, and moves slabs between them. */
static void own_and_move(struct racer *racer)
{
    struct heap *mine = heaps[racer->index], *other = heaps[1 - racer->index];
    for (uint32_t handed = 0; handed < BLOCKS; handed++) {
        pthread_mutex_lock(&heaps_lock);
        if (draw(racer) % 4 == 0) {
            struct slab *moved =
                mine->spare[CLASS_INDEX] == NULL ? hak_heap_surrender(other, CLASS_INDEX) : NULL;
            if (moved != NULL)
                hak_heap_receive(mine, moved);
        }
        struct bin *bin = &hak_cache_of(mine)->hot.bins[CLASS_INDEX];
        uint64_t *block = hak_bin_pop(bin);
        if (block == NULL)
            block = hak_cache_refill(hak_cache_of(mine), CLASS_INDEX);
        CHECK(block != NULL);
        if (draw(racer) % 64 == 0)
            hak_cache_flush_all(hak_cache_of(mine));
        if (draw(racer) % 128 == 0)
            CHECK(hak_cache_is_sound(hak_cache_of(mine)));
        pthread_mutex_unlock(&heaps_lock);
        block_hand_out(racer, block);
        stumble(racer);
    }
    if (atomic_fetch_add(&owners_done_count, 1) == 1)
        atomic_store(&is_closed, true);
}

/* Frees through a combining table, or past it. */
static void publish_combined(struct racer *racer)
{
    struct combine combine;
    struct stat_block stats = {{0}};
    memset(&combine, 0, sizeof combine);
    hak_combine_start(&combine);
    while (!is_over()) {
        uint64_t *block = block_receive(racer);
        if (block == NULL || draw(racer) % 32 == 0) {
            hak_combine_publish_all(&combine, &stats);
            sched_yield();
        }
        if (block == NULL)
            continue;
        struct slab *home = hak_slab_at(block);
        CHECK(home != NULL);
        if (draw(racer) % 8 == 0)
            hak_combine_bypass(home, block);
        else if (draw(racer) % 2 == 0 && hak_combine_wait(&combine, block))
            ; /* its slab may move before it is sorted */
        else
            hak_combine_add(&combine, home, block, &stats);
        stumble(racer);
        if (atomic_fetch_add(&freed_count, 1) % 64 == 0)
            hak_combine_publish_all(&combine, &stats);
    }
    hak_combine_publish_all(&combine, &stats);
}

TEST(blocks_come_home_while_their_slabs_change_owners)
{
    CHECK(hak_process_start());
    for (uint32_t i = 0; i < 2; i++)
        CHECK((heaps[i] = hak_heap_adopt()) != NULL);
    void (*const bodies[])(struct racer *) = {own_and_move, own_and_move, publish_combined,
                                              publish_combined, publish_combined};
    race(5, bodies);
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < 2; i++) {
            hak_cache_flush_all(hak_cache_of(heaps[i]));
            hak_heap_retire_spares(heaps[i]);
            CHECK(hak_cache_is_sound(hak_cache_of(heaps[i])));
        }
    }
    CHECK_EQ(hak_slab_record_count(), 0);
}
