/* SPDX-License-Identifier: MIT */
#include "os/rseq.h"
#include "stats/line_writer.h"

/* One object in one line, so that reports appended to a file can be read one by one. */

static void open_group(struct line_writer *out, const char *name)
{
    hak_line_add(out, ",\"");
    hak_line_add(out, name);
    hak_line_add(out, "\":{");
    hak_line_flush(out);
}

/* The comma of the first member is the group's bracket. */
static void close_group(struct line_writer *out)
{
    hak_line_add(out, "}");
    hak_line_flush(out);
}

static void add_member(struct line_writer *out, const char *name, uint64_t value, bool is_first)
{
    hak_line_add(out, is_first ? "\"" : ",\"");
    hak_line_add(out, name);
    hak_line_add(out, "\":");
    hak_line_number(out, value);
    hak_line_flush(out);
}

static void add_lock(struct line_writer *out, const char *name, uint64_t waits, uint64_t waited_ns,
                     bool is_first)
{
    hak_line_add(out, is_first ? "\"" : ",\"");
    hak_line_add(out, name);
    hak_line_add(out, "\":{");
    add_member(out, "waits", waits, true);
    add_member(out, "waited_ns", waited_ns, false);
    close_group(out);
}

static void add_class(struct line_writer *out, const struct snapshot_class *of, bool is_exact,
                      bool is_first)
{
    hak_line_add(out, is_first ? "{" : ",{");
    add_member(out, "block_bytes", of->block_bytes, true);
    add_member(out, "slabs", of->slabs, false);
    add_member(out, "live_blocks", of->live_blocks, false);
    add_member(out, "cached_blocks", of->cached_blocks, false);
    add_member(out, "free_blocks", of->free_blocks, false);
    add_member(out, "taken_blocks", of->taken_blocks, false);
    add_member(out, "popped_blocks", of->popped_blocks, false);
    if (is_exact) {
        add_member(out, "requests", of->requests, false);
        add_member(out, "reallocs", of->reallocs, false);
    }
    close_group(out);
}

static void add_classes(struct line_writer *out, const struct snapshot *snapshot)
{
    bool is_first = true;
    hak_line_add(out, ",\"classes\":[");
    for (uint32_t i = 0; i < snapshot->class_count; i++) {
        if (!hak_emit_is_in_use(&snapshot->classes[i]))
            continue;
        add_class(out, &snapshot->classes[i], snapshot->is_exact, is_first);
        is_first = false;
    }
    hak_line_add(out, "]");
}

static void add_caches(struct line_writer *out, const struct snapshot *snapshot)
{
    hak_line_add(out, ",\"caches\":[");
    for (uint32_t i = 0; i < snapshot->cache_count; i++) {
        const struct snapshot_cache *of = &snapshot->caches[i];
        hak_line_add(out, i == 0 ? "{" : ",{");
        add_member(out, of->is_processor ? "processor" : "thread", of->id, true);
#define X(name, level, meaning) add_member(out, #name, of->name, false);
        HAK_SNAPSHOT_CACHE_TABLE(X)
#undef X
        close_group(out);
    }
    hak_line_add(out, "]");
}

static void add_heaps(struct line_writer *out, const struct snapshot *snapshot)
{
    hak_line_add(out, ",\"heaps\":[");
    for (uint32_t i = 0; i < snapshot->heap_count; i++) {
        const struct snapshot_heap *of = &snapshot->shared_heaps[i];
        hak_line_add(out, i == 0 ? "{" : ",{");
        add_member(out, "id", of->id, true);
#define X(name, level, meaning) add_member(out, #name, of->name, false);
        HAK_SNAPSHOT_HEAP_TABLE(X)
#undef X
        close_group(out);
    }
    hak_line_add(out, "]");
}

/* Whether caches belong to processors or threads, why, and the id that selects one. */
static void add_rseq(struct line_writer *out, const struct snapshot *snapshot)
{
    bool is_processor = snapshot->rseq_reason == RSEQ_PROCESSOR;
    hak_line_add(out, is_processor ? ",\"rseq\":\"processor\"" : ",\"rseq\":\"thread\"");
    hak_line_add(out, ",\"rseq_reason\":\"");
    hak_line_add(out, hak_rseq_meaning(snapshot->rseq_reason));
    hak_line_add(out, "\",\"rseq_id\":\"");
    hak_line_add(out, hak_rseq_id_name(snapshot->rseq_id));
    hak_line_add(out, "\"");
}

static void add_memory(struct line_writer *out, const struct snapshot *snapshot)
{
    bool is_first = true;
#define X(name, meaning)                                                                           \
    add_member(out, #name, snapshot->name, is_first);                                              \
    is_first = false;
    open_group(out, "memory");
    HAK_SNAPSHOT_LEVEL_TABLE(X)
    close_group(out);
    open_group(out, "totals");
    is_first = true;
    HAK_SNAPSHOT_TOTAL_TABLE(X)
    close_group(out);
    open_group(out, "process");
    is_first = true;
    HAK_STAT_GLOBAL_TABLE(X)
    close_group(out);
    if (!snapshot->is_exact)
        return;
    open_group(out, "exact");
    is_first = true;
    HAK_SNAPSHOT_EXACT_TABLE(X)
    close_group(out);
#undef X
}

void hak_emit_json(const struct snapshot *snapshot, emit_writer *write, void *target)
{
    char line[HAK_LINE_BYTES];
    struct line_writer out = hak_line_on(line, write, target);
    bool is_first = true;
    hak_line_add(&out, "{");
    add_member(&out, "schema", HAK_EMIT_JSON_SCHEMA, true);
    hak_line_add(&out, ",\"version\":\"" HAK_PROJECT_VERSION "\"");
    add_member(&out, "pid", snapshot->pid, false);
    add_member(&out, "unix_ms", snapshot->unix_ms, false);
    add_rseq(&out, snapshot);
    add_memory(&out, snapshot);
    open_group(&out, "slow_paths");
#define X(name, meaning)                                                                           \
    add_member(&out, #name, snapshot->sums[HAK_STAT_##name], is_first);                            \
    is_first = false;
    HAK_STAT_TABLE(X)
#undef X
    close_group(&out);
    open_group(&out, "locks");
    is_first = true;
#define X(rank, name, meaning)                                                                     \
    add_lock(&out, #name, snapshot->waits[HAK_LOCK_##rank], snapshot->waited_ns[HAK_LOCK_##rank],  \
             is_first);                                                                            \
    is_first = false;
    HAK_LOCK_TABLE(X)
#undef X
    close_group(&out);
    open_group(&out, "policy");
    is_first = true;
#define X(name, initial, least, most, meaning)                                                     \
    add_member(&out, #name, snapshot->policy_##name, is_first);                                    \
    is_first = false;
    HAK_POLICY_TABLE(X)
#undef X
    close_group(&out);
    add_classes(&out, snapshot);
    add_caches(&out, snapshot);
    add_heaps(&out, snapshot);
    hak_line_add(&out, "}\n");
    hak_line_flush(&out);
}
