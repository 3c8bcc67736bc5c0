/* SPDX-License-Identifier: MIT */
/* tests/preload/numbers.c - mallinfo, mallinfo2, malloc_info, malloc_stats and malloc_trim tell the
 * truth about a scripted program. If this fails, a watcher of memory is misled: other
 * replacements let these fall through to libc's empty heap. */
#include "program.h"

#define HAKMEM_WEAK
#include "public.h"

#include <limits.h>
#include <malloc.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* mallinfo */

#define GRANULE_BYTES 65536u
#define SMALL_MOST 131072u

/* What the program has, counted by the program. */
struct own {
    size_t small_bytes;
    size_t large_bytes;
    size_t large_count;
};

static void count(struct own *own, void *block)
{
    size_t bytes = malloc_usable_size(block);
    if (bytes <= SMALL_MOST) {
        __atomic_fetch_add(&own->small_bytes, bytes, __ATOMIC_RELAXED);
    } else {
        __atomic_fetch_add(&own->large_bytes,
                           (bytes + GRANULE_BYTES - 1) / GRANULE_BYTES * GRANULE_BYTES,
                           __ATOMIC_RELAXED);
        __atomic_fetch_add(&own->large_count, 1, __ATOMIC_RELAXED);
    }
}

static void check_grown_by(struct mallinfo2 before, struct mallinfo2 after, const struct own *own)
{
    CHECK_EQ(after.uordblks - before.uordblks, own->small_bytes);
    CHECK_EQ(after.hblkhd - before.hblkhd, own->large_bytes);
    CHECK_EQ(after.hblks - before.hblks, own->large_count);
    CHECK_EQ(after.arena, after.uordblks + after.fordblks);
    CHECK(after.fsmblks <= after.fordblks && after.keepcost <= after.fordblks);
    CHECK_EQ(after.usmblks, 0);
}

#define COUNT 5000
static void *blocks[COUNT];

/* A block by each function that there is. */
static void *taken_by(unsigned function, size_t bytes)
{
    void *block = NULL;
    switch (function % 10) {
    case 0:
        return calloc(1, bytes);
    case 1:
        return realloc(malloc(10), bytes);
    case 2:
        return reallocarray(NULL, bytes, 1);
    case 3:
        return aligned_alloc(256, bytes);
    case 4:
        return posix_memalign(&block, 4096, bytes) == 0 ? block : NULL;
    case 5:
        return memalign(32, bytes);
    case 6:
        return valloc(bytes);
    case 7:
        return pvalloc(bytes);
    case 8:
        return hakmem_malloc(bytes);
    default:
        return malloc(bytes);
    }
}

/* A long script of requests of all kinds; the count is kept beside it, block by block. */
TEST(mallinfo2_agrees_at_every_step_of_a_script_with_all_functions)
{
    static struct own of_block[COUNT];
    unsigned state = 11;
    check_is_served();
    struct own own = {0};
    struct mallinfo2 before = mallinfo2();
    for (unsigned step = 0; step < 40000; step++) {
        unsigned at = next_random(&state) % COUNT;
        if (blocks[at] == NULL) {
            blocks[at] = taken_by(step, random_bytes(&state));
            CHECK(blocks[at] != NULL);
        } else if (step % 3 == 0) {
            blocks[at] = realloc(blocks[at], random_bytes(&state));
        } else {
            free(blocks[at]);
            blocks[at] = NULL;
        }
        own.small_bytes -= of_block[at].small_bytes;
        own.large_bytes -= of_block[at].large_bytes;
        own.large_count -= of_block[at].large_count;
        of_block[at] = (struct own){0};
        if (blocks[at] != NULL)
            count(&of_block[at], blocks[at]);
        own.small_bytes += of_block[at].small_bytes;
        own.large_bytes += of_block[at].large_bytes;
        own.large_count += of_block[at].large_count;
        if (step % 500 == 0)
            check_grown_by(before, mallinfo2(), &own);
    }
    check_grown_by(before, mallinfo2(), &own);
    for (unsigned i = 0; i < COUNT; i++)
        free(blocks[i]);
    check_grown_by(before, mallinfo2(), &(struct own){0});
}

#define THREADS 8
static pthread_barrier_t step;
static struct own of_all;
static void *of_thread[THREADS][COUNT];

