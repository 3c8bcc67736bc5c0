/* SPDX-License-Identifier: MIT */
/* tests/unit/stats/summary_test.c - a snapshot in words, and when which option is advised. */
#include "check.h"
#include "os/rseq.h"
#include "stats/summary.h"

static char document[8192];
static size_t document_bytes;

static void append(void *target, const char *piece, size_t bytes)
{
    CHECK(target == document && document_bytes + bytes < sizeof document);
    memcpy(document + document_bytes, piece, bytes);
    document_bytes += bytes;
    document[document_bytes] = '\0';
}

static void says(const struct snapshot *snapshot, const char *line)
{
    document_bytes = 0;
    hak_emit_summary(snapshot, append, document);
    if (strstr(document, line) == NULL)
        CHECK_FAILED("no \"%s\" in:\n%s", line, document);
}

static bool advises(const struct snapshot *snapshot, const char *option)
{
    return strstr(hak_summary_advice(snapshot), option) != NULL;
}

/* 100 MiB live, and the defaults. */
static struct snapshot usual(void)
{
    return (struct snapshot){.live_bytes = 100 * HAK_MIB,
                             .small_live_blocks = 7,
                             .policy_decay_ms = 125,
                             .policy_free_policy = POLICY_FREE_ADAPTIVE,
                             .policy_thread_cache_bytes = 8 * HAK_MIB};
}

TEST(the_parts_add_up_to_held)
{
    struct snapshot snapshot = {.live_bytes = 1,
                                .slab_free_bytes = 10,
                                .cached_bytes = 100,
                                .withheld_bytes = 1000,
                                .homeward_bytes = 10000,
                                .slab_warm_bytes = 100000,
                                .span_warm_bytes = 1000000,
                                .metadata_bytes = 10000000,
                                .table_bytes = 100000000,
                                .slab_clean_bytes = 7,
                                .span_clean_bytes = 7,
                                .window_committed_bytes = 7};
    CHECK_EQ(hak_held_sum(&snapshot), 111111111);
    CHECK_EQ(hak_held_part(&snapshot, HELD_RETURNING), 11000);
}

TEST(the_figures_have_words_and_units)
{
    struct snapshot snapshot = usual();
    snapshot.pid = 17;
    snapshot.unix_ms = 1709210096000; /* a 29th of February */
    snapshot.slab_free_bytes = 100 * HAK_MIB;
    snapshot.resident_bytes = 300 * HAK_MIB;
    snapshot.own_resident_bytes = 250 * HAK_MIB;
    snapshot.resident_peak_bytes = 400 * HAK_MIB;
    says(&snapshot, "hakmem statistics, process 17, 2024-02-29 12:34:56 UTC\n");
    says(&snapshot, "resident      300.0 MiB  the process, 250.0 MiB of it hakmem's; peak 400.0");
    says(&snapshot, "held          200.0 MiB  by hakmem");
    says(&snapshot, "  live        100.0 MiB    50.0 %  7 blocks of the program\n");
    says(&snapshot, "  free        100.0 MiB    50.0 %  in slabs");
    says(&snapshot, "fragmentation      2.50  resident bytes of hakmem for each live byte\n");
    says(&snapshot, "rseq                     processor: caches belong to processors\n");
    snapshot.own_resident_bytes = snapshot.resident_bytes = 0;
    snapshot.rseq_reason = RSEQ_CHOSEN;
    says(&snapshot, "fragmentation      2.00  held bytes for each live byte\n");
    says(&snapshot, "rseq                     thread: option caches=thread\n");
    says(&snapshot, "advice                   none: no option");
}

TEST(the_end_of_each_year_is_the_right_day)
{
    struct snapshot snapshot = {.unix_ms = 1000};
    says(&snapshot, "1970-01-01 00:00:01 UTC\n");
    snapshot.unix_ms = 951782400000;
    says(&snapshot, "2000-02-29 00:00:00 UTC\n");
    snapshot.unix_ms = 1798761599000;
    says(&snapshot, "2026-12-31 23:59:59 UTC\n");
}

