/* SPDX-License-Identifier: MIT */
#include "os/rseq.h"
#include "stats/glibc_view.h"
#include "stats/line_writer.h"

/* ` name="value"` */
static void add_attribute(struct line_writer *out, const char *name, uint64_t value)
{
    hak_line_add(out, " ");
    hak_line_add(out, name);
    hak_line_add(out, "=\"");
    hak_line_value(out, value);
    hak_line_add(out, "\"");
}

static void add_end(struct line_writer *out)
{
    hak_line_add(out, "/>\n");
    hak_line_flush(out);
}

static void add_total(struct line_writer *out, const char *type, uint64_t count, uint64_t bytes)
{
    hak_line_add(out, "<total type=\"");
    hak_line_add(out, type);
    hak_line_add(out, "\"");
    add_attribute(out, "count", count);
    add_attribute(out, "size", bytes);
    add_end(out);
}

/* An element whose first attribute ends with `name`, and its number. */
static void add_named(struct line_writer *out, const char *before, const char *name,
                      const char *attribute, uint64_t value)
{
    hak_line_add(out, before);
    hak_line_add(out, name);
    hak_line_add(out, "\"");
    add_attribute(out, attribute, value);
    add_end(out);
}

static void add_bytes(struct line_writer *out, const char *element_and_type, uint64_t bytes)
{
    add_named(out, "<", element_and_type, "size", bytes);
}

/* glibc: free chunks by size. Here: blocks that are free in slabs or cached. */
static void add_sizes(struct line_writer *out, const struct snapshot *snapshot)
{
    hak_line_add(out, "<sizes>\n");
    uint64_t below = 0;
    for (uint32_t i = 0; i < snapshot->class_count; i++) {
        const struct snapshot_class *of = &snapshot->classes[i];
        uint64_t count = of->cached_blocks + of->free_blocks;
        if (count != 0) {
            hak_line_add(out, "<size");
            add_attribute(out, "from", below + 1);
            add_attribute(out, "to", of->block_bytes);
            add_attribute(out, "total", count * of->block_bytes);
            add_attribute(out, "count", count);
            add_end(out);
        }
        below = of->block_bytes;
    }
    hak_line_add(out, "</sizes>\n");
}

static void add_system(struct line_writer *out, const struct glibc_view *view)
{
    add_bytes(out, "system type=\"current", view->arena_bytes);
    add_bytes(out, "system type=\"max", view->arena_most_bytes);
    add_bytes(out, "aspace type=\"total", view->arena_most_bytes);
    add_bytes(out, "aspace type=\"mprotect", view->arena_most_bytes);
}

static void add_counter(struct line_writer *out, const char *name, uint64_t value)
{
    add_named(out, "<counter name=\"", name, "value", value);
}

/* <rseq by="processor" reason="..."/>, then each cache. */
static void add_caches(struct line_writer *out, const struct snapshot *snapshot)
{
    bool is_processor = snapshot->rseq_reason == RSEQ_PROCESSOR;
    hak_line_add(out, is_processor ? "<rseq by=\"processor\"" : "<rseq by=\"thread\"");
    hak_line_add(out, " reason=\"");
    hak_line_add(out, hak_rseq_meaning(snapshot->rseq_reason));
    hak_line_add(out, "\"");
    add_end(out);
    for (uint32_t i = 0; i < snapshot->cache_count; i++) {
        const struct snapshot_cache *of = &snapshot->caches[i];
        hak_line_add(out, "<cache");
        add_attribute(out, of->is_processor ? "processor" : "thread", of->id);
#define X(name, level, meaning) add_attribute(out, #name, of->name);
        HAK_SNAPSHOT_CACHE_TABLE(X)
#undef X
        add_end(out);
    }
}

static void add_heaps(struct line_writer *out, const struct snapshot *snapshot)
{
    for (uint32_t i = 0; i < snapshot->heap_count; i++) {
        const struct snapshot_heap *of = &snapshot->shared_heaps[i];
        hak_line_add(out, "<heap");
        add_attribute(out, "id", of->id);
#define X(name, level, meaning) add_attribute(out, #name, of->name);
        HAK_SNAPSHOT_HEAP_TABLE(X)
#undef X
        add_end(out);
    }
}

static void add_own(struct line_writer *out, const struct snapshot *snapshot)
{
    hak_line_add(out, "<hakmem>\n");
    add_counter(out, "pid", snapshot->pid);
    add_counter(out, "unix_ms", snapshot->unix_ms);
#define X(name, meaning) add_counter(out, #name, snapshot->name);
    HAK_SNAPSHOT_TABLE(X)
    HAK_STAT_GLOBAL_TABLE(X)
    if (snapshot->is_exact) {
        HAK_SNAPSHOT_EXACT_TABLE(X)
    }
#undef X
#define X(name, meaning) add_counter(out, #name, snapshot->sums[HAK_STAT_##name]);
    HAK_STAT_TABLE(X)
#undef X
#define X(rank, name, meaning)                                                                     \
    add_counter(out, "waits_" #name, snapshot->waits[HAK_LOCK_##rank]);                            \
    add_counter(out, "waited_ns_" #name, snapshot->waited_ns[HAK_LOCK_##rank]);
    HAK_LOCK_TABLE(X)
#undef X
#define X(name, initial, least, most, meaning)                                                     \
    add_counter(out, "policy_" #name, snapshot->policy_##name);
    HAK_POLICY_TABLE(X)
#undef X
    for (uint32_t i = 0; i < snapshot->class_count; i++) {
        const struct snapshot_class *of = &snapshot->classes[i];
        if (!hak_emit_is_in_use(of))
            continue;
        hak_line_add(out, "<class");
        add_attribute(out, "size", of->block_bytes);
        add_attribute(out, "slabs", of->slabs);
        add_attribute(out, "live", of->live_blocks);
        add_attribute(out, "cached", of->cached_blocks);
        add_attribute(out, "free", of->free_blocks);
        add_attribute(out, "taken", of->taken_blocks);
        add_attribute(out, "popped", of->popped_blocks);
        if (snapshot->is_exact) {
            add_attribute(out, "requests", of->requests);
            add_attribute(out, "reallocs", of->reallocs);
        }
        add_end(out);
    }
    add_caches(out, snapshot);
    add_heaps(out, snapshot);
    hak_line_add(out, "</hakmem>\n");
}

void hak_emit_xml(const struct snapshot *snapshot, emit_writer *write, void *target)
{
    char line[HAK_LINE_BYTES];
    struct line_writer out = hak_line_on(line, write, target);
    struct glibc_view view = hak_glibc_view(snapshot);
    hak_line_add(&out, "<malloc version=\"1\">\n<heap nr=\"0\">\n");
    add_sizes(&out, snapshot);
    add_total(&out, "fast", view.fast_count, view.fast_bytes);
    add_total(&out, "rest", view.rest_count, view.rest_bytes);
    add_system(&out, &view);
    hak_line_add(&out, "</heap>\n");
    add_total(&out, "fast", view.fast_count, view.fast_bytes);
    add_total(&out, "rest", view.rest_count, view.rest_bytes);
    add_total(&out, "mmap", view.mapped_count, view.mapped_bytes);
    add_system(&out, &view);
    add_own(&out, snapshot);
    hak_line_add(&out, "</malloc>\n");
    hak_line_flush(&out);
}
