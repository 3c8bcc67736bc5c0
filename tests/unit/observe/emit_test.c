/* SPDX-License-Identifier: MIT */
/* tests/unit/observe/emit_test.c - a snapshot as lines of text. */
#include "check.h"
#include "observe/emit.h"

static char lines[HAK_EMIT_TEXT_BYTES + 1];

static size_t emit(const struct snapshot *snapshot, size_t bytes)
{
    struct text text = {.start = lines, .bytes = bytes};
    hak_emit_text(snapshot, &text);
    lines[text.used] = '\0';
    return text.used;
}

static void check_line(const char *name, uint64_t value)
{
    char line[128];
    snprintf(line, sizeof line, "%s: %llu\n", name, (unsigned long long)value);
    const char *found = strstr(lines, line);
    CHECK(found != NULL);
    CHECK(found == lines || found[-1] == '\n');
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
    emit(&snapshot, HAK_EMIT_TEXT_BYTES);
    uint64_t expected = 1000;
#define X(name, meaning) check_line(#name, expected++);
    HAK_SNAPSHOT_TABLE(X)
    HAK_STAT_GLOBAL_TABLE(X)
    HAK_STAT_TABLE(X)
#undef X
    CHECK_EQ(expected, value);
}

TEST(the_largest_numbers_fit_the_buffer)
{
    struct snapshot snapshot;
    memset(&snapshot, 0xff, sizeof snapshot);
    size_t used = emit(&snapshot, HAK_EMIT_TEXT_BYTES);
    CHECK(used < HAK_EMIT_TEXT_BYTES);
    CHECK_EQ(lines[used - 1], '\n');
    CHECK(strstr(lines, "18446744073709551615\n") != NULL);
}

TEST(what_does_not_fit_is_cut)
{
    struct snapshot snapshot = {0};
    memset(lines, '#', sizeof lines);
    CHECK_EQ(emit(&snapshot, 50), 50);
    CHECK_EQ(lines[51], '#');
}
