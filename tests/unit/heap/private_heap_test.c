/* SPDX-License-Identifier: MIT */
/* tests/unit/heap/private_heap_test.c - records of private heaps: handles, locks, lists, forks. */
#include "heap/private_heap.h"

#include "api/api.h"
#include "check.h"
#include "heap/refill.h"
#include "os/os_fault.h"
#include "process/start.h"
#include "public.h"
#include "region/meta.h"
#include "region/region.h"
#include "region/tag_map.h"
#include "span/large.h"
#include "threads.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCKS 3000

static struct private_heap *entered(void *handle)
{
    struct private_heap *heap = hak_private_enter(handle, "test");
    CHECK(heap != NULL);
    return heap;
}

TEST(a_handle_names_its_record_and_its_generation)
{
    hakmem_heap *first = new_heap(), *second = new_heap();
    CHECK(first != second);
    struct private_heap *record = entered(first);
    uint32_t id = record->heap.owner.heap_id;
    hak_private_leave(record);
    hakmem_heap_destroy(first);
    hakmem_heap *third = new_heap();
    CHECK(third != first);
    CHECK_EQ(entered(third), record);
    CHECK_EQ(record->heap.owner.heap_id, id);
    hak_private_leave(record);
}

TEST(ten_thousand_heaps_in_turn_use_one_record)
{
    hakmem_heap *heap = new_heap();
    hakmem_heap_destroy(heap);
    uint64_t slabs = hak_slab_record_count();
    size_t meta = hak_meta_bytes();
    for (int i = 0; i < 10000; i++) {
        heap = new_heap();
        char *small = hakmem_heap_malloc(heap, 100);
        char *large = i % 100 == 0 ? hakmem_heap_malloc(heap, 500000) : small;
        CHECK(small != NULL && large != NULL);
        *small = *large = 1;
        hakmem_heap_destroy(heap);
    }
    CHECK_EQ(hak_slab_record_count(), slabs);
    CHECK_EQ(hak_large_live_bytes(), 0);
    CHECK(hak_meta_bytes() - meta <= 64 * HAK_KIB);
    uint32_t private_count = 0;
    for (struct private_heap *i = hak_private_first(); i != NULL; i = i->next)
        private_count++;
    CHECK_EQ(private_count, 1);
}

TEST(a_generation_that_ends_begins_again_and_is_never_zero)
{
    hakmem_heap *heap = new_heap();
    struct private_heap *record = entered(heap);
    record->generation = 0xffff;
    hak_private_leave(record);
    hakmem_heap_destroy((hakmem_heap *)((uintptr_t)record | (uintptr_t)0xffff << 48));
    CHECK_EQ(record->generation, 1);
}

TEST(full_slabs_are_on_a_list_of_their_own)
{
    hakmem_heap *heap = new_heap();
    void *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        CHECK((blocks[i] = hakmem_heap_malloc(heap, 1000)) != NULL);
    struct private_heap *record = entered(heap);
    CHECK(!hak_list_is_empty(&record->heap.full));
    CHECK(hak_private_is_sound(record));
    hak_private_leave(record);
    for (int i = 0; i < BLOCKS; i++)
        hakmem_heap_free(heap, blocks[i]);
    entered(heap);
    CHECK(hak_list_is_empty(&record->heap.full));
    CHECK(hak_private_is_sound(record));
    hak_private_leave(record);
    hakmem_heap_destroy(heap);
    CHECK_EQ(hak_slab_record_count(), 0);
}

static void take_and_free(hakmem_heap *heap, size_t bytes)
{
    void *blocks[100];
    for (int i = 0; i < 100; i++)
        CHECK((blocks[i] = hakmem_heap_malloc(heap, bytes)) != NULL);
    for (int i = 0; i < 100; i++)
        hakmem_heap_free(heap, blocks[i]);
}

