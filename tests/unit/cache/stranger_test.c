/* SPDX-License-Identifier: MIT */
/* tests/unit/cache/stranger_test.c - who may enter a heap that belongs to a running thread. */
#include "cache/refill.h"
#include "cache/stranger.h"

#include "cache/lifecycle.h"
#include "cache/registry.h"
#include "check.h"

TEST(a_heap_at_rest_is_entered_and_left)
{
    struct heap *heap = hak_thread_heap();
    CHECK(heap != NULL);
    CHECK(hak_stranger_enter(heap));
    CHECK(!hak_stranger_is_away(heap));
    hak_stranger_leave(heap);
    CHECK(hak_stranger_is_away(heap));
    CHECK(hak_stranger_enter(heap));
    hak_stranger_leave(heap);
}

TEST(a_heap_whose_owner_is_inside_is_not_entered)
{
    struct heap *heap = hak_thread_heap();
    hak_gate_enter(&heap->gate);
    CHECK(!hak_stranger_enter(heap));
    CHECK(hak_stranger_is_away(heap));
    hak_gate_leave(&heap->gate);
    CHECK(hak_stranger_enter(heap));
    hak_stranger_leave(heap);
}

TEST(a_parked_heap_is_not_entered)
{
    CHECK(hak_process_start());
    struct heap *heap = hak_heap_adopt();
    CHECK(heap != NULL);
    hak_gate_enter(&heap->gate);
    hak_cache_flush_all(hak_cache_of(heap));
    hak_heap_park(heap);
    CHECK(!hak_stranger_enter(heap));
    CHECK(hak_stranger_is_away(heap));
}

TEST(a_parked_heap_with_a_visitor_is_left_alone_by_everybody_else)
{
    struct heap *own = hak_thread_heap();
    struct heap *other = hak_heap_adopt();
    uint32_t class_index = hak_class_of(64);
    hak_gate_enter(&other->gate);
    bool is_zero;
    void *block = hak_heap_take_one(other, class_index, &is_zero);
    CHECK(block != NULL);
    hak_gate_leave(&other->gate);
    CHECK(hak_gate_mark(&other->gate)); /* the visitor comes just before the owner parks */
    hak_heap_park(other);
    hak_gate_enter(&own->gate);
    CHECK(hak_registry_take_abandoned(own, class_index) == NULL);
    hak_gate_release(&other->gate);
    struct slab *slab = hak_registry_take_abandoned(own, class_index);
    CHECK(slab != NULL && slab == hak_slab_at(block));
    hak_gate_leave(&own->gate);
}

static void count(struct heap *heap, enum heap_access access, void *context)
{
    (void)heap;
    if (access == HEAP_OPEN)
        ++*(int *)context;
}

TEST(a_visit_of_all_heaps_keeps_single_visitors_out)
{
    struct heap *heap = hak_thread_heap();
    int opened = 0;
    CHECK(hak_stranger_enter(heap));
    hak_registry_visit(count, &opened);
    CHECK_EQ(opened, 0);
    hak_stranger_leave(heap);
    hak_registry_visit(count, &opened);
    CHECK_EQ(opened, 1);
}

TEST(a_parked_heap_is_adopted_by_name_and_parked_again)
{
    CHECK(hak_process_start());
    struct heap *first = hak_heap_adopt();
    struct heap *second = hak_heap_adopt();
    CHECK(!hak_heap_adopt_parked(first));
    hak_gate_enter(&first->gate);
    hak_heap_park(first);
    hak_gate_enter(&second->gate);
    hak_heap_park(second);
    CHECK(hak_heap_adopt_parked(first));
    CHECK(!hak_heap_adopt_parked(first));
    CHECK_EQ(hak_load_relaxed(&hak_active_caches), 1);
    CHECK(hak_heap_adopt() == second);
    hak_gate_enter(&first->gate);
    hak_heap_park(first);
    CHECK(hak_heap_adopt() == first);
}