/* Allocates, and frees half of what the next thread allocated; then sleeps. */
static void *be_quiet(void *argument)
{
    unsigned state = (unsigned)(uintptr_t)argument, self = state - 1;
    for (unsigned i = 0; i < COUNT; i++)
        of_thread[self][i] = malloc(random_bytes(&state) % 3000);
    pthread_barrier_wait(&step);
    for (unsigned i = 0; i < COUNT; i += 2)
        free(of_thread[(self + 1) % THREADS][i]);
    for (unsigned i = 1; i < COUNT; i += 2)
        count(&of_all, of_thread[self][i]);
    pthread_barrier_wait(&step);
    pthread_barrier_wait(&step);
    return NULL;
}

TEST(mallinfo2_agrees_while_other_threads_sleep_on_what_they_cached)
{
    pthread_t threads[THREADS];
    pthread_barrier_init(&step, NULL, THREADS + 1);
    struct mallinfo2 start = mallinfo2();
    start_threads(threads, THREADS, be_quiet);
    pthread_barrier_wait(&step);
    pthread_barrier_wait(&step);
    struct mallinfo2 full = mallinfo2();
    /* libc allocates a little for each thread. */
    CHECK(full.uordblks - start.uordblks >= of_all.small_bytes);
    CHECK(full.uordblks - start.uordblks < of_all.small_bytes + THREADS * 2000);
    CHECK(full.fsmblks > 0 && full.smblks > 0);
    struct own none = {0};
    check_grown_by(full, mallinfo2(), &none);
    pthread_barrier_wait(&step);
    join_threads(threads, THREADS);
}

TEST(mallinfo_is_mallinfo2_in_ints)
{
    void *block = malloc(3 << 20);
    struct mallinfo2 wide = mallinfo2();
    struct mallinfo narrow = mallinfo();
    CHECK_EQ((size_t)narrow.uordblks, wide.uordblks);
    CHECK_EQ((size_t)narrow.hblkhd, wide.hblkhd);
    CHECK_EQ((size_t)narrow.fordblks, wide.fordblks);
    free(block);
    void *huge = malloc((size_t)3 << 30);
    if (huge == NULL)
        SKIP("no 3 GiB of address space");
    CHECK_EQ(mallinfo().hblkhd, INT_MAX);
    free(huge);
}

/* malloc_info(3): EINVAL unless the options are 0. The numbers are mallinfo2's. */
TEST(malloc_info_writes_the_same_numbers)
{
    static char text[1 << 17];
    char line[100];
    FILE *stream = fmemopen(text, sizeof text, "w");
    CHECK(stream != NULL);
    CHECK_EQ(malloc_info(1, stream), EINVAL);
    char *buffer = malloc(BUFSIZ);
    setvbuf(stream, buffer, _IOFBF, BUFSIZ);
    struct mallinfo2 info = mallinfo2();
    CHECK_EQ(malloc_info(0, stream), 0);
    fclose(stream);
    CHECK(strncmp(text, "<malloc version=\"1\">", 20) == 0);
    snprintf(line, sizeof line, "<total type=\"mmap\" count=\"%zu\" size=\"%zu\"/>", info.hblks,
             info.hblkhd);
    CHECK(strstr(text, line) != NULL);
    snprintf(line, sizeof line, "name=\"live_bytes\" value=\"%zu\"", info.uordblks + info.hblkhd);
    CHECK(strstr(text, line) != NULL);
    snprintf(line, sizeof line, "<total type=\"fast\" count=\"%zu\" size=\"%zu\"/>", info.smblks,
             info.fsmblks);
    CHECK(strstr(text, line) != NULL);
    free(buffer);
}

static int is_said(const char *line)
{
    struct check_child child;
    if (check_child_starts(&child)) {
        malloc_stats();
        _exit(0);
    }
    check_child_wait(&child);
    CHECK(WIFEXITED(child.status) && WEXITSTATUS(child.status) == 0);
    return strstr(child.message, line) != NULL;
}

/* malloc_stats(3): on standard error, a few lines. */
TEST(malloc_stats_says_in_words_what_there_is_on_standard_error)
{
    char line[100];
    void *large = malloc(300 << 20);
    memset(large, 1, 100 << 20);
    struct mallinfo2 info = mallinfo2();
    size_t tenths = ((info.uordblks + info.hblkhd) * 10 + (1 << 19)) >> 20;
    snprintf(line, sizeof line, "\n  live        %zu.%zu MiB", tenths / 10, tenths % 10);
    CHECK(is_said(line));
    CHECK(is_said("\nresident      10"));
    CHECK(is_said("\nadvice  "));
    CHECK(!is_said("\nNot shown"));
    free(large);
}

