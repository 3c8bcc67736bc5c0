/* SPDX-License-Identifier: MIT */
/* tests/race/meta_race.c - threads take records while their area grows, and where another one must
 * follow it: no two get the same bytes, all are zero, and one thread maps what several need. */
#include "base/limits.h"
#include "check.h"
#include "os/os.h"
#include "region/meta.h"
#include "region/region.h"
#include "threads.h"

#include <sys/mman.h>

enum { TAKERS = 4, RECORDS = 500 };

struct record {
    uint64_t *words;
    size_t bytes;
};

struct taker {
    uint64_t random;
    struct record records[RECORDS];
};

static struct taker takers[TAKERS];
static struct meta_pool pool; /* its records have one size: none is given back */

static void *take_records(void *argument)
{
    struct taker *taker = argument;
    for (size_t i = 0; i < RECORDS; i++) {
        taker->random = taker->random * 6364136223846793005ull + 1442695040888963407ull;
        size_t bytes = 64 + (taker->random >> 33) % 6000 / 64 * 64;
        if (i % 50 == 49)
            bytes = 200 * HAK_KIB;
        uint64_t *words =
            i % 3 == 0 ? hak_meta_pool_take_reserved(&pool, bytes) : hak_meta_take(bytes);
        CHECK(words != NULL);
        CHECK_BYTES(words, bytes, 0);
        for (size_t at = 0; at < bytes / sizeof *words; at++)
            words[at] = (uintptr_t)words + at;
        taker->records[i] = (struct record){words, bytes};
    }
    return NULL;
}

static void start(void)
{
    hak_os_start();
    CHECK(hak_region_start());
    hak_meta_keep_reserve();
    CHECK(hak_meta_take(64) != NULL);
}

/* What all have taken, and nobody else has written to. */
static size_t take_in_threads(void)
{
    pthread_t threads[TAKERS];
    for (size_t i = 0; i < TAKERS; i++) {
        takers[i].random = i + 1;
        threads[i] = start_thread(take_records, &takers[i]);
    }
    join_threads(threads, TAKERS);
    size_t sum = 64;
    for (size_t i = 0; i < TAKERS; i++)
        for (size_t j = 0; j < RECORDS; j++) {
            struct record record = takers[i].records[j];
            for (size_t at = 0; at < record.bytes / sizeof *record.words; at++)
                CHECK_EQ(record.words[at], (uintptr_t)record.words + at);
            sum += record.bytes;
        }
    return sum;
}

TEST(threads_take_records_while_the_area_grows)
{
    start();
    size_t sum = take_in_threads();
    CHECK(hak_meta_bytes() >= sum);
}

TEST(threads_take_records_while_another_area_follows)
{
    start();
    unsigned char *first = hak_region.meta.start;
    void *place = first + 2 * HAK_MIB;
    CHECK_EQ(mmap(place, 64 * HAK_KIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
             place);
    size_t sum = take_in_threads();
    CHECK(hak_region.meta.start != first);
    CHECK(hak_meta_bytes() >= sum);
    CHECK_EQ(hak_meta_present_bytes(), 0);
}

static pthread_barrier_t all_are_here;

static void *make_room(void *bytes)
{
    pthread_barrier_wait(&all_are_here);
    hak_meta_make_room(*(size_t *)bytes);
    return NULL;
}

TEST(of_threads_that_need_more_one_maps_it)
{
    start();
    pthread_barrier_init(&all_are_here, NULL, TAKERS);
    for (int round = 0; round < 40; round++) {
        pthread_t threads[TAKERS];
        size_t before = hak_meta_bytes();
        for (size_t i = 0; i < TAKERS; i++)
            threads[i] = start_thread(make_room, &before);
        join_threads(threads, TAKERS);
        size_t step = before / 8 < 64 * HAK_KIB ? 64 * HAK_KIB : before / 8;
        CHECK(hak_meta_bytes() > before);
        CHECK(hak_meta_bytes() <= before + step + 64 * HAK_KIB);
    }
}