/* They would serve nobody else. */
TEST(a_private_heap_keeps_one_empty_slab_of_each_class_of_small_blocks)
{
    hakmem_heap *heap = new_heap();
    take_and_free(heap, 60000);
    take_and_free(heap, 2000);
    struct private_heap *record = entered(heap);
    hak_heap_collect(&record->heap);
    CHECK_EQ(record->heap.spare_count[hak_class_of(2000)], 1);
    CHECK_EQ(record->heap.spare_count[hak_class_of(60000)], 0);
    hak_private_leave(record);
}

TEST(a_private_heap_takes_no_slab_of_a_shared_one)
{
    void *left = hak_malloc(48);
    CHECK(left != NULL);
    hak_thread_flush();
    hakmem_heap *heap = new_heap();
    void *block = hakmem_heap_malloc(heap, 48);
    CHECK(hak_slab_at(block) != hak_slab_at(left));
    hakmem_heap_destroy(heap);
    CHECK(hak_slab_at(left) != NULL);
}

TEST(no_thread_takes_a_slab_of_a_private_heap)
{
    hakmem_heap *heap = new_heap();
    void *block = hakmem_heap_malloc(heap, 48);
    for (int i = 0; i < BLOCKS; i++)
        CHECK(hak_slab_at(hak_malloc(48)) != hak_slab_at(block));
    CHECK(hak_slab_at(block)->is_private);
}

TEST(a_free_by_a_stranger_is_published_at_once)
{
    hakmem_heap *heap = new_heap();
    void *block = hakmem_heap_malloc(heap, 48), *kept = hakmem_heap_malloc(heap, 48);
    hak_free(block);
    CHECK_EQ(hak_load_relaxed(&hak_slab_at(kept)->remote_count), 1);
    CHECK_EQ(hakmem_heap_malloc(heap, 48), block);
}

TEST(a_slab_that_a_free_is_under_way_into_outlives_destruction_and_is_inherited)
{
    hakmem_heap *heap = new_heap();
    void *block = hakmem_heap_malloc(heap, 48);
    struct slab *slab = hak_slab_at(block);
    /* A publisher that was stopped between the count and the bits. */
    hak_fetch_add_relaxed(&slab->remote_count, 1);
    hakmem_heap_destroy(heap);
    CHECK_EQ(hak_slab_at(block), slab);
    heap = new_heap();
    /* It goes on: bits, then its token's push. */
    hak_fetch_or_release(hak_slab_remote_words(slab), 1);
    hak_pending_push(slab);
    hakmem_heap_trim(heap);
    CHECK_EQ(hak_load_relaxed(&slab->remote_count), 0);
    hakmem_heap_destroy(heap);
    CHECK_EQ(hak_slab_record_count(), 0);
}

static void *take_one(void *heap)
{
    return hakmem_heap_malloc(heap, 48);
}

TEST(no_thread_waits_for_one_that_adds_memory_to_the_heap)
{
    hakmem_heap *heap = new_heap();
    struct private_heap *record = entered(heap);
    hak_private_leave(record);
    hak_lock_take(&hak_region.growth_lock); /* memory takes long */
    pthread_t thread = start_thread(take_one, heap);
    while ((hak_load_relaxed(&hak_region.growth_lock.state) & HAK_LOCK_SLEEPS) == 0)
        sched_yield();
    CHECK(hak_lock_take_within(&record->heap.lock, 10000));
    hak_lock_give_among(&record->heap.lock);
    hak_lock_give(&hak_region.growth_lock);
    CHECK(join_thread(thread) != NULL);
    hakmem_heap_destroy(heap);
}

TEST(what_a_heap_holds_is_known_while_slabs_of_it_are_out)
{
    hakmem_heap *heap = new_heap();
    void *block = hakmem_heap_malloc(heap, 1000);
    struct private_heap *record = entered(heap);
    struct private_use before = hak_private_use(record);
    hak_heap_take_out(&record->heap, hak_slab_at(block));
    struct private_use use = hak_private_use(record);
    CHECK_EQ(use.block_count, 1);
    CHECK_EQ(use.block_bytes, before.block_bytes);
    CHECK_EQ(use.held_bytes, before.held_bytes);
    hak_heap_bring_back(hak_slab_at(block));
    hak_private_leave(record);
    hakmem_heap_destroy(heap);
    CHECK_EQ(hak_slab_record_count(), 0);
}

