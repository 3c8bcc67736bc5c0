/* SPDX-License-Identifier: MIT */
/* tests/unit/cache/idle_test.c - working threads use what was freed for sleeping ones. */
#include "cache/idle.h"

#include "api/api.h"
#include "cache/lifecycle.h"
#include "cache/registry.h"
#include "cache/stranger.h"
#include "check.h"
#include "policy/policy_table.h"

#include <pthread.h>
#include <unistd.h>

#define BLOCKS 5000
#define BYTES 1000

static void *blocks[BLOCKS];
static pthread_barrier_t barrier;
static struct heap *sleeper;

static void *build_and_sleep(void *unused)
{
    for (int i = 0; i < BLOCKS; i++)
        CHECK((blocks[i] = hak_malloc(BYTES)) != NULL);
    sleeper = hak_own_heap();
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return unused;
}

static pthread_t start_sleeper(void)
{
    pthread_t thread;
    CHECK(hak_thread_heap() != NULL);
    hak_store_relaxed(&hak_policy.decay_ms, UINT64_MAX / 2); /* nobody looks but we */
    CHECK_EQ(pthread_barrier_init(&barrier, NULL, 2), 0);
    CHECK_EQ(pthread_create(&thread, NULL, build_and_sleep, NULL), 0);
    pthread_barrier_wait(&barrier);
    return thread;
}

