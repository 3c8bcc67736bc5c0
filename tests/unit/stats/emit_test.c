/* SPDX-License-Identifier: MIT */
/* tests/unit/stats/emit_test.c - a snapshot as lines of text. */
#include "check.h"
#include "stats/emit.h"

static char document[65536];
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

TEST(every_number_of_a_snapshot_has_a_line_with_its_name)
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
    hak_emit_text(&snapshot, append, document);
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
