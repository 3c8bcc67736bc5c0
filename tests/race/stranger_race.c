/* SPDX-License-Identifier: MIT */
/* tests/race/stranger_race.c - visitors purge the heaps of running threads, which come, work and
 * go; no block loses a byte. */
#include "api/api.h"
#include "cache/idle.h"
#include "cache/lifecycle.h"
#include "cache/registry.h"
#include "cache/stranger.h"
#include "cache/sweep.h"
#include "policy/policy_table.h"
#include "racers.h"

#define WORKERS 3u
#define LIVES 30u
#define SLOTS 600u
#define STEPS 1500u
#define BLOCK_BYTES 5000u /* above common classes: frees go home */

struct note {
    unsigned char *block;
    size_t bytes;
};

static _Atomic uint32_t workers_left;
static _Atomic uint64_t visits;
static _Atomic uint64_t entered;

static void fill(struct note note)
{
    for (size_t i = 0; i < note.bytes; i++)
        note.block[i] = (unsigned char)(note.bytes + i);
}

static void release(struct note *note)
{
    for (size_t i = 0; i < note->bytes; i++)
        CHECK_EQ(note->block[i], (unsigned char)(note->bytes + i));
    hak_free(note->block);
    *note = (struct note){NULL, 0};
}

static void *live(void *argument)
{
    struct racer *racer = argument;
    static _Thread_local struct note notes[SLOTS];
    for (uint32_t i = 0; i < STEPS; i++) {
        /* Tides, so that slabs become sparse and empty. */
        bool is_flood = i / 500 % 2 == 0;
        struct note *note = &notes[draw(racer) % SLOTS];
        if (note->block != NULL)
            release(note);
        if (is_flood || draw(racer) % 8 == 0) {
            note->bytes = 1 + draw(racer) % (draw(racer) % 8 == 0 ? 20000 : 700);
            note->block = hak_malloc(note->bytes);
            CHECK(note->block != NULL);
            fill(*note);
        }
    }
    for (uint32_t i = 0; i < SLOTS; i++)
        if (notes[i].block != NULL)
            release(&notes[i]);
    return NULL;
}

/* One thread after the other runs the body. */
static void live_often(struct racer *racer, void *(*body)(void *))
{
    for (uint32_t i = 0; i < LIVES; i++) {
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, NULL, body, racer), 0);
        CHECK_EQ(pthread_join(thread, NULL), 0);
    }
    atomic_fetch_sub(&workers_left, 1);
}

static void work(struct racer *racer)
{
    live_often(racer, live);
}

static void visit(struct racer *racer)
{
    while (atomic_load(&workers_left) > 0) {
        bool is_done;
        hak_maintain_visit(&is_done);
        hak_idle_collect();
        for (struct heap *heap = hak_registry_first(); heap != NULL; heap = heap->next) {
            if (!hak_stranger_enter(heap))
                continue;
            hak_heap_sweep(heap, atomic_fetch_add(&visits, 1), 0, 1 + (uint32_t)draw(racer) % 8);
            stumble(racer);
            hak_stranger_leave(heap);
            atomic_fetch_add(&entered, 1);
        }
        stumble(racer);
    }
}

/* Blocks of one size handed over in a few places: who takes one frees it, so that slabs of all
 * threads have frees on their way home when others look for memory. */
static _Atomic(void *) places[256];
static _Atomic uint64_t taken;

