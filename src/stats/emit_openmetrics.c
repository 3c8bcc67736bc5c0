/* SPDX-License-Identifier: MIT */
#include "stats/pen.h"

#include <string.h>

/* The OpenMetrics text format 1.0: a family's samples stand together behind its TYPE, UNIT and
 * HELP; samples of a counter end in _total; the unit is the end of the family's name. */

enum family { LEVEL, TOTAL };

static bool ends_with(const char *name, const char *end)
{
    size_t length = strlen(name), end_length = strlen(end);
    return length >= end_length && strcmp(name + length - end_length, end) == 0;
}

static void begin_line(struct pen *pen, const char *keyword, const char *name)
{
    hak_pen_add(pen, keyword);
    hak_pen_add(pen, "hakmem_");
    hak_pen_add(pen, name);
}

static void end_line(struct pen *pen, const char *rest)
{
    hak_pen_add(pen, rest);
    hak_pen_add(pen, "\n");
    hak_pen_flush(pen);
}

static void begin_family(struct pen *pen, const char *name, const char *meaning, enum family family)
{
    begin_line(pen, "# TYPE ", name);
    end_line(pen, family == TOTAL ? " counter" : " gauge");
    if (ends_with(name, "_bytes") || ends_with(name, "_seconds")) {
        begin_line(pen, "# UNIT ", name);
        end_line(pen, ends_with(name, "_bytes") ? " bytes" : " seconds");
    }
    begin_line(pen, "# HELP ", name);
    hak_pen_add(pen, " ");
    end_line(pen, meaning);
}

static void add_sample(struct pen *pen, const char *name, enum family family, uint64_t value)
{
    begin_line(pen, "", name);
    hak_pen_add(pen, family == TOTAL ? "_total " : " ");
    hak_pen_number(pen, value);
    end_line(pen, "");
}

static void add_family(struct pen *pen, const char *name, const char *meaning, enum family family,
                       uint64_t value)
{
    begin_family(pen, name, meaning, family);
    add_sample(pen, name, family, value);
}

/* hakmem_NAME{lock="span"}, up to the value */
static void begin_lock(struct pen *pen, const char *name, const char *lock)
{
    begin_line(pen, "", name);
    hak_pen_add(pen, "_total{lock=\"");
    hak_pen_add(pen, lock);
    hak_pen_add(pen, "\"} ");
}

/* Nanoseconds as seconds, exactly. */
static void add_seconds(struct pen *pen, uint64_t ns)
{
    hak_pen_number(pen, ns / 1000000000u);
    hak_pen_add(pen, ".");
    for (uint64_t place = 100000000u; place != 0; place /= 10)
        hak_pen_number(pen, ns / place % 10);
}

static void add_locks(struct pen *pen, const struct snapshot *snapshot)
{
    begin_family(pen, "lock_waits", "how often a lock was held when it was asked for", TOTAL);
#define X(rank, name, meaning)                                                                     \
    begin_lock(pen, "lock_waits", #name);                                                          \
    hak_pen_number(pen, snapshot->waits[HAK_LOCK_##rank]);                                         \
    end_line(pen, "");
    HAK_LOCK_TABLE(X)
#undef X
    begin_family(pen, "lock_waited_seconds", "what all threads waited for a lock", TOTAL);
#define X(rank, name, meaning)                                                                     \
    begin_lock(pen, "lock_waited_seconds", #name);                                                 \
    add_seconds(pen, snapshot->waited_ns[HAK_LOCK_##rank]);                                        \
    end_line(pen, "");
    HAK_LOCK_TABLE(X)
#undef X
}

/* One family with a sample for each size class in use; `offset` says where its number stands. */
static void add_class_family(struct pen *pen, const struct snapshot *snapshot, const char *name,
                             const char *meaning, size_t offset, enum family family)
{
    begin_family(pen, name, meaning, family);
    for (uint32_t i = 0; i < snapshot->class_count; i++) {
        const struct snapshot_class *of = &snapshot->classes[i];
        if (!hak_emit_is_in_use(of))
            continue;
        uint64_t value;
        memcpy(&value, (const char *)of + offset, sizeof value);
        begin_line(pen, "", name);
        hak_pen_add(pen, family == TOTAL ? "_total{size=\"" : "{size=\"");
        hak_pen_number(pen, of->block_bytes);
        hak_pen_add(pen, "\"} ");
        hak_pen_number(pen, value);
        end_line(pen, "");
    }
}

static void add_classes(struct pen *pen, const struct snapshot *snapshot)
{
    add_class_family(pen, snapshot, "class_slabs", "slabs of a size class",
                     offsetof(struct snapshot_class, slabs), LEVEL);
    add_class_family(pen, snapshot, "class_live_blocks", "live blocks of a size class",
                     offsetof(struct snapshot_class, live_blocks), LEVEL);
    add_class_family(pen, snapshot, "class_cached_blocks", "free blocks at hand or on the way home",
                     offsetof(struct snapshot_class, cached_blocks), LEVEL);
    add_class_family(pen, snapshot, "class_free_blocks", "free blocks in slabs",
                     offsetof(struct snapshot_class, free_blocks), LEVEL);
    add_class_family(pen, snapshot, "class_taken_blocks", "blocks that ever left slabs",
                     offsetof(struct snapshot_class, taken_blocks), TOTAL);
    add_class_family(pen, snapshot, "class_popped_blocks", "blocks that were served from bins",
                     offsetof(struct snapshot_class, popped_blocks), TOTAL);
    if (!snapshot->is_exact)
        return;
    add_class_family(pen, snapshot, "class_requests", "requests for sizes of this class",
                     offsetof(struct snapshot_class, requests), TOTAL);
    add_class_family(pen, snapshot, "class_reallocs", "reallocs to sizes of this class",
                     offsetof(struct snapshot_class, reallocs), TOTAL);
}

void hak_emit_openmetrics(const struct snapshot *snapshot, emit_writer *write, void *target)
{
    char line[HAK_PEN_LINE_BYTES];
    struct pen pen = {write, target, {.start = line, .bytes = sizeof line}};
    end_line(&pen, "# TYPE hakmem_build info\n# HELP hakmem_build the library that serves\n"
                   "hakmem_build_info{version=\"" HAK_PROJECT_VERSION "\"} 1");
#define X(name, meaning) add_family(&pen, #name, meaning, LEVEL, snapshot->name);
    HAK_SNAPSHOT_LEVEL_TABLE(X)
#undef X
#define X(name, meaning) add_family(&pen, #name, meaning, TOTAL, snapshot->name);
    HAK_SNAPSHOT_TOTAL_TABLE(X)
    HAK_STAT_GLOBAL_TABLE(X)
    if (snapshot->is_exact) {
        HAK_SNAPSHOT_EXACT_TABLE(X)
    }
#undef X
#define X(name, meaning) add_family(&pen, #name, meaning, TOTAL, snapshot->sums[HAK_STAT_##name]);
    HAK_STAT_TABLE(X)
#undef X
    add_locks(&pen, snapshot);
#define X(name, initial, least, most, meaning)                                                     \
    add_family(&pen, "policy_" #name, meaning, LEVEL, snapshot->policy_##name);
    HAK_POLICY_TABLE(X)
#undef X
    add_classes(&pen, snapshot);
    end_line(&pen, "# EOF");
}
