/* SPDX-License-Identifier: MIT */
/* tests/unit/process/slow_path_test.c - a large block comes and goes without a slow path: the cache
 * of a thread is busy meanwhile, for handlers and for jumps out of them. */
#define _GNU_SOURCE
#include "process/slow_path.h"

#include "api/api.h"
#include "check.h"
#include "policy/policy_table.h"
#include "process/tick.h"
#include "span/span_cache.h"
#include "stay.h"

#include <setjmp.h>
#include <sys/mman.h>

#define BYTES ((size_t)300000)
/* Enough that a page of 4 KiB holds nothing but records of their spans, and that a cache may keep
 * two of these besides the recent ones. */
enum { BLOCKS = 64, WATCHED = 40 };
/* At the next three slow operations no tick comes, which would leave the cache idle. */
#define BETWEEN_TICKS (250 * HAK_SLOW_OPERATIONS_PER_LOOK + 1)

/* Those of processors are never busy: their bins cannot be found half changed. */
__attribute__((constructor(101))) static void choose(void)
{
    setenv("HAKMEM_CACHES", "thread", 1);
    setenv("HAKMEM_MAINTENANCE", "off", 1); /* no thread of hakmem's gives spans back */
}

static void *block;
static struct span *watched;
static volatile sig_atomic_t interruptions;
static sigjmp_buf way_out;

static void protect_record(int protection)
{
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    uintptr_t page = (uintptr_t)watched & ~(page_bytes - 1);
    CHECK_EQ(mprotect((void *)page, page_bytes, protection), 0);
}

/* From the next block on that is freed, the cache of spans has recent ones. */
static void put_in_use(void)
{
    CHECK(hak_process_start());
    hak_store_relaxed(&hak_policy.big_cache_from_bytes, 0); /* freed blocks are kept at once */
    hak_free(hak_malloc(BYTES));
}

/* The first write to the record of the block's span is interrupted. */
static void watch(void (*handler)(int))
{
    void *blocks[BLOCKS];
    if (sysconf(_SC_PAGESIZE) > 4096)
        SKIP("a page holds more than the records of spans");
    put_in_use();
    for (int i = 0; i < BLOCKS; i++)
        CHECK((blocks[i] = hak_malloc(BYTES)) != NULL);
    block = blocks[WATCHED];
    watched = hak_span_named_at(hak_granule_of(block));
    CHECK(!hak_cache_is_processors(hak_own_cache()));
    hak_store_relaxed(&hak_own_cache()->slow_count, BETWEEN_TICKS);
    CHECK(signal(SIGSEGV, handler) != SIG_ERR);
    protect_record(PROT_READ);
}

static void note_interruption(void)
{
    interruptions = interruptions + 1;
    CHECK_EQ(hak_cache_state(hak_thread_cache()), CACHE_BUSY);
    protect_record(PROT_READ | PROT_WRITE);
}

/* Caches of threads ask for the processor. */
TEST(what_is_recent_elsewhere_does_not_keep_a_processor_from_its_heap)
{
    put_in_use();
    if (!stay_on(0))
        SKIP("there is no processor 0");
    void *blocks[] = {hak_malloc(BYTES), hak_malloc(200000), hak_malloc(150000)};
    for (int i = 0; i < 3; i++)
        hak_free(blocks[i]);
    CHECK(hak_recent_count(&hak_heap_own()->spans.recent) >= 2);
    hak_heaps_note_threads(2);
    if (!stay_on(1))
        SKIP("there is no processor 1");
    CHECK_EQ(hak_heap_own(), NULL);
    hak_free(hak_malloc(2 * BYTES));
    CHECK(hak_heap_own() != NULL);
    CHECK_EQ(hak_heap_count(), 2);
}

/* From the third block on no slow path is entered, which would leave it idle. */
TEST(the_cache_is_idle_when_a_large_block_has_come_or_gone)
{
    put_in_use();
    hak_free(hak_malloc(BYTES));
    size_t hits = hak_load_relaxed(&hak_heap_own()->spans.hits);
    hak_store_relaxed(&hak_own_cache()->slow_count, BETWEEN_TICKS);
    block = hak_malloc(BYTES);
    CHECK_EQ(hak_cache_state(hak_thread_cache()), CACHE_IDLE);
    hak_free(block);
    CHECK_EQ(hak_cache_state(hak_thread_cache()), CACHE_IDLE);
    CHECK_EQ(hak_load_relaxed(&hak_own_cache()->slow_count), BETWEEN_TICKS + 1); /* the free */
    CHECK_EQ(hak_load_relaxed(&hak_heap_own()->spans.hits) - hits, 1);
}

/* It is the only one. */
static bool is_recent(const struct span *span)
{
    const struct recent_spans *recent = &hak_heap_own()->spans.recent;
    return hak_recent_span(hak_load_relaxed(&recent->places[0])) == span &&
           hak_recent_count(recent) == 1;
}

static void allocate(int number)
{
    CHECK_EQ(number, SIGSEGV);
    note_interruption();
    hak_free(hak_malloc(100));
    CHECK(hak_malloc(2 * BYTES) != NULL);
}

TEST(the_cache_is_busy_while_a_large_block_comes_or_goes)
{
    watch(allocate);
    hak_free(block);
    CHECK_EQ(interruptions, 1);
    CHECK_EQ(hak_cache_state(hak_thread_cache()), CACHE_IDLE);
    CHECK(is_recent(watched));
    protect_record(PROT_READ);
    CHECK_EQ(hak_malloc(BYTES), block);
    CHECK_EQ(interruptions, 2);
    CHECK_EQ(hak_cache_state(hak_thread_cache()), CACHE_IDLE);
}

static void take_its_place(int number)
{
    allocate(number);
    hak_free(hak_malloc(2 * BYTES));
    CHECK_EQ(hak_recent_count(&hak_heap_own()->spans.recent), 1);
}

TEST(a_span_that_came_in_between_joins_the_others)
{
    watch(take_its_place);
    hak_free(block);
    CHECK_EQ(interruptions, 1);
    CHECK(is_recent(watched));
    CHECK_EQ(hak_span_caches_sum().count, 2);
    CHECK_EQ(hak_cache_state(hak_thread_cache()), CACHE_IDLE);
    CHECK_EQ(hak_malloc(BYTES), block);
}

static void jump(int number)
{
    CHECK_EQ(number, SIGSEGV);
    note_interruption();
    siglongjmp(way_out, 1);
}

TEST(a_jump_out_of_it_leaves_a_cache_that_is_replaced)
{
    watch(jump);
    struct cache *left = hak_thread_cache();
    if (sigsetjmp(way_out, 1) == 0)
        hak_free(block);
    CHECK_EQ(interruptions, 1);
    CHECK_EQ(hak_cache_state(left), CACHE_BUSY);
    hak_free(hak_malloc(2 * BYTES)); /* the frame of one of these is not below the one left */
    CHECK(hak_thread_cache() != left);
    CHECK_EQ(hak_cache_state(hak_thread_cache()), CACHE_IDLE);
    hak_free(block); /* it was not freed yet */
    CHECK_EQ(hak_malloc(BYTES), block);
}