TEST(draining_collects_for_heaps_that_nobody_uses)
{
    hakmem_heap *heap = new_heap();
    void *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        CHECK((blocks[i] = hakmem_heap_malloc(heap, 1000)) != NULL);
    for (int i = 0; i < BLOCKS; i++)
        hak_free(blocks[i]);
    CHECK(hak_slab_record_count() > 0);
    hak_private_drain_some();
    CHECK_EQ(hak_slab_record_count(), 0);
}

TEST(all_heaps_are_drained_at_once)
{
    enum { HEAPS = 20 };
    void *blocks[HEAPS];
    for (int i = 0; i < HEAPS; i++)
        CHECK((blocks[i] = hakmem_heap_malloc(new_heap(), 1000)) != NULL);
    for (int i = 0; i < HEAPS; i++)
        hak_free(blocks[i]);
    CHECK_EQ(hak_slab_record_count(), HEAPS);
    hak_private_drain_all();
    CHECK_EQ(hak_slab_record_count(), 0);
}

static void use_frozen(hakmem_heap *frozen)
{
    CHECK_EQ(hakmem_heap_malloc(frozen, 10), NULL);
    hakmem_heap_trim(frozen);
    hakmem_heap_destroy(frozen);
    hakmem_heap *heap = new_heap();
    CHECK(hakmem_heap_malloc(heap, 10) != NULL);
    hakmem_heap_destroy(heap);
}

static void *fork_while_entered(void *heap)
{
    CHECK_EXITS(use_frozen(heap), 0);
    return NULL;
}

TEST(a_heap_that_is_busy_for_longer_than_fork_waits_is_frozen_in_the_child)
{
    hakmem_heap *heap = new_heap();
    CHECK(hakmem_heap_malloc(heap, 10) != NULL);
    struct private_heap *record = entered(heap);
    in_thread(fork_while_entered, heap);
    hak_private_leave(record);
    CHECK(hakmem_heap_malloc(heap, 10) != NULL);
}

static void (*fork_handler)(void);

static void call_fork_handler(void)
{
    if (fork_handler != NULL)
        fork_handler();
}

/* Before hakmem's constructor registers its own: all three are called while the fork holds the
 * locks. */
__attribute__((constructor(101))) static void register_fork_handler(void)
{
    if (pthread_atfork(call_fork_handler, call_fork_handler, call_fork_handler) != 0)
        _exit(1);
}

static hakmem_heap *forked_heap;
static void *held_blocks[3]; /* for the handlers of one process to free */
static int handled;
static _Atomic bool is_inside, may_leave;

static void *stay_inside(void *handle)
{
    struct private_heap *record = entered(handle);
    atomic_store(&is_inside, true);
    while (!atomic_load(&may_leave))
        sched_yield();
    hak_private_leave(record);
    return NULL;
}

static pthread_t start_inside(hakmem_heap *heap)
{
    pthread_t thread = start_thread(stay_inside, heap);
    while (!atomic_load(&is_inside))
        sched_yield();
    return thread;
}

static pid_t fork_with_handler(void (*handler)(void))
{
    fork_handler = handler;
    pid_t pid = fork();
    fork_handler = NULL;
    CHECK(pid >= 0);
    return pid;
}

static void check_child(pid_t pid)
{
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
}

static hakmem_heap *heap_of_moved;
static void *moved;

/* In the middle of a realloc that moves pages, and once. */
static void fork_while_it_moves(void)
{
    hakmem_heap *heap = heap_of_moved;
    if (heap == NULL || hak_tag_read(hak_granule_of(moved)) == HAK_TAG_SPAN)
        return;
    heap_of_moved = NULL;
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        hakmem_heap_destroy(heap);
        _exit(0);
    }
    check_child(pid);
}

