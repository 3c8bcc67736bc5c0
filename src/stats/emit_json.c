/* SPDX-License-Identifier: MIT */
#include "os/rseq.h"
#include "stats/line_writer.h"

/* One object in one line, so that reports appended to a file can be read one by one. */

/* Writes what was added, and begins the next member or row: behind another one a comma stands. */
static void separate(struct line_writer *out)
{
    char last = out->line.start[out->line.used - 1];
    hak_line_flush(out);
    if (last != '{' && last != '[')
        hak_line_add(out, ",");
}

/* A member's name, and what stands before its value. */
static void add_name(struct line_writer *out, const char *name, const char *before)
{
    separate(out);
    hak_line_add(out, "\"");
    hak_line_add(out, name);
    hak_line_add(out, "\":");
    hak_line_add(out, before);
}

static void open_row(struct line_writer *out)
{
    separate(out);
    hak_line_add(out, "{");
}

static void add_member(struct line_writer *out, const char *name, uint64_t value)
{
    add_name(out, name, "");
    hak_line_value(out, value);
}

static void add_text(struct line_writer *out, const char *name, const char *value)
{
    add_name(out, name, "\"");
    hak_line_add(out, value);
    hak_line_add(out, "\"");
}

static void add_lock(struct line_writer *out, const char *name, uint64_t waits, uint64_t waited_ns)
{
    add_name(out, name, "{");
    add_member(out, "waits", waits);
    add_member(out, "waited_ns", waited_ns);
    hak_line_add(out, "}");
}

static void add_class(struct line_writer *out, const struct snapshot_class *of, bool is_exact)
{
    open_row(out);
    add_member(out, "block_bytes", of->block_bytes);
    add_member(out, "slabs", of->slabs);
    add_member(out, "live_blocks", of->live_blocks);
    add_member(out, "cached_blocks", of->cached_blocks);
    add_member(out, "free_blocks", of->free_blocks);
    add_member(out, "taken_blocks", of->taken_blocks);
    add_member(out, "popped_blocks", of->popped_blocks);
    if (is_exact) {
        add_member(out, "requests", of->requests);
        add_member(out, "reallocs", of->reallocs);
    }
    hak_line_add(out, "}");
}

static void add_classes(struct line_writer *out, const struct snapshot *snapshot)
{
    add_name(out, "classes", "[");
    for (uint32_t i = 0; i < snapshot->class_count; i++)
        if (hak_emit_is_in_use(&snapshot->classes[i]))
            add_class(out, &snapshot->classes[i], snapshot->is_exact);
    hak_line_add(out, "]");
}

static void add_caches(struct line_writer *out, const struct snapshot *snapshot)
{
    add_name(out, "caches", "[");
    for (uint32_t i = 0; i < snapshot->cache_count; i++) {
        const struct snapshot_cache *of = &snapshot->caches[i];
        open_row(out);
        add_member(out, of->is_processor ? "processor" : "thread", of->id);
#define X(name, level, meaning) add_member(out, #name, of->name);
        HAK_SNAPSHOT_CACHE_TABLE(X)
#undef X
        hak_line_add(out, "}");
    }
    hak_line_add(out, "]");
}

static void add_heaps(struct line_writer *out, const struct snapshot *snapshot)
{
    add_name(out, "heaps", "[");
    for (uint32_t i = 0; i < snapshot->heap_count; i++) {
        const struct snapshot_heap *of = &snapshot->shared_heaps[i];
        open_row(out);
        add_member(out, "id", of->id);
#define X(name, level, meaning) add_member(out, #name, of->name);
        HAK_SNAPSHOT_HEAP_TABLE(X)
#undef X
        hak_line_add(out, "}");
    }
    hak_line_add(out, "]");
}

/* Whether caches belong to processors or threads, why, and the id that selects one. */
static void add_rseq(struct line_writer *out, const struct snapshot *snapshot)
{
    bool is_processor = snapshot->rseq_reason == RSEQ_PROCESSOR;
    add_text(out, "rseq", is_processor ? "processor" : "thread");
    add_text(out, "rseq_reason", hak_rseq_meaning(snapshot->rseq_reason));
    add_text(out, "rseq_id", hak_rseq_id_name(snapshot->rseq_id));
}

static void add_memory(struct line_writer *out, const struct snapshot *snapshot)
{
#define X(name, meaning) add_member(out, #name, snapshot->name);
    add_name(out, "memory", "{");
    HAK_SNAPSHOT_LEVEL_TABLE(X)
    hak_line_add(out, "}");
    add_name(out, "totals", "{");
    HAK_SNAPSHOT_TOTAL_TABLE(X)
    hak_line_add(out, "}");
    add_name(out, "process", "{");
    HAK_STAT_GLOBAL_TABLE(X)
    hak_line_add(out, "}");
    if (!snapshot->is_exact)
        return;
    add_name(out, "exact", "{");
    HAK_SNAPSHOT_EXACT_TABLE(X)
    hak_line_add(out, "}");
#undef X
}

void hak_emit_json(const struct snapshot *snapshot, emit_writer *write, void *target)
{
    char line[HAK_LINE_BYTES];
    struct line_writer out = hak_line_on(line, write, target);
    hak_line_add(&out, "{");
    add_member(&out, "schema", HAK_EMIT_JSON_SCHEMA);
    add_text(&out, "version", HAK_PROJECT_VERSION);
    add_member(&out, "pid", snapshot->pid);
    add_member(&out, "unix_ms", snapshot->unix_ms);
    add_rseq(&out, snapshot);
    add_memory(&out, snapshot);
    add_name(&out, "slow_paths", "{");
#define X(name, meaning) add_member(&out, #name, snapshot->sums[HAK_STAT_##name]);
    HAK_STAT_TABLE(X)
#undef X
    hak_line_add(&out, "}");
    add_name(&out, "locks", "{");
#define X(rank, name, meaning)                                                                     \
    add_lock(&out, #name, snapshot->waits[HAK_LOCK_##rank], snapshot->waited_ns[HAK_LOCK_##rank]);
    HAK_LOCK_TABLE(X)
#undef X
    hak_line_add(&out, "}");
    add_name(&out, "policy", "{");
#define X(name, initial, least, most, meaning) add_member(&out, #name, snapshot->policy_##name);
    HAK_POLICY_TABLE(X)
#undef X
    hak_line_add(&out, "}");
    add_classes(&out, snapshot);
    add_caches(&out, snapshot);
    add_heaps(&out, snapshot);
    hak_line_add(&out, "}\n");
    hak_line_flush(&out);
}
