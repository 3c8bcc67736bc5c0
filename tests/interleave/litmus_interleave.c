/* SPDX-License-Identifier: MIT */
/* tests/interleave/litmus_interleave.c - the checker itself: what C11 allows, it finds; what C11
 * forbids, it does not. */
#include "../check.h"
#include "base/atomic.h"
#include "interleave.h"

static _Atomic uint32_t x, y, z;
static uint32_t r1, r2, r3, r4, plain;

static void note_pair(void)
{
    interleave_note(r1 * 4 + r2);
}

#define RUN(first, second, at_end)                                                                 \
    interleave_explore(&(const struct harness){.name = __func__,                                   \
                                               .bodies = {first, second},                          \
                                               .end = at_end,                                      \
                                               .preemptions = UNBOUNDED,                           \
                                               .oddities = UNBOUNDED})

#define BODY(name) static void name(void)
BODY(store_x_then_load_y)
{
    hak_store_relaxed(&x, 1);
    r1 = hak_load_relaxed(&y);
}
BODY(store_y_then_load_x)
{
    hak_store_relaxed(&y, 1);
    r2 = hak_load_relaxed(&x);
}
BODY(store_x_fence_load_y)
{
    hak_store_relaxed(&x, 1);
    hak_fence_full();
    r1 = hak_load_relaxed(&y);
}
BODY(store_y_fence_load_x)
{
    hak_store_relaxed(&y, 1);
    hak_fence_full();
    r2 = hak_load_relaxed(&x);
}
BODY(sc_store_x_load_y)
{
    atomic_store(&x, 1);
    r1 = atomic_load(&y);
}
BODY(sc_store_y_load_x)
{
    atomic_store(&y, 1);
    r2 = atomic_load(&x);
}

TEST(stores_may_pass_later_loads)
{
    CHECK(RUN(store_x_then_load_y, store_y_then_load_x, note_pair).failure == NULL);
    for (uint32_t outcome = 0; outcome < 4; outcome++)
        CHECK(interleave_saw(outcome / 2 * 4 + outcome % 2));
}

TEST(full_fences_stop_stores_from_passing_loads)
{
    CHECK(RUN(store_x_fence_load_y, store_y_fence_load_x, note_pair).failure == NULL);
    CHECK(!interleave_saw(0));
    CHECK(interleave_saw(1) && interleave_saw(4) && interleave_saw(5));
    CHECK(RUN(store_x_fence_load_y, store_y_then_load_x, note_pair).failure == NULL);
    CHECK(interleave_saw(0));
}

TEST(sequentially_consistent_operations_are_in_one_order)
{
    CHECK(RUN(sc_store_x_load_y, sc_store_y_load_x, note_pair).failure == NULL);
    CHECK(!interleave_saw(0));
    CHECK(interleave_saw(1) && interleave_saw(4) && interleave_saw(5));
}

BODY(store_x_change_load_y)
{
    uint32_t none = 0;
    hak_store_relaxed(&x, 1);
    (void)hak_cas_acquire(&z, &none, 1);
    r1 = hak_load_relaxed(&y);
}

TEST(a_change_that_acquires_is_not_a_full_fence)
{
    CHECK(RUN(store_x_change_load_y, store_y_fence_load_x, note_pair).failure == NULL);
    CHECK(interleave_saw(0));
}

BODY(write_release)
{
    plain = 1;
    hak_store_release(&x, 1);
}
BODY(write_relaxed)
{
    plain = 1;
    hak_store_relaxed(&x, 1);
}
BODY(write_fenced)
{
    plain = 1;
    atomic_thread_fence(memory_order_release);
    hak_store_relaxed(&x, 1);
}
BODY(write_late_fence)
{
    plain = 1;
    hak_store_relaxed(&x, 1);
    atomic_thread_fence(memory_order_release);
}
BODY(read_acquire)
{
    if (hak_load_acquire(&x) == 1)
        MUST(plain == 1);
}
BODY(read_relaxed)
{
    if (hak_load_relaxed(&x) == 1)
        MUST(plain == 1);
}
BODY(read_fenced)
{
    if (hak_load_relaxed(&x) == 1) {
        atomic_thread_fence(memory_order_acquire);
        MUST(plain == 1);
    }
}

