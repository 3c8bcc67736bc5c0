/* SPDX-License-Identifier: MIT */
/* tests/unit/stats/snapshot_test.c - the snapshot agrees with what was done, and is printed if
 * asked. */
#include "api/api.h"
#include "base/bits.h"
#include "base/limits.h"
#include "check.h"
#include "conf/conf.h"
#include "heap/census.h"
#include "process/reclaim.h"
#include "process/start.h"
#include "slab/size_class.h"
#include "stats/snapshot.h"
#include "stats/snapshot_take.h"

static struct snapshot taken(void)
{
    struct snapshot snapshot;
    hak_snapshot_take(&snapshot, &(struct census){0});
    return snapshot;
}

TEST(a_snapshot_counts_slabs_spans_and_heaps)
{
    CHECK(hak_malloc(100) != NULL);
    hak_store_relaxed(&hak_policy.big_cache_from_bytes, 0);
    void *large = hak_malloc(HAK_MIB);
    struct snapshot snapshot = taken();
    CHECK_EQ(snapshot.active_caches, 1);
    CHECK_EQ(snapshot.slabs, 1);
    CHECK_EQ(snapshot.superslabs, 1);
    CHECK(snapshot.large_live_bytes >= HAK_MIB);
    CHECK_EQ(snapshot.sums[HAK_STAT_spans_taken], 1);
    CHECK_EQ(snapshot.sums[HAK_STAT_refills], 1);
    CHECK_EQ(snapshot.threads_started, 1);
    hak_free(large);
    snapshot = taken();
    CHECK_EQ(snapshot.large_live_bytes, 0);
    CHECK(snapshot.span_warm_bytes + snapshot.span_cached_bytes >= HAK_MIB);
    CHECK_EQ(snapshot.sums[HAK_STAT_spans_given], 1);
}

TEST(returned_memory_is_counted_with_its_calls_and_their_time)
{
    void *block = hak_malloc(32 * HAK_MIB);
    CHECK(block != NULL);
    memset(block, 1, 32 * HAK_MIB);
    struct snapshot before = taken();
    hak_free(block);
    size_t given_bytes = hak_reclaim_trim(0);
    struct snapshot after = taken();
    CHECK(given_bytes >= 32 * HAK_MIB);
    CHECK_EQ(after.purged_bytes - before.purged_bytes, given_bytes);
    CHECK(after.purge_calls > before.purge_calls);
    CHECK(after.purge_calls - before.purge_calls <= after.advise_calls - before.advise_calls);
    CHECK(after.purge_ns > before.purge_ns);
}

static struct snapshot_class class_of(size_t bytes)
{
    struct snapshot snapshot = taken();
    return snapshot.classes[hak_class_of(bytes)];
}

TEST(blocks_that_leave_slabs_are_counted_by_class)
{
    static void *blocks[1000];
    CHECK_EQ(class_of(128).taken_blocks, 0);
    for (int i = 0; i < 1000; i++)
        CHECK((blocks[i] = hak_malloc(128)) != NULL);
    struct snapshot_class first = class_of(128);
    CHECK_EQ(first.live_blocks, 1000);
    CHECK_EQ(first.taken_blocks, first.live_blocks + first.cached_blocks);
    for (int i = 0; i < 1000; i++)
        hak_free(blocks[i]);
    hak_reclaim_trim(0);
    CHECK_EQ(class_of(128).cached_blocks, 0);
    CHECK_EQ(class_of(128).taken_blocks, first.taken_blocks);
    CHECK(hak_calloc(1, 4000) != NULL);
    CHECK(hak_malloc(128) != NULL);
    struct snapshot_class second = class_of(128);
    CHECK_EQ(second.taken_blocks - first.taken_blocks, 1 + second.cached_blocks);
    CHECK_EQ(class_of(4000).taken_blocks, 1 + class_of(4000).cached_blocks);
}

TEST(no_request_is_counted_unless_that_was_asked_for)
{
    for (int i = 0; i < 1000; i++)
        hak_free(hak_malloc(100));
    struct snapshot snapshot = taken();
    CHECK(!snapshot.is_exact);
    CHECK_EQ(snapshot.exact_requests + snapshot.exact_frees, 0);
}

