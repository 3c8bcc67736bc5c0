/* SPDX-License-Identifier: MIT */
/* tests/unit/api/report_test.c - the snapshot agrees with what was done, and is printed if
 * asked. */
#include "api/api.h"
#include "base/limits.h"
#include "cache/lifecycle.h"
#include "check.h"
#include "conf/conf.h"
#include "observe/snapshot.h"

static struct snapshot taken(void)
{
    struct snapshot snapshot;
    hak_snapshot_take(&snapshot);
    return snapshot;
}

TEST(a_snapshot_counts_slabs_spans_and_heaps)
{
    CHECK(hak_malloc(100) != NULL);
    void *large = hak_malloc(HAK_MIB);
    struct snapshot snapshot = taken();
    CHECK_EQ(snapshot.active_heaps, 1);
    CHECK_EQ(snapshot.slabs, 1);
    CHECK_EQ(snapshot.superslabs, 1);
    CHECK(snapshot.large_live_bytes >= HAK_MIB);
    CHECK_EQ(snapshot.sums[HAK_STAT_spans_taken], 1);
    CHECK_EQ(snapshot.sums[HAK_STAT_refills], 1);
    CHECK_EQ(snapshot.threads_started, 1);
    hak_free(large);
    snapshot = taken();
    CHECK_EQ(snapshot.large_live_bytes, 0);
    CHECK(snapshot.span_warm_bytes >= HAK_MIB);
    CHECK_EQ(snapshot.sums[HAK_STAT_spans_given], 1);
}

TEST(the_committed_window_is_the_sum_of_its_parts)
{
    for (size_t bytes = 10; bytes < 16 * HAK_MIB; bytes = bytes * 3 / 2) {
        void *block = hak_malloc(bytes);
        if (bytes % 2 == 0)
            hak_free(block);
        struct snapshot snapshot = taken();
        CHECK_EQ(snapshot.window_committed_bytes,
                 snapshot.superslabs * HAK_SUPERSLAB_BYTES + snapshot.large_live_bytes +
                     snapshot.span_warm_bytes + snapshot.span_clean_bytes);
    }
}

TEST(statistics_are_printed_at_the_end_if_asked)
{
    char path[] = "/tmp/hakmem_report_test_XXXXXX";
    char command[200];
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    snprintf(command, sizeof command, "stats:text,stats_file:%s", path);
    CHECK_EXITS((hak_conf_set_packed(command), hak_malloc(1), exit(0)), 0);
    char buffer[8192] = "";
    CHECK(read(fd, buffer, sizeof buffer - 1) > 0);
    CHECK(strstr(buffer, "window_committed_bytes: ") != NULL);
    CHECK(strstr(buffer, "\nout_of_memory: 0\n") != NULL);
    CHECK(strstr(buffer, "\nrefills: 1\n") != NULL);
    unlink(path);
}
