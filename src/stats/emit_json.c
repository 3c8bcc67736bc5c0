/* SPDX-License-Identifier: MIT */
#include "os/rseq.h"
#include "stats/pen.h"

/* One object in one line, so that reports appended to a file can be read one by one. */

static void open_group(struct pen *pen, const char *name)
{
    hak_pen_add(pen, ",\"");
    hak_pen_add(pen, name);
    hak_pen_add(pen, "\":{");
    hak_pen_flush(pen);
}

/* The comma of the first member is the group's bracket. */
static void close_group(struct pen *pen)
{
    hak_pen_add(pen, "}");
    hak_pen_flush(pen);
}

static void add_member(struct pen *pen, const char *name, uint64_t value, bool is_first)
{
    hak_pen_add(pen, is_first ? "\"" : ",\"");
    hak_pen_add(pen, name);
    hak_pen_add(pen, "\":");
    hak_pen_number(pen, value);
    hak_pen_flush(pen);
}

static void add_lock(struct pen *pen, const char *name, uint64_t waits, uint64_t waited_ns,
                     bool is_first)
{
    hak_pen_add(pen, is_first ? "\"" : ",\"");
    hak_pen_add(pen, name);
    hak_pen_add(pen, "\":{");
    add_member(pen, "waits", waits, true);
    add_member(pen, "waited_ns", waited_ns, false);
    close_group(pen);
}

static void add_class(struct pen *pen, const struct snapshot_class *of, bool is_exact,
                      bool is_first)
{
    hak_pen_add(pen, is_first ? "{" : ",{");
    add_member(pen, "block_bytes", of->block_bytes, true);
    add_member(pen, "slabs", of->slabs, false);
    add_member(pen, "live_blocks", of->live_blocks, false);
    add_member(pen, "cached_blocks", of->cached_blocks, false);
    add_member(pen, "free_blocks", of->free_blocks, false);
    add_member(pen, "taken_blocks", of->taken_blocks, false);
    add_member(pen, "popped_blocks", of->popped_blocks, false);
    if (is_exact) {
        add_member(pen, "requests", of->requests, false);
        add_member(pen, "reallocs", of->reallocs, false);
    }
    close_group(pen);
}

static void add_classes(struct pen *pen, const struct snapshot *snapshot)
{
    bool is_first = true;
    hak_pen_add(pen, ",\"classes\":[");
    for (uint32_t i = 0; i < snapshot->class_count; i++) {
        if (!hak_emit_is_in_use(&snapshot->classes[i]))
            continue;
        add_class(pen, &snapshot->classes[i], snapshot->is_exact, is_first);
        is_first = false;
    }
    hak_pen_add(pen, "]");
}

static void add_caches(struct pen *pen, const struct snapshot *snapshot)
{
    hak_pen_add(pen, ",\"caches\":[");
    for (uint32_t i = 0; i < snapshot->cache_count; i++) {
        const struct snapshot_cache *of = &snapshot->caches[i];
        hak_pen_add(pen, i == 0 ? "{" : ",{");
        add_member(pen, of->is_processor ? "processor" : "thread", of->id, true);
        add_member(pen, "bytes", of->bytes, false);
        add_member(pen, "capacity_bytes", of->capacity_bytes, false);
        add_member(pen, "misses", of->misses, false);
        close_group(pen);
    }
    hak_pen_add(pen, "]");
}

static void add_heaps(struct pen *pen, const struct snapshot *snapshot)
{
    hak_pen_add(pen, ",\"heaps\":[");
    for (uint32_t i = 0; i < snapshot->heap_count; i++) {
        const struct snapshot_heap *of = &snapshot->shared_heaps[i];
        hak_pen_add(pen, i == 0 ? "{" : ",{");
        add_member(pen, "id", of->id, true);
        add_member(pen, "lock_waits", of->waits, false);
        add_member(pen, "steals", of->stolen_slabs, false);
        close_group(pen);
    }
    hak_pen_add(pen, "]");
}

/* Whose the caches are, and why. */
static void add_rseq(struct pen *pen, const struct snapshot *snapshot)
{
    bool is_processor = snapshot->rseq_reason == RSEQ_PROCESSOR;
    hak_pen_add(pen, is_processor ? ",\"rseq\":\"processor\"" : ",\"rseq\":\"thread\"");
    hak_pen_add(pen, ",\"rseq_reason\":\"");
    hak_pen_add(pen, hak_rseq_meaning(snapshot->rseq_reason));
    hak_pen_add(pen, "\"");
}

static void add_memory(struct pen *pen, const struct snapshot *snapshot)
{
    bool is_first = true;
#define X(name, meaning)                                                                           \
    add_member(pen, #name, snapshot->name, is_first);                                              \
    is_first = false;
    open_group(pen, "memory");
    HAK_SNAPSHOT_LEVEL_TABLE(X)
    close_group(pen);
    open_group(pen, "totals");
    is_first = true;
    HAK_SNAPSHOT_TOTAL_TABLE(X)
    close_group(pen);
    open_group(pen, "process");
    is_first = true;
    HAK_STAT_GLOBAL_TABLE(X)
    close_group(pen);
    if (!snapshot->is_exact)
        return;
    open_group(pen, "exact");
    is_first = true;
    HAK_SNAPSHOT_EXACT_TABLE(X)
    close_group(pen);
#undef X
}

void hak_emit_json(const struct snapshot *snapshot, emit_writer *write, void *target)
{
    char line[HAK_PEN_LINE_BYTES];
    struct pen pen = {write, target, {.start = line, .bytes = sizeof line}};
    bool is_first = true;
    hak_pen_add(&pen, "{");
    add_member(&pen, "schema", HAK_EMIT_JSON_SCHEMA, true);
    hak_pen_add(&pen, ",\"version\":\"" HAK_PROJECT_VERSION "\"");
    add_member(&pen, "pid", snapshot->pid, false);
    add_member(&pen, "unix_ms", snapshot->unix_ms, false);
    add_rseq(&pen, snapshot);
    add_memory(&pen, snapshot);
    open_group(&pen, "slow_paths");
#define X(name, meaning)                                                                           \
    add_member(&pen, #name, snapshot->sums[HAK_STAT_##name], is_first);                            \
    is_first = false;
    HAK_STAT_TABLE(X)
#undef X
    close_group(&pen);
    open_group(&pen, "locks");
    is_first = true;
#define X(rank, name, meaning)                                                                     \
    add_lock(&pen, #name, snapshot->waits[HAK_LOCK_##rank], snapshot->waited_ns[HAK_LOCK_##rank],  \
             is_first);                                                                            \
    is_first = false;
    HAK_LOCK_TABLE(X)
#undef X
    close_group(&pen);
    open_group(&pen, "policy");
    is_first = true;
#define X(name, initial, least, most, meaning)                                                     \
    add_member(&pen, #name, snapshot->policy_##name, is_first);                                    \
    is_first = false;
    HAK_POLICY_TABLE(X)
#undef X
    close_group(&pen);
    add_classes(&pen, snapshot);
    add_caches(&pen, snapshot);
    add_heaps(&pen, snapshot);
    hak_pen_add(&pen, "}\n");
    hak_pen_flush(&pen);
}
