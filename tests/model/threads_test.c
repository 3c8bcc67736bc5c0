/* SPDX-License-Identifier: MIT */
/* tests/model/threads_test.c - threads that come and go exchange blocks through shared slots; every
 * block says what is in it, and at the end every granule is accounted for. */
#include "account.h"
#include "parcel.h"
#include "threads.h"

#include <stdatomic.h>

#define LANES 4u
#define SLOTS 512u

struct worker {
    uint64_t random;
    uint32_t operations;
    size_t bytes_most;
};

static _Atomic(struct parcel *) slots[SLOTS];

static uint64_t draw(uint64_t *random)
{
    *random = *random * 6364136223846793005ull + 1442695040888963407ull;
    return *random >> 24;
}

/* Log-uniform from a parcel's header to bytes_most. */
static size_t draw_bytes(struct worker *worker)
{
    uint32_t doublings = (uint32_t)__builtin_ctzll(worker->bytes_most) - 4;
    size_t ceiling = (size_t)16 << (draw(&worker->random) % (doublings + 1));
    return sizeof(struct parcel) + draw(&worker->random) % ceiling;
}

static struct parcel *parcel_make(struct worker *worker)
{
    size_t bytes = draw_bytes(worker);
    size_t alignment = (size_t)16 << draw(&worker->random) % 9;
    void *block = NULL;
    switch (draw(&worker->random) % 4) {
    case 0:
        block = hak_calloc(1, bytes);
        break;
    case 1:
        CHECK_EQ(hak_posix_memalign(&block, alignment, bytes), 0);
        CHECK_EQ((uintptr_t)block % alignment, 0);
        break;
    default:
        block = hak_malloc(bytes);
    }
    CHECK(block != NULL);
    CHECK(hak_malloc_usable_size(block) >= bytes);
    parcel_fill(block, bytes, draw(&worker->random));
    return block;
}

static struct parcel *parcel_resize(struct worker *worker, struct parcel *parcel)
{
    size_t old_bytes = parcel->bytes;
    size_t bytes = draw_bytes(worker);
    struct parcel *moved = hak_realloc(parcel, bytes);
    CHECK(moved != NULL);
    parcel_check(moved, old_bytes < bytes ? old_bytes : bytes);
    parcel_fill(moved, bytes, draw(&worker->random));
    return moved;
}

static void *work(void *argument)
{
    struct worker worker = *(struct worker *)argument;
    for (uint32_t i = 0; i < worker.operations; i++) {
        uint64_t choice = draw(&worker.random) % 8;
        struct parcel *parcel = choice < 5 ? parcel_make(&worker) : NULL;
        parcel = atomic_exchange(&slots[draw(&worker.random) % SLOTS], parcel);
        if (parcel == NULL)
            continue;
        parcel_check(parcel, parcel->bytes);
        if (choice == 7)
            parcel = parcel_resize(&worker, parcel);
        hak_free(parcel);
    }
    return NULL;
}

/* In each generation one thread ends and another starts, while the others go on. */
static void run(uint32_t generations, uint32_t operations, size_t bytes_most)
{
    pthread_t threads[LANES];
    struct worker workers[LANES];
    for (uint32_t i = 0; i < generations + LANES; i++) {
        uint32_t lane = i % LANES;
        if (i >= LANES)
            join_thread(threads[lane]);
        if (i >= generations)
            continue;
        workers[lane] = (struct worker){i + 1, operations, bytes_most};
        threads[lane] = start_thread(work, &workers[lane]);
    }
    for (uint32_t i = 0; i < SLOTS; i++) {
        struct parcel *parcel = atomic_exchange(&slots[i], NULL);
        if (parcel != NULL)
            parcel_check(parcel, parcel->bytes);
        hak_free(parcel);
    }
    check_nothing_is_live();
}

TEST(small_blocks_freed_by_other_threads_are_all_collected)
{
    run(60, 5000, 256);
}

TEST(blocks_of_all_sizes_freed_by_other_threads_are_all_collected)
{
    run(60, 2000, HAK_MIB);
}

TEST(threads_that_live_shortly_leave_nothing_behind)
{
    run(600, 100, 4096);
}

TEST(threads_that_come_and_go_make_no_more_caches_than_ran_at_once_and_few_heaps)
{
    run(300, 50, 1024);
    uint32_t caches = 0;
    for (struct cache *i = hak_caches_first(); i != NULL; i = i->next)
        caches++;
    CHECK(caches > 0 && caches <= LANES); /* this thread took one that was free */
    CHECK(hak_heap_count() > 0 && hak_heap_count() <= 2 * LANES + 8);
}
