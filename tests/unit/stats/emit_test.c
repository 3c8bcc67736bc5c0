/* SPDX-License-Identifier: MIT */
/* tests/unit/stats/emit_test.c - a snapshot in each form. */
#include "check.h"
#include "os/rseq.h"
#include "stats/emit.h"

#include <stdlib.h>

static char document[262144];
static size_t document_bytes;

static void append(void *target, const char *piece, size_t bytes)
{
    CHECK(target == document && document_bytes + bytes < sizeof document);
    memcpy(document + document_bytes, piece, bytes);
    document_bytes += bytes;
    document[document_bytes] = '\0';
}

static void check_line(const char *name, uint64_t value)
{
    char line[128];
    snprintf(line, sizeof line, "%s: %llu\n", name, (unsigned long long)value);
    const char *found = strstr(document, line);
    CHECK(found != NULL);
    CHECK(found == document || found[-1] == '\n');
}

TEST(every_number_of_a_snapshot_has_a_row_with_its_name)
{
    struct snapshot snapshot = {0};
    uint64_t value = 1000;
#define X(name, meaning) snapshot.name = value++;
    HAK_SNAPSHOT_TABLE(X)
    HAK_STAT_GLOBAL_TABLE(X)
#undef X
#define X(name, meaning) snapshot.sums[HAK_STAT_##name] = value++;
    HAK_STAT_TABLE(X)
#undef X
#define X(rank, name, meaning)                                                                     \
    snapshot.waits[HAK_LOCK_##rank] = value++;                                                     \
    snapshot.waited_ns[HAK_LOCK_##rank] = value++;
    HAK_LOCK_TABLE(X)
#undef X
    hak_emit_raw(&snapshot, append, document);
    uint64_t expected = 1000;
#define X(name, meaning) check_line(#name, expected++);
    HAK_SNAPSHOT_TABLE(X)
    HAK_STAT_GLOBAL_TABLE(X)
    HAK_STAT_TABLE(X)
#undef X
#define X(rank, name, meaning)                                                                     \
    check_line("waits_" #name, expected++);                                                        \
    check_line("waited_ns_" #name, expected++);
    HAK_LOCK_TABLE(X)
#undef X
    CHECK_EQ(expected, value);
}

/* Every element is opened and closed, and in the right order. */
static void check_well_formed(void)
{
    const char *open[16];
    int depth = 0;
    for (const char *i = document; (i = strchr(i, '<')) != NULL; i++) {
        const char *end = strchr(i, '>');
        CHECK(end != NULL);
        size_t length = strcspn(i + 1, " />");
        if (i[1] == '/') {
            length = strcspn(i + 2, ">");
            CHECK(depth > 0 && memcmp(open[--depth], i + 2, length) == 0);
        } else if (end[-1] != '/') {
            CHECK(depth < 16);
            open[depth++] = i + 1;
        }
        CHECK(length > 0);
    }
    CHECK_EQ(depth, 0);
}

TEST(the_xml_form_is_well_formed_and_holds_every_number)
{
    struct snapshot snapshot;
    memset(&snapshot, 0xff, sizeof snapshot);
    snapshot.is_exact = true;
    snapshot.class_count = HAK_SNAPSHOT_CLASSES;
    snapshot.cache_count = HAK_SNAPSHOT_CACHES;
    snapshot.heap_count = HAK_SNAPSHOT_HEAPS;
    hak_emit_xml(&snapshot, append, document);
    check_well_formed();
    CHECK(strncmp(document, "<malloc version=\"1\">\n", 21) == 0);
#define X(name, meaning)                                                                           \
    CHECK(strstr(document, "<counter name=\"" #name "\" value=\"18446744073709551615\"/>") != NULL);
    HAK_SNAPSHOT_TABLE(X)
    HAK_STAT_GLOBAL_TABLE(X)
    HAK_STAT_TABLE(X)
#undef X
}

TEST(the_xml_form_has_the_elements_of_glibc)
{
    struct snapshot snapshot = {.small_live_bytes = 1600,
                                .cached_bytes = 160,
                                .slab_free_bytes = 3000,
                                .large_live_bytes = 70000,
                                .large_live_blocks = 1,
                                .class_count = 2};
    snapshot.classes[0] = (struct snapshot_class){8, 0, 0, 0, 0, 0, 0, 0, 0};
    snapshot.classes[1] = (struct snapshot_class){16, 1, 100, 10, 90, 0, 0, 0, 0};
    hak_emit_xml(&snapshot, append, document);
    check_well_formed();
    CHECK(strstr(document, "<size from=\"9\" to=\"16\" total=\"1600\" count=\"100\"/>") != NULL);
    CHECK(strstr(document, "<total type=\"fast\" count=\"10\" size=\"160\"/>") != NULL);
    CHECK(strstr(document, "<total type=\"rest\" count=\"90\" size=\"3000\"/>") != NULL);
    CHECK(strstr(document, "<total type=\"mmap\" count=\"1\" size=\"70000\"/>") != NULL);
    CHECK(strstr(document, "<system type=\"current\" size=\"4760\"/>") != NULL);
    CHECK(strstr(document, "<class size=\"16\" slabs=\"1\" live=\"100\" cached=\"10\"") != NULL);
    CHECK(strstr(document, "from=\"1\"") == NULL);
}

static uint64_t count_lines(void)
{
    uint64_t count = 0;
    for (const char *i = document; *i != '\0'; i++)
        count += *i == '\n';
    return count;
}

TEST(the_last_row_of_the_raw_form_says_how_many_came_before)
{
    struct snapshot snapshot = {.class_count = 1, .cache_count = 1, .heap_count = 1};
    snapshot.classes[0].slabs = 1;
    hak_emit_raw(&snapshot, append, document);
    char *last = strstr(document, "\nrows: ");
    CHECK(last != NULL);
    CHECK_EQ(strtoull(last + 7, NULL, 10), count_lines() - 1);
    CHECK(strchr(last + 1, '\n')[1] == '\0');
}

/* No line is wider than a terminal; where all is shown, nothing is left out. */
TEST(the_text_form_fits_a_terminal)
{
    static struct snapshot snapshot;
    static const uint64_t fill[] = {0, 1, 9999999, UINT64_MAX};
    for (int i = 0; i < 4; i++) {
        document_bytes = 0;
        for (size_t at = 0; at + sizeof *fill <= sizeof snapshot; at += sizeof *fill)
            memcpy((char *)&snapshot + at, &fill[i], sizeof *fill);
        snapshot.class_count = i == 0 ? 0 : HAK_SNAPSHOT_CLASSES;
        snapshot.cache_count = i == 0 ? 0 : HAK_SNAPSHOT_CACHES;
        snapshot.heap_count = i == 0 ? 0 : HAK_SNAPSHOT_HEAPS;
        snapshot.rseq_reason = (uint32_t)i;
        snapshot.is_exact = i != 0;
        hak_emit_tables(&snapshot, EMIT_WHOLE, append, document);
        for (char *line = document, *end; (end = strchr(line, '\n')) != NULL; line = end + 1)
            if (i < 3) /* there are no 2^64 slabs */
                CHECK(end - line < 80);
        CHECK(strncmp(document, "hakmem statistics", 17) == 0);
        CHECK(strstr(document, "\nNot shown: 0 numbers.\n") != NULL);
    }
}

TEST(the_text_form_leaves_zeros_out_and_says_how_many)
{
    struct snapshot snapshot = {.live_bytes = 12902400, .span_keep_ms = 125};
    snapshot.sums[HAK_STAT_refills] = 7;
    hak_emit_text(&snapshot, append, document);
    CHECK(strstr(document, "\nlive_bytes                 12.3 MiB  in live blocks: small") != NULL);
    CHECK(strstr(document, "\nspan_keep_ms                 125 ms  how long free spans") != NULL);
    CHECK(strstr(document, "\nrefills                           7  empty bins filled") != NULL);
    CHECK(strstr(document, "\nflushes") == NULL);
    CHECK(strstr(document, "Policy") == NULL);
    int silent = 0;
#define X(name, meaning) silent += snapshot.name == 0;
    HAK_SNAPSHOT_TABLE(X)
    HAK_STAT_GLOBAL_TABLE(X)
#undef X
    silent += HAK_STAT_COUNT - 1 + 2 * HAK_LOCK_COUNT;
    CHECK_EQ(strtoull(strstr(document, "\nNot shown: ") + 12, NULL, 10), (uint64_t)silent);
}

TEST(caches_and_heaps_are_in_every_form)
{
    struct snapshot snapshot = {
        .cache_count = 2, .heap_count = 1, .heaps = 71, .rseq_reason = RSEQ_CHOSEN};
    snapshot.caches[0] = (struct snapshot_cache){
        .id = 3, .is_processor = 1, .bytes = 1024, .capacity_bytes = 2048, .misses = 5};
    snapshot.caches[1] = (struct snapshot_cache){.id = 4, .bytes = 512};
    snapshot.shared_heaps[0] = (struct snapshot_heap){.id = 1,
                                                      .held_bytes = 65536,
                                                      .free_bytes = 1024,
                                                      .entries = 9,
                                                      .lock_waits = 6,
                                                      .steals = 7};
    static const char *const wanted[][4] = {
        [EMIT_TEXT] =
            {"processor 3      1.0 KiB       2.0 KiB             5\n", "thread 4           512 B",
             "heap 1          64.0 KiB       1.0 KiB             6         7\nand 70 more\n",
             "thread: option caches=thread"},
        [EMIT_RAW] = {"processor_3_capacity_bytes: 2048\n", "thread_4_bytes: 512\n",
                      "heap_1_steals: 7\n", "rseq_reason: 1\n"},
        [EMIT_JSON] = {"{\"processor\":3,\"bytes\":1024,\"capacity_bytes\":2048,\"misses\":5}",
                       "{\"thread\":4,\"bytes\":512,",
                       "{\"id\":1,\"held_bytes\":65536,\"free_bytes\":1024,\"entries\":9,"
                       "\"lock_waits\":6,\"steals\":7}",
                       "\"rseq\":\"thread\",\"rseq_reason\":\"option caches=thread\""},
        [EMIT_XML] = {"<cache processor=\"3\" bytes=\"1024\"", "<cache thread=\"4\"",
                      "<heap id=\"1\" held_bytes=\"65536\"",
                      "<rseq by=\"thread\" reason=\"option caches=thread\"/>"},
        [EMIT_OPENMETRICS] = {"hakmem_cache_misses_total{processor=\"3\"} 5\n",
                              "hakmem_cache_bytes{thread=\"4\"} 512\n",
                              "hakmem_heap_lock_waits_total{heap=\"1\"} 6\n",
                              "hakmem_rseq_info{by=\"thread\",reason=\"option caches=thread\"} 1"},
    };
    for (int form = EMIT_TEXT; form <= EMIT_OPENMETRICS; form++) {
        document_bytes = 0;
        hak_emit((enum emit_form)form, &snapshot, append, document);
        for (int i = 0; i < 4; i++)
            if (strstr(document, wanted[form][i]) == NULL)
                CHECK_FAILED("form %d lacks %s", form, wanted[form][i]);
    }
}
