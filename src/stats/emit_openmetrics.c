/* SPDX-License-Identifier: MIT */
#include "os/rseq.h"
#include "stats/line_writer.h"

#include <string.h>

/* The OpenMetrics text format 1.0: a family's samples stand together behind its TYPE, UNIT and
 * HELP; samples of a counter end in _total; the unit is the end of the family's name. */

enum family { LEVEL, TOTAL };

static bool ends_with(const char *name, const char *end)
{
    size_t length = strlen(name), end_length = strlen(end);
    return length >= end_length && strcmp(name + length - end_length, end) == 0;
}

static void begin_line(struct line_writer *out, const char *keyword, const char *name)
{
    hak_line_add(out, keyword);
    hak_line_add(out, "hakmem_");
    hak_line_add(out, name);
}

static void end_line(struct line_writer *out, const char *rest)
{
    hak_line_add(out, rest);
    hak_line_add(out, "\n");
    hak_line_flush(out);
}

static void begin_family(struct line_writer *out, const char *name, const char *meaning,
                         enum family family)
{
    begin_line(out, "# TYPE ", name);
    end_line(out, family == TOTAL ? " counter" : " gauge");
    if (ends_with(name, "_bytes") || ends_with(name, "_seconds")) {
        begin_line(out, "# UNIT ", name);
        end_line(out, ends_with(name, "_bytes") ? " bytes" : " seconds");
    }
    begin_line(out, "# HELP ", name);
    hak_line_add(out, " ");
    end_line(out, meaning);
}

static void add_sample(struct line_writer *out, const char *name, enum family family,
                       uint64_t value)
{
    begin_line(out, "", name);
    hak_line_add(out, family == TOTAL ? "_total " : " ");
    hak_line_value(out, value);
    end_line(out, "");
}

static void add_family(struct line_writer *out, const char *name, const char *meaning,
                       enum family family, uint64_t value)
{
    begin_family(out, name, meaning, family);
    add_sample(out, name, family, value);
}

/* hakmem_NAME{lock="span"}, up to the value */
static void begin_lock(struct line_writer *out, const char *name, const char *lock)
{
    begin_line(out, "", name);
    hak_line_add(out, "_total{lock=\"");
    hak_line_add(out, lock);
    hak_line_add(out, "\"} ");
}

/* Nanoseconds as seconds, exactly. */
static void add_seconds(struct line_writer *out, uint64_t ns)
{
    hak_text_add_fraction(&out->line, ns, 9);
}

