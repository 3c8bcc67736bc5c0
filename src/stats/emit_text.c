/* SPDX-License-Identifier: MIT */
#include "stats/summary.h"

/* For people: nothing that is 0, units, and no line wider than a terminal. */

/* Where names end, values end, and meanings begin. */
enum { VALUE_END = 35, MEANING = 37 };

struct tables {
    struct line_writer out;
    enum emit_detail detail;
    uint64_t silent_count;
};

static bool ends_in(const char *name, const char *end)
{
    size_t length = strlen(name), end_length = strlen(end);
    return length >= end_length && strcmp(name + length - end_length, end) == 0;
}

static void add_title(struct line_writer *out, const char *title)
{
    hak_line_add(out, "\n");
    hak_line_add(out, title);
    hak_line_end_line(out);
}

static const char *unit_of(const char *name)
{
    if (ends_in(name, "_ms"))
        return " ms";
    bool is_ns = ends_in(name, "_ns") || strncmp(name, "waited_ns_", strlen("waited_ns_")) == 0;
    return is_ns ? " ns" : "";
}

/* A value with the unit that its name has. */
static void add_value(struct line_writer *out, const char *name, uint64_t value)
{
    size_t from = out->line.used;
    if (ends_in(name, "_ms") && value >= HAK_LINE_NEVER_MS) {
        hak_line_add(out, "never");
    } else if (ends_in(name, "_bytes")) {
        hak_line_size(out, value);
    } else {
        hak_line_number(out, value);
        hak_line_add(out, unit_of(name));
    }
    hak_line_right(out, from, VALUE_END);
}

static void add_row(struct tables *tables, const char *name, uint64_t value, const char *meaning)
{
    struct line_writer *out = &tables->out;
    if (value == 0 && tables->detail == EMIT_SHORT) {
        tables->silent_count++;
        return;
    }
    hak_line_add(out, name);
    add_value(out, name, value);
    hak_line_pad(out, MEANING);
    hak_line_words(out, meaning, MEANING);
    hak_line_end_line(out);
}

