/* SPDX-License-Identifier: MIT */
/* tests/unit/cache/registry_test.c - heaps are made, parked and adopted again. */
#include "cache/lifecycle.h"
#include "cache/refill.h"
#include "cache/registry.h"
#include "cache/stranger.h"
#include "check.h"
#include "os/lock.h"
#include "os/os.h"

#include <pthread.h>

#define CLASS hak_class_of(64)

static struct heap *adopt(void)
{
    CHECK(hak_process_start());
    struct heap *heap = hak_heap_adopt();
    CHECK(heap != NULL);
    CHECK_EQ(hak_load_relaxed(&heap->state), HEAP_ACTIVE);
    hak_gate_enter(&heap->gate);
    return heap;
}

static void *adopt_as_thread(void *heap)
{
    *(struct heap **)heap = adopt();
    return NULL;
}

/* A heap that another thread has, which is not here any more. */
static struct heap *adopt_elsewhere(void)
{
    struct heap *heap = NULL;
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, adopt_as_thread, &heap), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    return heap;
}

static void park(struct heap *heap)
{
    hak_cache_flush_all(hak_cache_of(heap));
    hak_heap_park(heap);
    CHECK_EQ(hak_load_relaxed(&heap->state), HEAP_PARKED);
}

TEST(heaps_have_different_ids_and_are_numbered_from_1_on)
{
    struct heap *first = adopt(), *second = adopt();
    CHECK(first != second);
    CHECK(first->owner.heap_id != second->owner.heap_id);
    CHECK_EQ(first->number, 1);
    CHECK_EQ(second->number, 2);
    CHECK_EQ(hak_cache_of(first)->hot.others, hak_tag_others(first->owner.heap_id));
    CHECK_EQ(first->owner.heap_id, first->owner.heap_id);
    CHECK_EQ(hak_cache_of(first)->hot.is_heap, 1);
}

TEST(a_parked_heap_is_adopted_before_a_new_one_is_made)
{
    struct heap *first = adopt();
    CHECK_EQ(hak_load_relaxed(&hak_active_caches), 1);
    park(first);
    CHECK_EQ(hak_load_relaxed(&hak_active_caches), 0);
    CHECK(!hak_gate_is_nested(&first->gate));
    CHECK_EQ(adopt(), first);
    CHECK(adopt() != first);
    CHECK_EQ(hak_load_relaxed(&hak_active_caches), 2);
}

TEST(the_list_of_all_heaps_keeps_the_parked_ones)
{
    struct heap *first = adopt(), *second = adopt();
    park(first);
    uint32_t found = 0;
    for (struct heap *heap = hak_registry_first(); heap != NULL; heap = heap->next)
        found += heap == first || heap == second;
    CHECK_EQ(found, 2);
}

TEST(a_slab_with_free_blocks_is_taken_out_of_a_parked_heap)
{
    struct heap *dead = adopt(), *heap = adopt();
    void *block = hak_cache_refill(hak_cache_of(dead), CLASS);
    park(dead);
    struct slab *slab = hak_registry_take_abandoned(heap, CLASS);
    CHECK_EQ(slab, hak_slab_at(block));
    CHECK_EQ(hak_load_relaxed(&slab->owner), &heap->owner);
    CHECK_EQ(slab->place, SLAB_PARTIAL);
    CHECK_EQ(hak_registry_take_abandoned(heap, CLASS), NULL);
    CHECK(hak_cache_is_sound(hak_cache_of(heap)));
}

TEST(a_spare_slab_of_a_parked_heap_can_be_taken_as_well)
{
    struct heap *dead = adopt(), *heap = adopt();
    void *block = hak_cache_refill(hak_cache_of(dead), CLASS);
    hak_combine_bypass(hak_slab_at(block), block);
    park(dead);
    CHECK(dead->spare[CLASS] != NULL);
    struct slab *slab = hak_registry_take_abandoned(heap, CLASS);
    CHECK(slab != NULL);
    CHECK_EQ(dead->spare[CLASS], NULL);
    CHECK_EQ(heap->spare[CLASS], slab);
}

TEST(a_refill_prefers_an_abandoned_slab_to_a_new_one)
{
    struct heap *dead = adopt(), *heap = adopt();
    void *block = hak_cache_refill(hak_cache_of(dead), CLASS);
    park(dead);
    void *other = hak_cache_refill(hak_cache_of(heap), CLASS);
    CHECK_EQ(hak_slab_at(other), hak_slab_at(block));
    CHECK(other != block);
    CHECK_EQ(hak_load_relaxed(&heap->stats.counters[HAK_STAT_abandoned_slabs]), 1);
}

TEST(nothing_is_taken_from_active_heaps)
{
    struct heap *other = adopt(), *heap = adopt();
    CHECK(hak_cache_refill(hak_cache_of(other), CLASS) != NULL);
    CHECK_EQ(hak_registry_take_abandoned(heap, CLASS), NULL);
}

