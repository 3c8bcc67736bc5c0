/* SPDX-License-Identifier: MIT */
/* tests/race/heaps_race.c - threads take blocks out of heaps that they share and send others'
 * blocks home, while slabs move from heap to heap and some heaps are busy for long. */
#include "api/api.h"
#include "heap/flush.h"
#include "heap/heaps.h"
#include "heap/refill.h"
#include "mailboxes.h"
#include "model/account.h"
#include "process/start.h"
#include "slabs.h"

#define TAKERS 3u
#define BLOCKS 60000u
#define CLASS_INDEX 4u /* 64 bytes */

static _Atomic uint32_t takers_done_count;

/* Now and then a holder does not leave for a while, so that others meet its lock. */
static void take_and_hand_out(struct racer *racer)
{
    for (uint32_t handed = 0; handed < BLOCKS;) {
        void *blocks[16];
        struct heap *heap = hak_heap_enter();
        CHECK(heap != NULL);
        uint32_t count = 1 + (uint32_t)draw(racer) % 16;
        for (uint32_t i = 0; i < count; i++)
            CHECK((blocks[i] = take_block(heap, CLASS_INDEX)) != NULL);
        if (draw(racer) % 256 == 0)
            CHECK(hak_heap_is_sound(heap));
        if (draw(racer) % 64 == 0)
            sched_yield();
        stumble(racer);
        hak_heap_leave(heap);
        for (uint32_t i = 0; i < count; i++)
            block_hand_out(racer, blocks[i]);
        handed += count;
    }
    if (atomic_fetch_add(&takers_done_count, 1) == TAKERS - 1)
        atomic_store(&is_closed, true);
}

static void flush(struct racer *racer)
{
    struct stat_block stats = {{0}};
    while (!is_over()) {
        void *blocks[HAK_FLUSH_BLOCKS_MOST];
        uint32_t count = 0, most = 1 + (uint32_t)draw(racer) % HAK_FLUSH_BLOCKS_MOST;
        while (count < most && (blocks[count] = block_receive(racer)) != NULL)
            count++;
        stumble(racer);
        if (count == 1)
            hak_flush_one(hak_slab_at(blocks[0]), blocks[0]);
        else
            hak_flush(blocks, count, CLASS_INDEX, &stats);
        atomic_fetch_add(&freed_count, count);
    }
}

static void tidy(struct heap *heap, enum heap_access access, void *context)
{
    if (access == HEAP_ENTERED)
        heap_empty(heap, access, context);
}

static void look_on(struct racer *racer)
{
    while (!is_over()) {
        hak_heaps_visit(tidy, NULL);
        stumble(racer);
        sched_yield();
    }
}

TEST(blocks_are_flushed_while_their_slabs_change_heaps)
{
    CHECK(hak_process_start());
    hak_heaps_note_threads(8);
    void (*const bodies[])(struct racer *) = {
        take_and_hand_out, take_and_hand_out, take_and_hand_out, flush, flush, look_on};
    race(6, bodies);
    heaps_empty();
    CHECK_EQ(hak_slab_record_count(), 0);
}

/* Each heap is entered by one thread at a time. */
static uint32_t inside[HAK_HEAPS_MOST];
static void enter_and_leave(struct racer *racer)
{
    for (uint32_t i = 0; i < BLOCKS; i++) {
        struct heap *heap = hak_heap_enter();
        uint32_t at = heap->owner.heap_id - 1;
        CHECK_EQ(inside[at]++, 0); /* plain: the sanitizer sees whether the lock orders it */
        stumble(racer);
        struct heap *other = hak_heap_at((uint32_t)draw(racer) % hak_heap_count());
        if (other != heap && hak_heap_try_enter(other)) {
            uint32_t other_at = other->owner.heap_id - 1;
            CHECK_EQ(inside[other_at]++, 0);
            CHECK_EQ(--inside[other_at], 0);
            hak_heap_leave(other);
        }
        CHECK_EQ(--inside[at], 0);
        hak_heap_leave(heap);
        CHECK_EQ(hak_held_heaps.note, 0);
    }
}

TEST(a_heap_is_entered_by_one_thread_at_a_time)
{
    CHECK(hak_process_start());
    hak_heaps_note_threads(2);
    void (*const bodies[])(struct racer *) = {enter_and_leave, enter_and_leave, enter_and_leave,
                                              enter_and_leave};
    race(4, bodies);
    CHECK(hak_heap_count() <= 64);
}

static _Atomic bool has_entered, may_leave;
static void stay(struct racer *racer)
{
    (void)racer;
    CHECK(hak_heap_enter() == hak_heap_at(0));
    atomic_store(&has_entered, true);
    while (!atomic_load(&may_leave))
        sched_yield();
    hak_heap_leave(hak_heap_at(0));
}

static void go_on(struct racer *racer)
{
    (void)racer;
    while (!atomic_load(&has_entered))
        sched_yield();
    for (uint32_t i = 0; i < 1000; i++) {
        void *block = hak_malloc(64 + i);
        CHECK(block != NULL);
        hak_free(block);
    }
    atomic_store(&may_leave, true);
}

TEST(a_thread_that_stays_inside_a_heap_keeps_nobody_waiting)
{
    CHECK(hak_process_start());
    struct heap *heap = hak_heap_enter();
    hak_heap_leave(heap);
    void (*const bodies[])(struct racer *) = {stay, go_on, go_on};
    race(3, bodies);
}