static void add_counters(struct tables *tables, const struct snapshot *snapshot)
{
    add_title(&tables->out, "Memory, now");
#define X(name, meaning) add_row(tables, #name, snapshot->name, meaning);
    HAK_SNAPSHOT_LEVEL_TABLE(X)
    add_title(&tables->out, "Counters, since the start");
    HAK_SNAPSHOT_TOTAL_TABLE(X)
    HAK_STAT_GLOBAL_TABLE(X)
    if (snapshot->is_exact) {
        HAK_SNAPSHOT_EXACT_TABLE(X)
    }
#undef X
#define X(name, meaning) add_row(tables, #name, snapshot->sums[HAK_STAT_##name], meaning);
    HAK_STAT_TABLE(X)
#undef X
#define X(rank, name, meaning)                                                                     \
    add_row(tables, "waits_" #name, snapshot->waits[HAK_LOCK_##rank], "for lock: " meaning);       \
    add_row(tables, "waited_ns_" #name, snapshot->waited_ns[HAK_LOCK_##rank], "in sum");
    HAK_LOCK_TABLE(X)
#undef X
}

static void add_policy(struct tables *tables, const struct snapshot *snapshot)
{
    if (tables->detail == EMIT_SHORT)
        return;
    add_title(&tables->out, "Policy in force");
#define X(name, initial, least, most, meaning)                                                     \
    add_row(tables, #name, snapshot->policy_##name, meaning);
    HAK_POLICY_TABLE(X)
#undef X
}

/* The columns of size classes, of caches and of heaps end here. */
static const size_t class_ends[] = {10, 18, 29, 39, 50, 62, 74};
enum { CACHE_BYTES_END = 24, CACHE_CAPACITY_END = 38, CACHE_MISSES_END = 52 };
enum { HEAP_HELD_END = 24, HEAP_FREE_END = 38, HEAP_WAITS_END = 52, HEAP_STEALS_END = 62 };

static void add_class_row(struct line_writer *out, const struct snapshot_class *of, bool is_exact)
{
    hak_line_number_right(out, of->block_bytes, class_ends[0]);
    hak_line_number_right(out, of->slabs, class_ends[1]);
    hak_line_number_right(out, of->live_blocks, class_ends[2]);
    hak_line_number_right(out, of->cached_blocks, class_ends[3]);
    hak_line_number_right(out, of->free_blocks, class_ends[4]);
    hak_line_size_right(out,
                        of->block_bytes * (of->live_blocks + of->cached_blocks + of->free_blocks),
                        class_ends[5]);
    if (is_exact)
        hak_line_number_right(out, of->requests, class_ends[6]);
    hak_line_end_line(out);
}

static void add_classes(struct line_writer *out, const struct snapshot *snapshot)
{
    static const char title[] = "     block   slabs       live    cached       free        held";
    bool is_first = true;
    for (uint32_t i = 0; i < snapshot->class_count; i++) {
        const struct snapshot_class *of = &snapshot->classes[i];
        if ((of->slabs | of->live_blocks | of->requests | of->reallocs) == 0)
            continue;
        if (is_first) {
            hak_line_add(out, "\n");
            hak_line_add(out, title);
            hak_line_add(out, snapshot->is_exact ? "    requests" : "");
            hak_line_end_line(out);
        }
        is_first = false;
        add_class_row(out, of, snapshot->is_exact);
    }
}

/* A snapshot has rows for the first ones only. */
static void add_more(struct line_writer *out, uint64_t all, uint64_t shown)
{
    if (all <= shown)
        return;
    hak_line_add(out, "and ");
    hak_line_number(out, all - shown);
    hak_line_add(out, " more");
    hak_line_end_line(out);
}

static void add_caches(struct line_writer *out, const struct snapshot *snapshot)
{
    if (snapshot->cache_count != 0)
        add_title(out, "cache          holds      may hold        misses");
    for (uint32_t i = 0; i < snapshot->cache_count; i++) {
        const struct snapshot_cache *of = &snapshot->caches[i];
        hak_line_add(out, of->is_processor ? "processor " : "thread ");
        hak_line_number(out, of->id);
        hak_line_size_right(out, of->bytes, CACHE_BYTES_END);
        hak_line_size_right(out, of->capacity_bytes, CACHE_CAPACITY_END);
        hak_line_number_right(out, of->misses, CACHE_MISSES_END);
        hak_line_end_line(out);
    }
    add_more(out, snapshot->active_caches, snapshot->cache_count);
}

static void add_heaps(struct line_writer *out, const struct snapshot *snapshot)
{
    if (snapshot->heap_count != 0)
        add_title(out, "heap           holds     free of it    lock waits    steals");
    for (uint32_t i = 0; i < snapshot->heap_count; i++) {
        const struct snapshot_heap *of = &snapshot->shared_heaps[i];
        hak_line_add(out, "heap ");
        hak_line_number(out, of->id);
        hak_line_size_right(out, of->held_bytes, HEAP_HELD_END);
        hak_line_size_right(out, of->free_bytes, HEAP_FREE_END);
        hak_line_number_right(out, of->lock_waits, HEAP_WAITS_END);
        hak_line_number_right(out, of->steals, HEAP_STEALS_END);
        hak_line_end_line(out);
    }
    add_more(out, snapshot->heaps, snapshot->heap_count);
}

void hak_emit_tables(const struct snapshot *snapshot, enum emit_detail detail, emit_writer *write,
                     void *target)
{
    char line[HAK_LINE_BYTES];
    struct tables tables = {.out = hak_line_on(line, write, target), .detail = detail};
    struct line_writer *out = &tables.out;
    hak_summary_add(out, snapshot);
    add_classes(out, snapshot);
    add_caches(out, snapshot);
    add_heaps(out, snapshot);
    add_counters(&tables, snapshot);
    add_policy(&tables, snapshot);
    hak_line_add(out, "\n" HAK_EMIT_TEXT_LAST);
    hak_line_number(out, tables.silent_count);
    hak_line_add(out, detail == EMIT_SHORT ? " zeros, and the policy. HAKMEM_STATS=raw has all."
                                           : " numbers.");
    hak_line_end_line(out);
}

void hak_emit_text(const struct snapshot *snapshot, emit_writer *write, void *target)
{
    hak_emit_tables(snapshot, EMIT_SHORT, write, target);
}