TEST(a_message_passes_by_release_and_acquire_only)
{
    void (*const writers[])(void) = {write_release, write_fenced, write_relaxed, write_late_fence};
    void (*const readers[])(void) = {read_acquire, read_fenced, read_relaxed};
    for (int writer = 0; writer < 4; writer++)
        for (int reader = 0; reader < 3; reader++) {
            struct explored explored = RUN(writers[writer], readers[reader], NULL);
            CHECK_EQ(explored.failure == NULL, writer < 2 && reader < 2);
            CHECK(explored.failure == NULL || strstr(explored.failure, "data race") != NULL);
        }
}

BODY(store_both)
{
    hak_store_relaxed(&x, 1);
    hak_store_relaxed(&y, 1);
}
BODY(store_both_release)
{
    hak_store_relaxed(&x, 1);
    hak_store_release(&y, 1);
}
BODY(load_both)
{
    r1 = hak_load_relaxed(&y);
    r2 = hak_load_relaxed(&x);
}
BODY(load_both_acquire)
{
    r1 = hak_load_acquire(&y);
    r2 = hak_load_relaxed(&x);
}

TEST(atomic_messages_are_ordered_by_release_and_acquire_only)
{
    CHECK(RUN(store_both, load_both, note_pair).failure == NULL);
    CHECK(interleave_saw(4));
    CHECK(RUN(store_both_release, load_both, note_pair).failure == NULL);
    CHECK(interleave_saw(4));
    CHECK(RUN(store_both, load_both_acquire, note_pair).failure == NULL);
    CHECK(interleave_saw(4));
    CHECK(RUN(store_both_release, load_both_acquire, note_pair).failure == NULL);
    CHECK(!interleave_saw(4) && interleave_saw(5) && interleave_saw(1) && interleave_saw(0));
}

BODY(store_twice)
{
    hak_store_relaxed(&x, 1);
    hak_store_relaxed(&x, 2);
}
BODY(load_twice)
{
    r1 = hak_load_relaxed(&x);
    r2 = hak_load_relaxed(&x);
}

TEST(loads_of_one_object_never_go_back)
{
    CHECK(RUN(store_twice, load_twice, note_pair).failure == NULL);
    for (uint32_t first = 0; first < 3; first++)
        for (uint32_t second = 0; second < 3; second++)
            CHECK_EQ(interleave_saw(first * 4 + second), first <= second);
}

BODY(store_x_then_y)
{
    hak_store_relaxed(&x, 1);
    hak_store_relaxed(&y, 2);
}
BODY(store_y_then_x)
{
    hak_store_relaxed(&y, 1);
    hak_store_relaxed(&x, 2);
}
BODY(store_x_then_y_release)
{
    hak_store_relaxed(&x, 1);
    hak_store_release(&y, 2);
}
BODY(store_y_then_x_release)
{
    hak_store_relaxed(&y, 1);
    hak_store_release(&x, 2);
}
BODY(note_both)
{
    interleave_note(hak_load_relaxed(&x) * 4 + hak_load_relaxed(&y));
}

TEST(stores_of_two_threads_may_take_either_order_in_each_object)
{
    CHECK(RUN(store_x_then_y, store_y_then_x, note_both).failure == NULL);
    CHECK(interleave_saw(1 * 4 + 1)); /* in no order of the threads */
    CHECK(interleave_saw(2 * 4 + 2) && interleave_saw(1 * 4 + 2) && interleave_saw(2 * 4 + 1));
    CHECK(RUN(store_x_then_y_release, store_y_then_x_release, note_both).failure == NULL);
    CHECK(interleave_saw(1 * 4 + 1));
}