/* <hakmem/hakmem.h>. */
TEST(hakmem_stats_get_gives_the_same_numbers)
{
    CHECK(hakmem_stats_get != NULL);
    unsigned state = 5;
    for (unsigned i = 0; i < COUNT; i++)
        blocks[i] = malloc(random_bytes(&state));
    for (unsigned i = 0; i < COUNT; i += 3)
        free(blocks[i]);
    struct hakmem_stats stats = stats_now();
    struct mallinfo2 info = mallinfo2();
    CHECK_EQ(stats.small_live_bytes + stats.guarded_live_bytes, info.uordblks);
    CHECK_EQ(stats.live_bytes, info.uordblks + info.hblkhd);
    CHECK_EQ(stats.large_live_bytes, info.hblkhd);
    CHECK_EQ(stats.large_live_block_count, info.hblks);
    CHECK_EQ(stats.cached_bytes + stats.remote_free_bytes, info.fsmblks);
    CHECK_EQ(stats.slab_free_resident_bytes + stats.span_free_resident_bytes, info.keepcost);
    CHECK_EQ(stats.cached_bytes + stats.remote_free_bytes + stats.block_free_bytes + info.keepcost,
             info.fordblks);
}

/* What the program has is what it has, whichever heap it came from. */
TEST(blocks_of_the_programs_own_heaps_are_counted_and_gone_with_them)
{
    CHECK(hakmem_heap_new != NULL);
    unsigned state = 3;
    struct own own = {0};
    struct mallinfo2 before = mallinfo2();
    hakmem_heap *heap = hakmem_heap_new();
    for (unsigned i = 0; i < COUNT; i++)
        CHECK((blocks[i] = hakmem_heap_malloc(heap, random_bytes(&state))) != NULL);
    for (unsigned i = 0; i < COUNT; i++)
        if (i % 4 == 0)
            free(blocks[i]);
        else if (i % 4 == 1)
            hakmem_heap_free(heap, blocks[i]);
        else
            count(&own, blocks[i]);
    check_grown_by(before, mallinfo2(), &own);
    CHECK_EQ(heap_stats_now(heap).live_bytes, own.small_bytes + own.large_bytes);
    hakmem_heap_destroy(heap);
    check_grown_by(before, mallinfo2(), &(struct own){0});
}

/* What is kept warm for the next large request is free, and is trim's to give back. */
TEST(a_freed_large_block_that_is_kept_counts_as_free)
{
    CHECK_EQ(mallopt(M_TRIM_THRESHOLD, -1), 1);
    char *block = malloc(8 << 20);
    fill(block, 8 << 20, 1);
    struct mallinfo2 live = mallinfo2();
    free(block);
    struct mallinfo2 kept = mallinfo2();
    size_t bytes = live.hblkhd - kept.hblkhd;
    CHECK(bytes >= 8 << 20 && bytes <= (8 << 20) + GRANULE_BYTES);
    CHECK_EQ(kept.hblks, live.hblks - 1);
    CHECK_EQ(kept.fordblks, live.fordblks + bytes);
    CHECK_EQ(kept.keepcost, live.keepcost + bytes);
    CHECK_EQ(kept.arena, live.arena + bytes);
    CHECK_EQ(malloc_trim(0), 1);
    CHECK_EQ(mallinfo2().keepcost, 0);
}

/* malloc_trim(3). */
TEST(malloc_trim_gives_memory_back_and_mallinfo2_knows)
{
    static void *many[100000];
    CHECK_EQ(mallopt(M_TRIM_THRESHOLD, -1), 1);
    free(malloc(1));
    size_t before = resident_bytes();
    for (unsigned i = 0; i < 100000; i++) {
        many[i] = malloc(500);
        fill(many[i], 500, i);
    }
    for (unsigned i = 0; i < 100000; i++)
        free(many[i]);
    CHECK(resident_bytes() > before + (30 << 20));
    CHECK(mallinfo2().keepcost > 30 << 20);
    CHECK_EQ(malloc_trim(0), 1);
    CHECK(resident_bytes() < before + (4 << 20));
    CHECK_EQ(mallinfo2().keepcost, 0);
    CHECK_EQ(malloc_trim(0), 0);
}