TEST(remote_frees_that_wait_for_a_parked_heap_are_collected_on_the_way)
{
    struct heap *dead = adopt(), *heap = adopt();
    uint32_t count = hak_size_classes[CLASS].block_count;
    void *first = hak_cache_refill(hak_cache_of(dead), CLASS);
    struct slab *slab = hak_slab_at(first);
    void *last = first;
    while (slab->used < count) {
        last = hak_cache_refill(hak_cache_of(dead), CLASS);
        hak_cache_of(dead)->hot.bins[CLASS].top =
            hak_cache_of(dead)->magazines[CLASS].slots; /* what it filled is live */
    }
    park(dead); /* its only slab is full: on no list */
    CHECK_EQ(hak_registry_take_abandoned(heap, CLASS), NULL);
    hak_combine_bypass(slab, last);
    CHECK_EQ(hak_registry_take_abandoned(heap, CLASS), slab);
    CHECK_EQ(slab->used, count - 1);
}

TEST(what_waits_for_parked_heaps_can_be_drained)
{
    struct heap *dead = adopt();
    void *block = hak_cache_refill(hak_cache_of(dead), hak_class_of(8192));
    park(dead);
    hak_combine_bypass(hak_slab_at(block), block);
    CHECK_EQ(hak_slab_record_count(), 1);
    hak_registry_stop_heaps(NULL, 0);
    hak_registry_drain_parked(UINT64_MAX); /* does nothing while the registry is busy */
    CHECK_EQ(hak_slab_record_count(), 1);
    hak_registry_restart_heaps();
    hak_registry_drain_parked(UINT64_MAX);
    CHECK_EQ(hak_slab_record_count(), 0);
    CHECK_EQ(hak_load_relaxed(&dead->state), HEAP_PARKED);
}

TEST(all_heaps_are_stopped_but_those_whose_owner_stays_inside)
{
    struct heap *own = adopt(), *idle = adopt(), *busy = adopt();
    hak_gate_leave(&idle->gate);
    uint64_t before = hak_os_clock_ms();
    hak_registry_stop_heaps(own, 30);
    CHECK(hak_os_clock_ms() - before >= 26); /* the clock's step is up to 4 ms */
    CHECK_EQ(hak_load_relaxed(&hak_gates_closed), 1);
    CHECK_EQ(hak_load_relaxed(&busy->gate.held), 1);
    hak_registry_restart_heaps();
    CHECK_EQ(hak_load_relaxed(&hak_gates_closed), 0);
    hak_gate_enter(&idle->gate);
    CHECK(hak_gate_is_nested(&idle->gate));
}

TEST(in_the_child_of_a_fork_open_heaps_are_parked_and_others_frozen_when_one_is_sought)
{
    struct heap *own = adopt(), *idle = adopt_elsewhere(), *busy = adopt_elsewhere();
    hak_gate_leave(&idle->gate);
    hak_registry_stop_heaps(own, 0);
    hak_registry_restart_in_child(own, NULL);
    CHECK_EQ(hak_load_relaxed(&hak_active_caches), 1);
    CHECK_EQ(hak_load_relaxed(&idle->state), HEAP_ACTIVE);
    hak_registry_drain_parked(UINT64_MAX);
    CHECK_EQ(hak_load_relaxed(&own->state), HEAP_ACTIVE);
    CHECK_EQ(hak_load_relaxed(&idle->state), HEAP_PARKED);
    CHECK_EQ(hak_load_relaxed(&busy->state), HEAP_FROZEN);
    CHECK_EQ(hak_load_relaxed(&hak_active_caches), 1);
    CHECK_EQ(adopt(), idle);
    CHECK(adopt() != busy);
}

TEST(a_heap_adopted_in_the_child_is_no_orphan)
{
    struct heap *own = adopt(), *parked = adopt(), *orphan = adopt_elsewhere();
    park(parked);
    hak_gate_leave(&orphan->gate);
    hak_registry_stop_heaps(own, 0);
    hak_registry_restart_in_child(own, NULL);
    CHECK_EQ(adopt(), parked);
    hak_gate_leave(&parked->gate);
    CHECK_EQ(adopt(), orphan);
    hak_gate_leave(&orphan->gate);
    hak_registry_drain_parked(UINT64_MAX);
    CHECK_EQ(hak_load_relaxed(&parked->state), HEAP_ACTIVE);
    CHECK_EQ(hak_load_relaxed(&orphan->state), HEAP_ACTIVE);
    struct heap *fresh = adopt();
    CHECK(fresh != own && fresh != parked && fresh != orphan);
}

/* `from` has freed a block of `to`, and stands still before it pushes; or `collector` holds what it
 * took from its pending stack. */