static void end_sleeper(pthread_t thread)
{
    pthread_barrier_wait(&barrier);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

static void free_every(int step)
{
    for (int i = 0; i < BLOCKS; i += step) {
        hak_free(blocks[i]);
        blocks[i] = NULL;
    }
    hak_thread_flush();
}

static struct slab *take(void)
{
    struct heap *own = hak_own_heap();
    hak_gate_enter(&own->gate);
    struct slab *slab = hak_idle_take(own, hak_class_of(BYTES));
    hak_gate_leave(&own->gate);
    return slab;
}

TEST(slabs_of_a_sleeping_thread_that_others_freed_into_are_taken)
{
    pthread_t thread = start_sleeper();
    CHECK_EQ(take(), NULL); /* nothing was freed */
    free_every(2);
    CHECK_EQ(take(), NULL); /* it may be at work: this is the first look */
    struct slab *slab = take();
    CHECK(slab != NULL);
    CHECK_EQ(hak_load_relaxed(&slab->owner), &hak_own_heap()->owner);
    CHECK(!hak_slab_is_full(slab));
    CHECK(hak_stranger_is_away(sleeper));
    void *block = hak_malloc(BYTES);
    CHECK(block != NULL);
    end_sleeper(thread);
}

TEST(an_empty_slab_that_goes_to_the_depot_is_not_handed_out)
{
    pthread_t thread = start_sleeper();
    free_every(1);
    struct heap *own = hak_own_heap();
    hak_free(hak_malloc(BYTES));
    hak_gate_enter(&own->gate);
    hak_cache_flush_all(hak_cache_of(own));
    CHECK(own->spare[hak_class_of(BYTES)] != NULL); /* it keeps one, and no second */
    hak_gate_leave(&own->gate);
    CHECK_EQ(take(), NULL); /* the first look */
    const struct slab *slab = take();
    CHECK(slab == NULL || slab->place != SLAB_NOWHERE);
    CHECK(hak_cache_is_sound(hak_cache_of(own)));
    end_sleeper(thread);
}

TEST(a_thread_that_was_at_work_since_the_last_look_is_left_alone)
{
    pthread_t thread = start_sleeper();
    free_every(2);
    CHECK_EQ(take(), NULL);
    hak_stat_add(&sleeper->stats, refills, 1);
    CHECK_EQ(take(), NULL);
    CHECK(take() != NULL);
    end_sleeper(thread);
}

TEST(a_thread_inside_its_gate_is_left_alone)
{
    pthread_t thread = start_sleeper();
    free_every(2);
    CHECK_EQ(take(), NULL);
    hak_store_relaxed(&sleeper->gate.held, 1);
    CHECK_EQ(take(), NULL);
    hak_store_relaxed(&sleeper->gate.held, 0);
    CHECK_EQ(hak_stranger_try_lock(), true);
    CHECK_EQ(take(), NULL);
    hak_stranger_unlock();
    CHECK(take() != NULL);
    end_sleeper(thread);
}

TEST(the_empty_slabs_of_a_sleeping_thread_go_back_to_the_depot)
{
    pthread_t thread = start_sleeper();
    free_every(1);
    uint64_t before = hak_load_relaxed(&sleeper->stats.counters[HAK_STAT_retired_slabs]);
    hak_idle_collect();
    hak_idle_collect();
    CHECK_EQ(hak_load_relaxed(&sleeper->owner.pending), NULL);
    uint64_t retired = hak_load_relaxed(&sleeper->stats.counters[HAK_STAT_retired_slabs]) - before;
    CHECK(retired >= BLOCKS * BYTES / HAK_SUPERSLAB_BYTES);
    end_sleeper(thread);
}

/* The state of a program is built by one thread and replaced by another: it is there once. */
TEST(what_one_thread_replaces_of_another_ones_blocks_needs_little_more_memory)
{
    pthread_t thread = start_sleeper();
    size_t before = hak_load_relaxed(&hak_region.committed_bytes);
    for (int round = 0; round < 8; round++)
        for (int i = round % 4; i < BLOCKS; i += 4) {
            hak_free(blocks[i]);
            CHECK((blocks[i] = hak_malloc(BYTES)) != NULL);
        }
    size_t more = hak_load_relaxed(&hak_region.committed_bytes) - before;
    CHECK(more <= BLOCKS * BYTES / 2);
    end_sleeper(thread);
}

/* So that visits to many sleeping threads, each a barrier on all processors, come to an end. */
TEST(a_heap_in_which_nothing_is_left_is_not_visited_until_something_happens)
{
    pthread_t thread = start_sleeper();
    uint64_t end_of_time = UINT64_MAX - 1;
    CHECK(hak_idle_is_due(sleeper, 0, 1000));
    CHECK(hak_stranger_enter(sleeper));
    uint64_t due_ms = 6000;
    sleeper->sweep_start_ms = due_ms - 1000;
    hak_idle_note_visit(sleeper, 0); /* it was at work before */
    for (int i = 0; i < 3; i++) {
        CHECK(!hak_idle_is_due(sleeper, due_ms - 1, 1000));
        CHECK(hak_idle_is_due(sleeper, due_ms, 1000));
        hak_idle_note_visit(sleeper, 0);
    }
    CHECK(!hak_idle_is_due(sleeper, end_of_time, 1000));
    free_every(2);
    CHECK(hak_idle_is_due(sleeper, 0, 1000)); /* frees on their way home */
    hak_heap_collect(sleeper);
    CHECK(hak_idle_is_due(sleeper, 0, 1000)); /* what they left may grow cold */
    hak_idle_note_visit(sleeper, 0);
    CHECK(!hak_idle_is_due(sleeper, due_ms - 1, 1000));
    CHECK(hak_idle_is_due(sleeper, due_ms, 1000));
    for (int i = 0; i < 3; i++)
        hak_idle_note_visit(sleeper, 0);
    CHECK(!hak_idle_is_due(sleeper, end_of_time, 1000));
    hak_stat_add(&sleeper->stats, flushes, 1); /* its thread was at work */
    CHECK(hak_idle_is_due(sleeper, 0, 1000));
    hak_idle_note_visit(sleeper, 0);
    CHECK(hak_idle_is_due(sleeper, due_ms, 1000));
    for (int i = 0; i < 9; i++) /* pages go back: there may be more next time */
        hak_idle_note_visit(sleeper, 4096);
    CHECK(hak_idle_is_due(sleeper, due_ms, 1000));
    sleeper->sweep_class = 0; /* a pass takes many visits */
    for (int i = 0; i < 9; i++)
        hak_idle_note_visit(sleeper, 0);
    CHECK(hak_idle_is_due(sleeper, 0, 1000));
    sleeper->sweep_class = HAK_CLASS_COUNT;
    hak_stranger_leave(sleeper);
    end_sleeper(thread);
}

#define LARGE_BYTES 20000

/* Has blocks of a class that no bin holds yet, and frees one of them while a visitor is there. */
static void *free_under_a_visit(void *unused)
{
    for (int i = 0; i < 2; i++)
        CHECK((blocks[i] = hak_malloc(LARGE_BYTES)) != NULL);
    sleeper = hak_own_heap();
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    hak_free(blocks[0]);
    return unused;
}

/* The owner has looked at the block's tag and waits at its gate; when the visitor has left, the
 * slab is another heap's, and the block goes there. */
TEST(a_block_whose_slab_is_taken_while_its_owner_frees_it_goes_to_the_new_owner)
{
    pthread_t thread;
    struct heap *own = hak_thread_heap();
    CHECK(own != NULL);
    CHECK_EQ(pthread_barrier_init(&barrier, NULL, 2), 0);
    CHECK_EQ(pthread_create(&thread, NULL, free_under_a_visit, NULL), 0);
    pthread_barrier_wait(&barrier);
    CHECK(hak_stranger_enter(sleeper));
    pthread_barrier_wait(&barrier);
    usleep(50000); /* it comes to its gate; if it is late, the test is only easier to pass */
    hak_gate_enter(&own->gate);
    struct slab *slab = hak_heap_surrender(sleeper, hak_class_of(LARGE_BYTES));
    CHECK(slab != NULL);
    hak_heap_receive(own, slab);
    hak_stranger_leave(sleeper);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(slab->used, 2);
    CHECK_EQ(hak_load_relaxed(&slab->remote_count), 1);
    hak_heap_collect(own);
    CHECK_EQ(slab->used, 1);
    CHECK(hak_cache_is_sound(hak_cache_of(own)));
    hak_gate_leave(&own->gate);
}