TEST(a_copy_made_while_a_large_block_moves_can_destroy_its_heap)
{
    if (HAK_CHECK_LEVEL < 2)
        SKIP("nobody watches its calls");
    hakmem_heap *heap = new_heap();
    void *kept = hakmem_heap_malloc(heap, 2 * HAK_MIB);
    moved = hakmem_heap_malloc(heap, 2 * HAK_MIB);
    CHECK(kept != NULL && moved != NULL && hakmem_heap_malloc(heap, 2 * HAK_MIB) != NULL);
    heap_of_moved = heap;
    hak_store_relaxed(&hak_os_fault.watch, fork_while_it_moves);
    void *block = hakmem_heap_realloc(heap, moved, 64 * HAK_MIB);
    hak_store_relaxed(&hak_os_fault.watch, NULL);
    CHECK(block != NULL);
    if (heap_of_moved != NULL)
        SKIP("pages are not moved here");
    hakmem_heap_destroy(heap);
}

static void get_nothing(void)
{
    CHECK(hak_lock_has_all());
    CHECK_EQ(hakmem_heap_malloc(forked_heap, 48), NULL);
    CHECK_EQ(hakmem_heap_malloc(forked_heap, 500000), NULL);
    hakmem_heap_free(forked_heap, held_blocks[handled++]);
    hakmem_heap_trim(forked_heap);
    hak_private_drain_all();
    hak_private_sweep_all();
}

TEST(a_handler_of_fork_gets_nothing_from_a_heap_that_another_thread_is_inside)
{
    forked_heap = new_heap();
    void *block = hakmem_heap_malloc(forked_heap, 48);
    for (int i = 0; i < 3; i++)
        held_blocks[i] = hakmem_heap_malloc(forked_heap, 48);
    pthread_t thread = start_inside(forked_heap);
    pid_t pid = fork_with_handler(get_nothing);
    CHECK_EQ(handled, 2);
    if (pid == 0) {
        use_frozen(forked_heap);
        _exit(0);
    }
    check_child(pid);
    CHECK_EQ(hak_load_relaxed(&hak_slab_at(block)->remote_count), 2); /* nobody collected */
    atomic_store(&may_leave, true);
    join_thread(thread);
    CHECK(hakmem_heap_malloc(forked_heap, 48) != NULL);
    CHECK(hak_private_is_sound(entered(forked_heap)));
}

static void get_some(void)
{
    CHECK(hakmem_heap_malloc(forked_heap, 48) != NULL);
}

static void await_and_get_some(void)
{
    if (handled++ == 0) {
        const struct private_heap *record = hak_private_first();
        CHECK_EQ(hakmem_heap_malloc(forked_heap, 48), NULL);
        atomic_store(&may_leave, true);
        while (hak_load_relaxed(&record->heap.lock.state) != 0)
            sched_yield();
    }
    get_some();
}

TEST(a_heap_that_its_thread_leaves_during_a_fork_serves_the_handlers_and_the_child)
{
    forked_heap = new_heap();
    pthread_t thread = start_inside(forked_heap);
    pid_t pid = fork_with_handler(await_and_get_some);
    get_some();
    if (pid == 0)
        _exit(0);
    check_child(pid);
    join_thread(thread);
    CHECK_EQ(heap_stats_now(forked_heap).live_block_count, 3);
}

static void make_and_get_some(void)
{
    if (handled++ == 0)
        forked_heap = new_heap();
    get_some();
}

TEST(a_heap_that_a_handler_of_fork_makes_serves_parent_and_child)
{
    hakmem_heap_destroy(new_heap()); /* a record for the first time */
    for (int i = 0; i < 2; i++) {
        handled = 0;
        pid_t pid = fork_with_handler(make_and_get_some);
        get_some();
        if (pid == 0)
            _exit(0);
        check_child(pid);
        CHECK_EQ(heap_stats_now(forked_heap).live_block_count, 3);
    }
}