static uint64_t in_slabs(const struct snapshot *of)
{
    return of->small_live_bytes + of->cached_bytes - of->span_cached_bytes + of->withheld_bytes +
           of->homeward_bytes + of->slab_free_bytes;
}

TEST(the_committed_window_is_the_sum_of_its_parts)
{
    for (size_t bytes = 10; bytes < 16 * HAK_MIB; bytes = bytes * 3 / 2) {
        void *block = hak_malloc(bytes);
        if (bytes % 2 == 0)
            hak_free(block);
        struct snapshot snapshot = taken();
        uint64_t superslab_bytes =
            in_slabs(&snapshot) + snapshot.slab_warm_bytes + snapshot.slab_clean_bytes;
        CHECK_EQ(superslab_bytes, snapshot.superslabs * HAK_SUPERSLAB_BYTES);
        CHECK_EQ(snapshot.window_committed_bytes,
                 superslab_bytes + snapshot.large_live_bytes + snapshot.span_cached_bytes +
                     snapshot.span_warm_bytes + snapshot.span_clean_bytes +
                     snapshot.span_lost_bytes + snapshot.hole_bytes);
    }
}

/* slab_free_bytes is what remains; here it is counted. */
TEST(free_memory_in_slabs_is_free_blocks_and_tails)
{
    static void *blocks[5000];
    for (size_t i = 0; i < 5000; i++)
        blocks[i] = hak_malloc(i * 11 % 9000);
    for (size_t i = 0; i < 5000; i += 3)
        hak_free(blocks[i]);
    struct snapshot snapshot = taken();
    uint64_t free_bytes = 0, slabs = 0;
    for (uint32_t i = 0; i < snapshot.class_count; i++) {
        const struct size_class *size_class = &hak_size_classes[i];
        size_t slab_bytes = (size_t)size_class->granule_count << HAK_GRANULE_SHIFT;
        size_t tail_bytes = slab_bytes - (size_t)size_class->block_count * size_class->block_bytes;
        const struct snapshot_class *of = &snapshot.classes[i];
        free_bytes += of->free_blocks * of->block_bytes + of->slabs * tail_bytes;
        slabs += of->slabs;
    }
    CHECK_EQ(snapshot.slab_free_bytes, free_bytes);
    CHECK_EQ(snapshot.slabs, slabs);
}

TEST(live_bytes_are_those_of_the_programs_blocks)
{
    static void *blocks[3000];
    uint64_t small_bytes = 0, large_bytes = 0, large_count = 0;
    for (size_t i = 0; i < 3000; i++) {
        size_t bytes = i % 100 ? i * 13 % 20000 : 150000 + i * 100;
        blocks[i] = hak_malloc(bytes);
    }
    for (size_t i = 0; i < 3000; i++) {
        if (i % 3 == 0) {
            hak_free(blocks[i]);
            continue;
        }
        size_t usable = hak_malloc_usable_size(blocks[i]);
        if (usable <= HAK_CLASS_BYTES_MAX) {
            small_bytes += usable;
        } else {
            large_bytes += hak_align_up(usable, HAK_GRANULE_BYTES);
            large_count++;
        }
    }
    struct snapshot snapshot = taken();
    CHECK_EQ(snapshot.small_live_bytes, small_bytes);
    CHECK_EQ(snapshot.large_live_bytes, large_bytes);
    CHECK_EQ(snapshot.large_live_blocks, large_count);
    CHECK_EQ(snapshot.live_bytes, small_bytes + large_bytes);
    CHECK(snapshot.cached_bytes > 0 || HAK_TINY);
}

TEST(statistics_are_printed_at_the_end_if_asked)
{
    char path[] = "/tmp/hakmem_report_test_XXXXXX";
    char command[200];
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    snprintf(command, sizeof command, "stats:raw,stats_file:%s", path);
    CHECK_EXITS((hak_conf_read_packed(command, CONF_PACKED), hak_malloc(1), exit(0)), 0);
    char buffer[8192] = "";
    CHECK(read(fd, buffer, sizeof buffer - 1) > 0);
    CHECK(strstr(buffer, "window_committed_bytes: ") != NULL);
    CHECK(strstr(buffer, "\nout_of_memory: 0\n") != NULL);
    CHECK(strstr(buffer, "\nrefills: 1\n") != NULL);
    unlink(path);
}
