/* SPDX-License-Identifier: MIT */
#include "stats/glibc_view.h"
#include "stats/pen.h"

/* ` name="value"` */
static void add_attribute(struct pen *pen, const char *name, uint64_t value)
{
    hak_pen_add(pen, " ");
    hak_pen_add(pen, name);
    hak_pen_add(pen, "=\"");
    hak_pen_number(pen, value);
    hak_pen_add(pen, "\"");
}

static void add_end(struct pen *pen)
{
    hak_pen_add(pen, "/>\n");
    hak_pen_flush(pen);
}

static void add_total(struct pen *pen, const char *type, uint64_t count, uint64_t bytes)
{
    hak_pen_add(pen, "<total type=\"");
    hak_pen_add(pen, type);
    hak_pen_add(pen, "\"");
    add_attribute(pen, "count", count);
    add_attribute(pen, "size", bytes);
    add_end(pen);
}

/* An element whose first attribute ends with `name`, and its number. */
static void add_named(struct pen *pen, const char *before, const char *name, const char *attribute,
                      uint64_t value)
{
    hak_pen_add(pen, before);
    hak_pen_add(pen, name);
    hak_pen_add(pen, "\"");
    add_attribute(pen, attribute, value);
    add_end(pen);
}

static void add_bytes(struct pen *pen, const char *element_and_type, uint64_t bytes)
{
    add_named(pen, "<", element_and_type, "size", bytes);
}

/* glibc: free chunks by size. Here: blocks that are free in slabs or at hand. */
static void add_sizes(struct pen *pen, const struct snapshot *snapshot)
{
    hak_pen_add(pen, "<sizes>\n");
    uint64_t below = 0;
    for (uint32_t i = 0; i < snapshot->class_count; i++) {
        const struct snapshot_class *of = &snapshot->classes[i];
        uint64_t count = of->cached_blocks + of->free_blocks;
        if (count != 0) {
            hak_pen_add(pen, "<size");
            add_attribute(pen, "from", below + 1);
            add_attribute(pen, "to", of->block_bytes);
            add_attribute(pen, "total", count * of->block_bytes);
            add_attribute(pen, "count", count);
            add_end(pen);
        }
        below = of->block_bytes;
    }
    hak_pen_add(pen, "</sizes>\n");
}

static void add_system(struct pen *pen, const struct glibc_view *view)
{
    add_bytes(pen, "system type=\"current", view->arena_bytes);
    add_bytes(pen, "system type=\"max", view->arena_most_bytes);
    add_bytes(pen, "aspace type=\"total", view->arena_most_bytes);
    add_bytes(pen, "aspace type=\"mprotect", view->arena_most_bytes);
}

static void add_counter(struct pen *pen, const char *name, uint64_t value)
{
    add_named(pen, "<counter name=\"", name, "value", value);
}

static void add_own(struct pen *pen, const struct snapshot *snapshot)
{
    hak_pen_add(pen, "<hakmem>\n");
#define X(name, meaning) add_counter(pen, #name, snapshot->name);
    HAK_SNAPSHOT_TABLE(X)
    HAK_STAT_GLOBAL_TABLE(X)
    if (snapshot->is_exact) {
        HAK_SNAPSHOT_EXACT_TABLE(X)
    }
#undef X
#define X(name, meaning) add_counter(pen, #name, snapshot->sums[HAK_STAT_##name]);
    HAK_STAT_TABLE(X)
#undef X
#define X(rank, name, meaning)                                                                     \
    add_counter(pen, "waits_" #name, snapshot->waits[HAK_LOCK_##rank]);                            \
    add_counter(pen, "waited_ns_" #name, snapshot->waited_ns[HAK_LOCK_##rank]);
    HAK_LOCK_TABLE(X)
#undef X
#define X(name, initial, least, most, meaning)                                                     \
    add_counter(pen, "policy_" #name, snapshot->policy_##name);
    HAK_POLICY_TABLE(X)
#undef X
    for (uint32_t i = 0; i < snapshot->class_count; i++) {
        const struct snapshot_class *of = &snapshot->classes[i];
        if (!hak_emit_is_in_use(of))
            continue;
        hak_pen_add(pen, "<class");
        add_attribute(pen, "size", of->block_bytes);
        add_attribute(pen, "slabs", of->slabs);
        add_attribute(pen, "live", of->live_blocks);
        add_attribute(pen, "cached", of->cached_blocks);
        add_attribute(pen, "free", of->free_blocks);
        add_attribute(pen, "taken", of->taken_blocks);
        add_attribute(pen, "popped", of->popped_blocks);
        if (snapshot->is_exact) {
            add_attribute(pen, "requests", of->requests);
            add_attribute(pen, "reallocs", of->reallocs);
        }
        add_end(pen);
    }
    hak_pen_add(pen, "</hakmem>\n");
}

void hak_emit_xml(const struct snapshot *snapshot, emit_writer *write, void *target)
{
    char line[HAK_PEN_LINE_BYTES];
    struct pen pen = {write, target, {.start = line, .bytes = sizeof line}};
    struct glibc_view view = hak_glibc_view(snapshot);
    hak_pen_add(&pen, "<malloc version=\"1\">\n<heap nr=\"0\">\n");
    add_sizes(&pen, snapshot);
    add_total(&pen, "fast", view.fast_count, view.fast_bytes);
    add_total(&pen, "rest", view.rest_count, view.rest_bytes);
    add_system(&pen, &view);
    hak_pen_add(&pen, "</heap>\n");
    add_total(&pen, "fast", view.fast_count, view.fast_bytes);
    add_total(&pen, "rest", view.rest_count, view.rest_bytes);
    add_total(&pen, "mmap", view.mapped_count, view.mapped_bytes);
    add_system(&pen, &view);
    add_own(&pen, snapshot);
    hak_pen_add(&pen, "</malloc>\n");
    hak_pen_flush(&pen);
}