TEST(in_the_child_tokens_in_the_hands_of_others_come_back)
{
    struct heap *own = adopt(), *busy = adopt_elsewhere();
    void *block = hak_cache_refill(hak_cache_of(own), CLASS);
    struct slab *slab = hak_slab_at(block);
    uint32_t used = slab->used;
    hak_combine_bypass(slab, block);
    CHECK_EQ(hak_pending_take_all(&own->owner), slab); /* into the hands of `busy` */
    hak_gate_leave(&own->gate);
    hak_registry_stop_heaps(own, 0);
    hak_registry_restart_in_child(own, NULL);
    hak_gate_enter(&own->gate);
    hak_heap_collect(own);
    CHECK_EQ(slab->used, used - 1);
    CHECK_EQ(hak_load_relaxed(&slab->remote_count), 0);
    hak_registry_drain_parked(UINT64_MAX);
    CHECK_EQ(hak_load_relaxed(&busy->state), HEAP_FROZEN);
}

TEST(in_the_child_a_count_without_bits_is_forgotten)
{
    struct heap *own = adopt(), *busy = adopt_elsewhere();
    void *block = hak_cache_refill(hak_cache_of(own), CLASS);
    struct slab *slab = hak_slab_at(block);
    hak_fetch_add_relaxed(&slab->remote_count, 3); /* by `busy`, which is copied before its bits */
    hak_gate_leave(&own->gate);
    hak_registry_stop_heaps(own, 0);
    hak_registry_restart_in_child(own, NULL);
    CHECK_EQ(hak_load_relaxed(&slab->remote_count), 0);
    CHECK_EQ(hak_load_relaxed(&own->owner.pending), NULL);
    CHECK(hak_gate_is_nested(&busy->gate));
}

/* A copy of which no handler heard; `copier` is the thread that made it. */
static void settle(struct heap *own)
{
    struct copier copier = {own, NULL};
    hak_lock_begin_settling();
    bool is_any_half = hak_registry_settle_gates(&copier);
    hak_registry_mend();
    hak_stranger_mend();
    hak_registry_settle(&copier, is_any_half);
    hak_lock_end_settling();
}

TEST(in_a_raw_copy_heaps_that_others_were_in_are_frozen_and_the_others_are_orphans)
{
    struct heap *own = adopt(), *idle = adopt_elsewhere(), *busy = adopt_elsewhere();
    hak_gate_leave(&own->gate);
    hak_gate_leave(&idle->gate);
    settle(own);
    CHECK_EQ(hak_load_relaxed(&own->state), HEAP_ACTIVE);
    CHECK_EQ(hak_load_relaxed(&idle->state), HEAP_ACTIVE);
    CHECK_EQ(hak_load_relaxed(&busy->state), HEAP_FROZEN);
    CHECK_EQ(hak_load_relaxed(&hak_active_caches), 1);
    CHECK_EQ(adopt(), idle);
}

TEST(in_a_raw_copy_a_heap_that_was_visited_is_frozen_also_its_makers_own)
{
    struct heap *own = adopt(), *claimed = adopt_elsewhere();
    hak_gate_leave(&own->gate);
    hak_gate_leave(&claimed->gate);
    CHECK(hak_gate_mark(&own->gate));
    CHECK(hak_gate_await(&own->gate, 0));
    CHECK(hak_gate_mark(&claimed->gate)); /* its stranger is not in yet */
    settle(own);
    CHECK_EQ(hak_load_relaxed(&own->state), HEAP_FROZEN);
    CHECK_EQ(hak_load_relaxed(&claimed->state), HEAP_ACTIVE);
    CHECK_EQ(hak_load_relaxed(&own->gate.claimed), GATE_UNCLAIMED);
    CHECK_EQ(hak_load_relaxed(&claimed->gate.claimed), GATE_UNCLAIMED);
    CHECK(!hak_heap_enter(own));
    CHECK(!hak_gate_is_nested(&own->gate));
    CHECK_EQ(hak_load_relaxed(&hak_active_caches), 0);
}

TEST(a_raw_copy_made_between_a_heap_and_its_thread_keeps_the_heap_with_the_thread)
{
    struct heap *taken = adopt(); /* no thread pointer says so yet */
    settle(NULL);
    hak_gate_leave(&taken->gate);
    CHECK_EQ(hak_load_relaxed(&taken->state), HEAP_ACTIVE);
    CHECK(adopt() != taken);
}

static void *leave_a_lock(void *unused)
{
    hak_stranger_lock();
    return unused;
}

TEST(in_a_raw_copy_locks_of_absent_threads_are_given_back)
{
    struct heap *own = adopt();
    hak_gate_leave(&own->gate);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, leave_a_lock, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK(!hak_stranger_try_lock());
    settle(own);
    CHECK(hak_stranger_try_lock());
    hak_stranger_unlock();
}