TEST(the_three_classes_that_hold_most_come_first_one_first)
{
    struct snapshot snapshot = {.class_count = 5};
    static const uint64_t counts[] = {10, 400, 0, 300, 20};
    for (uint32_t i = 0; i < 5; i++)
        snapshot.classes[i] =
            (struct snapshot_class){.block_bytes = 64 << i, .live_blocks = counts[i]};
    says(&snapshot, "largest       150.0 KiB  in blocks of 512 bytes, 50.0 KiB of 128,");
    says(&snapshot, "20.0 KiB of 1024\n");
}

TEST(no_option_is_advised_for_little)
{
    struct snapshot snapshot = usual();
    snapshot.policy_decay_ms = 10000;
    snapshot.span_warm_bytes = 20 * HAK_MIB;
    CHECK_STR(hak_summary_advice(&snapshot), "");
    snapshot.live_bytes = HAK_MIB;
    snapshot.span_warm_bytes = 2 * HAK_MIB;
    CHECK_STR(hak_summary_advice(&snapshot), "");
    snapshot.span_warm_bytes = 5 * HAK_MIB;
    CHECK(advises(&snapshot, "HAKMEM_DECAY"));
}

TEST(kept_memory_is_advised_on_only_if_an_option_keeps_it)
{
    struct snapshot snapshot = usual();
    snapshot.span_warm_bytes = 200 * HAK_MIB;
    CHECK_STR(hak_summary_advice(&snapshot), "");
    says(&snapshot, "none: kept memory is returned after option decay");
    snapshot.policy_decay_ms = 1000;
    CHECK(advises(&snapshot, "HAKMEM_DECAY=125ms"));
    snapshot.policy_free_policy = POLICY_FREE_KEEP;
    CHECK(advises(&snapshot, "HAKMEM_FREE_POLICY=adaptive"));
    snapshot.policy_free_policy = POLICY_FREE_ADAPTIVE;
    snapshot.policy_prewarm_bytes = 300 * HAK_MIB;
    CHECK(advises(&snapshot, "HAKMEM_PREWARM"));
}

TEST(caches_are_advised_on_only_where_they_can_be_smaller)
{
    struct snapshot snapshot = usual();
    snapshot.cached_bytes = 200 * HAK_MIB;
    CHECK(advises(&snapshot, "HAKMEM_PRICE=compact"));
    snapshot.rseq_reason = RSEQ_CHOSEN;
    CHECK(advises(&snapshot, "HAKMEM_CACHES=processor"));
    snapshot.policy_thread_cache_bytes = 256 * HAK_KIB;
    CHECK_STR(hak_summary_advice(&snapshot), "");
    snapshot.policy_thread_cache_bytes = 8 * HAK_MIB;
    snapshot.span_cached_bytes = 150 * HAK_MIB; /* no bins */
    CHECK_STR(hak_summary_advice(&snapshot), "");
}

TEST(quarantine_and_huge_pages_are_advised_on)
{
    struct snapshot snapshot = usual();
    snapshot.homeward_bytes = 60 * HAK_MIB;
    CHECK_STR(hak_summary_advice(&snapshot), "");
    snapshot.withheld_bytes = 70 * HAK_MIB;
    CHECK(advises(&snapshot, "HAKMEM_QUARANTINE"));
    snapshot.huge_excess_bytes = 500 * HAK_MIB;
    CHECK(advises(&snapshot, "HAKMEM_THP=off"));
}

TEST(no_option_is_advised_for_memory_outside_hakmem)
{
    struct snapshot snapshot = usual();
    snapshot.own_resident_bytes = 100 * HAK_MIB;
    snapshot.resident_bytes = 900 * HAK_MIB;
    says(&snapshot, "advice                   none: most of what is resident is not hakmem's.\n");
    snapshot.out_of_memory = 3;
    says(&snapshot, "refused               3  requests");
}
