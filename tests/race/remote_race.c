/* SPDX-License-Identifier: MIT */
/* tests/race/remote_race.c - many publishers against one collector. What a publisher wrote into
 * a block happens before the collector hands it out again. */
#include "heap/supply.h"
#include "mailboxes.h"
#include "process/start.h"
#include "region/tag_map.h"
#include "slab/remote.h"
#include "slabs.h"

#define PUBLISHERS 3u
#define BLOCKS 200000u
#define CLASS_INDEX 4u /* 64 bytes */

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

/* Publishes blocks of one word together, as a flush does. */
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

TEST(every_remotely_freed_block_is_collected_once)
{
    CHECK(hak_process_start());
    struct stat_block stats = {{0}};
    slab = make_slab(CLASS_INDEX, &owner, &stats);
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