static void *exchange(void *argument)
{
    struct racer *racer = argument;
    uint32_t class_index = hak_class_of(BLOCK_BYTES);
    for (uint32_t i = 0; i < STEPS; i++) {
        unsigned char *block = hak_malloc(BLOCK_BYTES);
        CHECK(block != NULL);
        memset(block, (int)racer->index + 1, BLOCK_BYTES);
        unsigned char *old = atomic_exchange(&places[draw(racer) % 256], block);
        for (size_t at = 0; old != NULL && at < BLOCK_BYTES; at++)
            CHECK_EQ(old[at], old[0]);
        hak_free(old);
        if (draw(racer) % 16 != 0)
            continue;
        /* As when no started superslab has room. */
        struct heap *own = hak_own_heap();
        hak_gate_enter(&own->gate);
        if (hak_idle_take(own, class_index) != NULL)
            atomic_fetch_add(&taken, 1);
        CHECK(hak_cache_is_sound(hak_cache_of(own)));
        hak_gate_leave(&own->gate);
    }
    return NULL;
}

static void work_with_others(struct racer *racer)
{
    live_often(racer, exchange);
}

TEST(threads_that_take_slabs_from_each_other_lose_no_byte)
{
    CHECK(hak_process_start());
    atomic_store(&workers_left, WORKERS);
    void (*const bodies[])(struct racer *) = {work_with_others, work_with_others, work_with_others,
                                              visit};
    race(4, bodies);
    CHECK(atomic_load(&taken) > 0);
}

TEST(visitors_and_owners_do_not_meet)
{
    CHECK(hak_process_start());
    hak_store_relaxed(&hak_policy.decay_ms, 0);
    atomic_store(&workers_left, WORKERS);
    void (*const bodies[])(struct racer *) = {work, work, work, visit, visit};
    race(5, bodies);
    CHECK(atomic_load(&entered) > 0);
}

/* Three threads one after the other, in no order but what hakmem makes: one takes a slab out of a
 * parked heap, one adopts that heap and has not entered it yet, one visits it and reads what the
 * first one changed. */
static _Atomic uint32_t turn;
static pthread_barrier_t line;
static struct heap *parked_heap;

static void wait_for_turn(uint32_t number)
{
    while (hak_load_relaxed(&turn) != number)
        sched_yield();
}

static void take_abandoned(struct heap *own)
{
    hak_gate_enter(&own->gate);
    CHECK(hak_registry_take_abandoned(own, hak_class_of(BLOCK_BYTES)) != NULL);
    hak_gate_leave(&own->gate);
}

static void adopt(struct heap *own)
{
    CHECK(own != parked_heap);
    while (!hak_heap_adopt_parked(parked_heap)) /* a thread that ends may have the lock */
        sched_yield();
}

static void visit_adopted(struct heap *own)
{
    CHECK(own != parked_heap);
    while (!hak_stranger_try_enter(parked_heap))
        sched_yield();
    CHECK(hak_cache_is_sound(hak_cache_of(parked_heap)));
    hak_stranger_leave(parked_heap);
}

static void (*const turns[])(struct heap *own) = {take_abandoned, adopt, visit_adopted};

static void *take_turn(void *argument)
{
    uint32_t number = *(uint32_t *)argument;
    struct heap *own = hak_thread_heap(); /* or it would adopt the parked one */
    pthread_barrier_wait(&line);
    pthread_barrier_wait(&line);
    wait_for_turn(number);
    turns[number](own);
    hak_store_relaxed(&turn, number + 1);
    return NULL;
}

static void *leave_a_block(void *place)
{
    *(void **)place = hak_malloc(BLOCK_BYTES);
    return hak_own_heap();
}

TEST(a_visitor_sees_what_was_done_before_the_heap_was_adopted)
{
    pthread_t threads[3], owner;
    uint32_t numbers[] = {0, 1, 2};
    void *block, *heap;
    CHECK(hak_thread_heap() != NULL);
    CHECK_EQ(pthread_barrier_init(&line, NULL, 4), 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, take_turn, &numbers[i]), 0);
    pthread_barrier_wait(&line);
    CHECK_EQ(pthread_create(&owner, NULL, leave_a_block, &block), 0);
    CHECK_EQ(pthread_join(owner, &heap), 0);
    parked_heap = heap;
    pthread_barrier_wait(&line);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    hak_heap_park(parked_heap);
    hak_free(block);
}