static void add_locks(struct line_writer *out, const struct snapshot *snapshot)
{
    begin_family(out, "lock_waits", "how often a lock was found held", TOTAL);
#define X(rank, name, meaning)                                                                     \
    begin_lock(out, "lock_waits", #name);                                                          \
    hak_line_number(out, snapshot->waits[HAK_LOCK_##rank]);                                        \
    end_line(out, "");
    HAK_LOCK_TABLE(X)
#undef X
    begin_family(out, "lock_waited_seconds", "time that all threads waited for a lock", TOTAL);
#define X(rank, name, meaning)                                                                     \
    begin_lock(out, "lock_waited_seconds", #name);                                                 \
    add_seconds(out, snapshot->waited_ns[HAK_LOCK_##rank]);                                        \
    end_line(out, "");
    HAK_LOCK_TABLE(X)
#undef X
}

/* Begins a sample up to its value: hakmem_NAME{LABEL="ID"} */
static void begin_sample(struct line_writer *out, const char *name, enum family family,
                         const char *label, uint64_t id)
{
    begin_line(out, "", name);
    hak_line_add(out, family == TOTAL ? "_total{" : "{");
    hak_line_add(out, label);
    hak_line_add(out, "=\"");
    hak_line_number(out, id);
    hak_line_add(out, "\"} ");
}

/* One family with a sample for each size class in use; `offset` says where its number stands. */
static void add_class_family(struct line_writer *out, const struct snapshot *snapshot,
                             const char *name, const char *meaning, size_t offset,
                             enum family family)
{
    begin_family(out, name, meaning, family);
    for (uint32_t i = 0; i < snapshot->class_count; i++) {
        const struct snapshot_class *of = &snapshot->classes[i];
        if (!hak_emit_is_in_use(of))
            continue;
        uint64_t value;
        memcpy(&value, (const char *)of + offset, sizeof value);
        begin_sample(out, name, family, "size", of->block_bytes);
        hak_line_number(out, value);
        end_line(out, "");
    }
}

static void add_classes(struct line_writer *out, const struct snapshot *snapshot)
{
    add_class_family(out, snapshot, "class_slabs", "slabs of a size class",
                     offsetof(struct snapshot_class, slabs), LEVEL);
    add_class_family(out, snapshot, "class_live_blocks", "live blocks of a size class",
                     offsetof(struct snapshot_class, live_blocks), LEVEL);
    add_class_family(out, snapshot, "class_cached_blocks",
                     "free blocks in caches or not collected yet",
                     offsetof(struct snapshot_class, cached_blocks), LEVEL);
    add_class_family(out, snapshot, "class_free_blocks", "free blocks in slabs",
                     offsetof(struct snapshot_class, free_blocks), LEVEL);
    add_class_family(out, snapshot, "class_taken_blocks", "blocks that ever left slabs",
                     offsetof(struct snapshot_class, taken_blocks), TOTAL);
    add_class_family(out, snapshot, "class_popped_blocks", "blocks that were served from bins",
                     offsetof(struct snapshot_class, popped_blocks), TOTAL);
    if (!snapshot->is_exact)
        return;
    add_class_family(out, snapshot, "class_requests", "requests for sizes of this class",
                     offsetof(struct snapshot_class, requests), TOTAL);
    add_class_family(out, snapshot, "class_reallocs", "reallocs to sizes of this class",
                     offsetof(struct snapshot_class, reallocs), TOTAL);
}

static void add_caches(struct line_writer *out, const struct snapshot *snapshot)
{
#define X(name, family, meaning)                                                                   \
    begin_family(out, "cache_" #name, meaning, family);                                            \
    for (uint32_t i = 0; i < snapshot->cache_count; i++) {                                         \
        const struct snapshot_cache *of = &snapshot->caches[i];                                    \
        begin_sample(out, "cache_" #name, family, of->is_processor ? "processor" : "thread",       \
                     of->id);                                                                      \
        hak_line_number(out, of->name);                                                            \
        end_line(out, "");                                                                         \
    }
    HAK_SNAPSHOT_CACHE_TABLE(X)
#undef X
}

static void add_heaps(struct line_writer *out, const struct snapshot *snapshot)
{
#define X(name, family, meaning)                                                                   \
    begin_family(out, "heap_" #name, meaning, family);                                             \
    for (uint32_t i = 0; i < snapshot->heap_count; i++) {                                          \
        const struct snapshot_heap *of = &snapshot->shared_heaps[i];                               \
        begin_sample(out, "heap_" #name, family, "heap", of->id);                                  \
        hak_line_number(out, of->name);                                                            \
        end_line(out, "");                                                                         \
    }
    HAK_SNAPSHOT_HEAP_TABLE(X)
#undef X
}

/* Whose the caches are, and why. */
static void add_rseq(struct line_writer *out, const struct snapshot *snapshot)
{
    bool is_processor = snapshot->rseq_reason == RSEQ_PROCESSOR;
    end_line(out, "# TYPE hakmem_rseq info\n# HELP hakmem_rseq what caches belong to, and why");
    hak_line_add(out, "hakmem_rseq_info{by=\"");
    hak_line_add(out, is_processor ? "processor" : "thread");
    hak_line_add(out, "\",reason=\"");
    hak_line_add(out, hak_rseq_meaning(snapshot->rseq_reason));
    end_line(out, "\"} 1");
}

void hak_emit_openmetrics(const struct snapshot *snapshot, emit_writer *write, void *target)
{
    char line[HAK_LINE_BYTES];
    struct line_writer out = hak_line_on(line, write, target);
    end_line(&out, "# TYPE hakmem_build info\n# HELP hakmem_build the library that serves\n"
                   "hakmem_build_info{version=\"" HAK_PROJECT_VERSION "\"} 1");
#define X(name, meaning) add_family(&out, #name, meaning, LEVEL, snapshot->name);
    HAK_SNAPSHOT_LEVEL_TABLE(X)
#undef X
#define X(name, meaning) add_family(&out, #name, meaning, TOTAL, snapshot->name);
    HAK_SNAPSHOT_TOTAL_TABLE(X)
    HAK_STAT_GLOBAL_TABLE(X)
    if (snapshot->is_exact) {
        HAK_SNAPSHOT_EXACT_TABLE(X)
    }
#undef X
#define X(name, meaning) add_family(&out, #name, meaning, TOTAL, snapshot->sums[HAK_STAT_##name]);
    HAK_STAT_TABLE(X)
#undef X
    add_locks(&out, snapshot);
#define X(name, initial, least, most, meaning)                                                     \
    add_family(&out, "policy_" #name, meaning, LEVEL, snapshot->policy_##name);
    HAK_POLICY_TABLE(X)
#undef X
    add_classes(&out, snapshot);
    add_rseq(&out, snapshot);
    add_caches(&out, snapshot);
    add_heaps(&out, snapshot);
    end_line(&out, "# EOF");
}
