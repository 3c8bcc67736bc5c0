/* SPDX-License-Identifier: MIT */
/* tests/race/shm_race.c - a reader never gets parts of two pages. */
#include "check.h"
#include "stats/shm.h"
#include "threads.h"

#define PAGES 20000

static struct stats_shm shm;
static _Atomic uint32_t is_over;

static void *write_pages(void *unused)
{
    static struct shm_page page;
    for (uint64_t i = 1; i <= PAGES; i++) {
        uint64_t *words = (uint64_t *)(void *)&page;
        for (size_t j = 0; j < HAK_SHM_PAGE_WORDS; j++)
            words[j] = i;
        hak_shm_publish(&shm, &page);
    }
    hak_store_relaxed(&is_over, 1);
    return unused;
}

TEST(every_page_that_is_read_was_written_as_one)
{
    static struct shm_page page;
    uint64_t last = 0;
    pthread_t writer = start_thread(write_pages, NULL);
    while (hak_load_relaxed(&is_over) == 0) {
        if (!hak_shm_read(&shm, &page))
            continue;
        const uint64_t *words = (const uint64_t *)(const void *)&page;
        for (size_t i = 1; i < HAK_SHM_PAGE_WORDS; i++)
            CHECK_EQ(words[i], words[0]);
        CHECK(words[0] >= last);
        last = words[0];
    }
    join_thread(writer);
    CHECK(hak_shm_read(&shm, &page));
    CHECK_EQ(page.clock_ms, PAGES);
}
