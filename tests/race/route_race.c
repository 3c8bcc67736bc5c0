/* SPDX-License-Identifier: MIT */
/* tests/race/route_race.c - call sites are diverted, held back, and diverted no longer, in any
 * order, and blocks are noted, while threads allocate from them and hand the blocks over, and the
 * process forks. If this fails, a rule of a call site that begins or ends loses a block, or leaves
 * a child in which requests fail. */
#include "api/api.h"
#include "base/atomic.h"
#include "heap/route.h"
#include "heap/supply.h"
#include "misuse/harden.h"
#include "process/start.h"
#include "racers.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TAKERS 6u
#define FORKS 12
#define ROUNDS 40000
#define SEEN_LEAST 1000u /* requests from each partition */
#define PLACES 64u
#define CLASSES 8u
#define ROUTES (2 * CLASSES)
/* A request returns to one of so many bytes from the start of its function on. */
#define FUNCTION_BYTES 512u

static _Atomic(unsigned char *) places[PLACES];
static _Atomic uint32_t takers_done_count;
static _Atomic uint32_t counts[PARTITION_COUNT];
static uintptr_t sites[2];
static _Atomic uint32_t noted_count; /* the publisher's */

/* Two sites; what follows keeps the call from being a jump, and the functions different. */
static __attribute__((noinline)) unsigned char *take_here(size_t bytes)
{
    unsigned char *block = hak_malloc(bytes);
    CHECK(block != NULL);
    return block;
}

static __attribute__((noinline)) unsigned char *take_there(size_t bytes)
{
    unsigned char *block = hak_malloc(bytes);
    CHECK(block != NULL);
    block[0] = 0;
    return block;
}

static unsigned char *take(uint32_t site, size_t bytes)
{
    return site == 0 ? take_here(bytes) : take_there(bytes);
}

/* PARTITION_COUNT: the block is in no slab, since it is guarded. */
static enum hak_partition partition_of(const void *block)
{
    const struct slab *slab = hak_region_holds(block) ? hak_slab_at(block) : NULL;
    return slab == NULL ? PARTITION_COUNT : hak_class_partition(slab->class_index);
}

/* Whether requests of the function return to `address`: whether they follow its diversion. */
static bool is_site(uint32_t site, uintptr_t address)
{
    struct route route = {.frames = {address}, .class_index = 0, .kind = ROUTE_LONG};
    bool is_diverted = false;
    CHECK_EQ(hak_route_publish(&route, 1), 1);
    for (int i = 0; i < 8; i++) { /* some blocks may be sampled */
        unsigned char *block = take(site, 1);
        is_diverted = is_diverted || partition_of(block) == PARTITION_LONG;
        hak_free(block);
    }
    return is_diverted;
}

/* In an instrumented build hak_malloc calls its slow path, to which it jumps otherwise: there its
 * own address is what all sites have in common. */
static uintptr_t site_of(uint32_t site)
{
    const uintptr_t starts[] = {site == 0 ? (uintptr_t)&take_here : (uintptr_t)&take_there,
                                (uintptr_t)&hak_malloc};
    for (int i = 0; i < 2; i++)
        for (uintptr_t at = starts[i]; at < starts[i] + FUNCTION_BYTES; at++)
            if (is_site(site, at))
                return at;
    CHECK(!"a site");
    return 0;
}

static size_t bytes_at(uint32_t place)
{
    return hak_size_classes[place % (CLASSES + 1)].block_bytes; /* one class is never diverted */
}

/* The publisher may have had no turn yet, or a short one. */
static bool has_seen_all(void)
{
    return hak_load_relaxed(&noted_count) > 0 &&
           hak_load_relaxed(&counts[PARTITION_ORDINARY]) > SEEN_LEAST &&
           hak_load_relaxed(&counts[PARTITION_LONG]) > SEEN_LEAST;
}

static void work(struct racer *racer)
{
    for (int i = 0; i < ROUNDS || !has_seen_all(); i++) {
        uint32_t place = (uint32_t)draw(racer) % PLACES;
        unsigned char *block = take((uint32_t)draw(racer) & 1, bytes_at(place));
        enum hak_partition partition = partition_of(block);
        if (partition != PARTITION_COUNT)
            hak_fetch_add_relaxed(&counts[partition], 1);
        memset(block, (int)place, bytes_at(place));
        block = atomic_exchange_explicit(&places[place], block, memory_order_acq_rel);
        if (block == NULL)
            continue;
        for (size_t at = 0; at < bytes_at(place); at++)
            if (block[at] != place)
                CHECK(!"another thread's block");
        hak_free(block);
    }
    hak_thread_flush();
    hak_fetch_add_relaxed(&takers_done_count, 1);
}

static uint32_t choose(struct racer *racer, struct route *routes)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < ROUTES; i++)
        if ((draw(racer) & 1) != 0)
            routes[count++] = (struct route){.frames = {sites[i & 1]},
                                             .class_index = i / 2,
                                             .kind = draw(racer) & 1 ? ROUTE_LONG : ROUTE_HALF};
    return count;
}

static void publish(struct racer *racer)
{
    struct route routes[ROUTES];
    void *blocks[HAK_ROUTE_NOTED_MOST];
    while (hak_load_relaxed(&takers_done_count) < TAKERS) {
        hak_route_publish(routes, choose(racer, routes));
        hak_route_hold((enum route_hold)(draw(racer) % 3));
        hak_route_watch((uint32_t)draw(racer) % CLASSES);
        sched_yield();
        hak_fetch_add_relaxed(&noted_count, hak_route_take_noted(blocks));
    }
}

/* The child finds the table in the middle of anything. */
static void live_as_child(struct racer *racer)
{
    static unsigned char *blocks[500];
    for (uint32_t i = 0; i < 500; i++) {
        blocks[i] = take(i & 1, bytes_at((uint32_t)draw(racer) % PLACES));
        blocks[i][0] = 1;
    }
    for (uint32_t i = 0; i < 500; i++)
        hak_free(blocks[i]);
}

static void fork_on(struct racer *racer)
{
    for (int i = 0; i < FORKS; i++)
        CHECK_EXITS(live_as_child(racer), 0);
}

TEST(sites_are_diverted_and_no_longer_while_threads_allocate_and_the_process_forks)
{
    CHECK(hak_process_start());
    if (hak_load_relaxed(&hak_harden) != 0)
        SKIP("hardened mode diverts no site");
    sites[0] = site_of(0);
    sites[1] = site_of(1);
    race(TAKERS + 2,
         (void (*const[])(struct racer *)){work, work, work, work, work, work, publish, fork_on});
    CHECK(has_seen_all());
    hak_route_publish(NULL, 0);
    for (uint32_t i = 0; i < PLACES; i++)
        hak_free(hak_load_relaxed(&places[i]));
    for (uint32_t site = 0; site < 2; site++) {
        unsigned char *block = take(site, 1);
        CHECK(partition_of(block) != PARTITION_LONG);
        hak_free(block);
    }
}