BODY(store_x)
{
    hak_store_release(&x, 1);
}
BODY(store_y)
{
    hak_store_release(&y, 1);
}
BODY(sc_store_x)
{
    atomic_store(&x, 1);
}
BODY(sc_store_y)
{
    atomic_store(&y, 1);
}
BODY(load_x_then_y)
{
    r1 = hak_load_acquire(&x);
    r2 = hak_load_acquire(&y);
}
BODY(load_y_then_x)
{
    r3 = hak_load_acquire(&y);
    r4 = hak_load_acquire(&x);
}
BODY(sc_load_x_then_y)
{
    r1 = atomic_load(&x);
    r2 = atomic_load(&y);
}
BODY(sc_load_y_then_x)
{
    r3 = atomic_load(&y);
    r4 = atomic_load(&x);
}
BODY(note_four)
{
    interleave_note(r1 * 8 + r2 * 4 + r3 * 2 + r4);
}

TEST(readers_may_see_two_writes_in_different_orders_unless_they_are_sequentially_consistent)
{
    struct harness harness = {.name = "IRIW",
                              .bodies = {store_x, store_y, load_x_then_y, load_y_then_x},
                              .end = note_four,
                              .preemptions = UNBOUNDED,
                              .oddities = UNBOUNDED};
    CHECK(interleave_explore(&harness).failure == NULL);
    CHECK(interleave_saw(10)); /* 1, 0, 1, 0 */
    struct harness consistent = {
        .name = "IRIW.sc",
        .bodies = {sc_store_x, sc_store_y, sc_load_x_then_y, sc_load_y_then_x},
        .end = note_four,
        .preemptions = UNBOUNDED,
        .oddities = UNBOUNDED};
    CHECK(interleave_explore(&consistent).failure == NULL);
    CHECK(!interleave_saw(10));
    CHECK(interleave_saw(15) && interleave_saw(8) && interleave_saw(2));
}

BODY(add_relaxed)
{
    hak_fetch_add_relaxed(&x, 1);
}
BODY(store_two_relaxed)
{
    hak_store_relaxed(&x, 2);
}
BODY(read_two)
{
    if (hak_load_acquire(&x) == 2)
        MUST(plain == 1);
}

TEST(a_change_continues_a_release_and_a_store_does_not)
{
    struct harness harness = {.name = "release sequence",
                              .bodies = {write_release, add_relaxed, read_two},
                              .preemptions = UNBOUNDED,
                              .oddities = UNBOUNDED};
    CHECK(interleave_explore(&harness).failure == NULL);
    harness.bodies[1] = store_two_relaxed;
    CHECK(RUN(write_release, store_two_relaxed, NULL).failure == NULL);
    CHECK(interleave_explore(&harness).failure != NULL);
}

BODY(add_twice)
{
    hak_fetch_add_relaxed(&x, 1);
    hak_fetch_add_relaxed(&x, 1);
}
BODY(must_be_four)
{
    MUST(hak_load_relaxed(&x) == 4);
}
BODY(add_in_two_steps)
{
    hak_counter_add(&x, 1);
    hak_counter_add(&x, 1);
}

TEST(changes_are_never_lost_but_loads_and_stores_are)
{
    CHECK(RUN(add_twice, add_twice, must_be_four).failure == NULL);
    CHECK(RUN(add_in_two_steps, add_in_two_steps, must_be_four).failure != NULL);
}

static _Atomic uint16_t halves[2];
BODY(store_halves)
{
    hak_store_relaxed(&halves[0], 1);
    hak_store_release(&halves[1], 1);
}
BODY(load_whole)
{
    uint32_t whole = __atomic_load_n((uint32_t *)(void *)halves, __ATOMIC_RELAXED);
    r1 = whole & 0xffff;
    r2 = whole >> 16;
}

TEST(an_object_and_its_half_are_one)
{
    CHECK(RUN(store_halves, load_whole, note_pair).failure == NULL);
    CHECK(interleave_saw(0) && interleave_saw(4) && interleave_saw(5));
    CHECK(!interleave_saw(1));
}

BODY(write_plain)
{
    plain++;
}

TEST(plain_accesses_without_order_are_a_race)
{
    CHECK(RUN(write_plain, write_plain, NULL).failure != NULL);
}
