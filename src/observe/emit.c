/* SPDX-License-Identifier: MIT */
#include "observe/emit.h"

#include "observe/glibc_view.h"

static void add_line(struct text *text, const char *name, uint64_t value)
{
    hak_text_add(text, name);
    hak_text_add(text, ": ");
    hak_text_add_number(text, value, 10);
    hak_text_add(text, "\n");
}

void hak_emit_text(const struct snapshot *snapshot, struct text *text)
{
#define X(name, meaning) add_line(text, #name, snapshot->name);
    HAK_SNAPSHOT_TABLE(X)
    HAK_STAT_GLOBAL_TABLE(X)
#undef X
#define X(name, meaning) add_line(text, #name, snapshot->sums[HAK_STAT_##name]);
    HAK_STAT_TABLE(X)
#undef X
#define X(rank, name, meaning)                                                                     \
    add_line(text, "waits_" #name, snapshot->waits[HAK_LOCK_##rank]);                              \
    add_line(text, "waited_ns_" #name, snapshot->waited_ns[HAK_LOCK_##rank]);
    HAK_LOCK_TABLE(X)
#undef X
}

struct xml {
    emit_writer *write;
    void *target;
    struct text line;
};

static void xml_flush(struct xml *xml)
{
    xml->write(xml->target, xml->line.start, xml->line.used);
    xml->line.used = 0;
}

static void xml_add(struct xml *xml, const char *piece)
{
    hak_text_add(&xml->line, piece);
}

/* ` name="value"` */
static void xml_number(struct xml *xml, const char *name, uint64_t value)
{
    xml_add(xml, " ");
    xml_add(xml, name);
    xml_add(xml, "=\"");
    hak_text_add_number(&xml->line, value, 10);
    xml_add(xml, "\"");
}

static void xml_end(struct xml *xml)
{
    xml_add(xml, "/>\n");
    xml_flush(xml);
}

static void xml_total(struct xml *xml, const char *type, uint64_t count, uint64_t bytes)
{
    xml_add(xml, "<total type=\"");
    xml_add(xml, type);
    xml_add(xml, "\"");
    xml_number(xml, "count", count);
    xml_number(xml, "size", bytes);
    xml_end(xml);
}

static void xml_bytes(struct xml *xml, const char *element_and_type, uint64_t bytes)
{
    xml_add(xml, "<");
    xml_add(xml, element_and_type);
    xml_add(xml, "\"");
    xml_number(xml, "size", bytes);
    xml_end(xml);
}

/* glibc: free chunks by size. Here: blocks that are free in slabs or at hand. */
static void xml_sizes(struct xml *xml, const struct snapshot *snapshot)
{
    xml_add(xml, "<sizes>\n");
    uint64_t below = 0;
    for (uint32_t i = 0; i < snapshot->class_count; i++) {
        const struct snapshot_class *of = &snapshot->classes[i];
        uint64_t count = of->cached_blocks + of->free_blocks;
        if (count != 0) {
            xml_add(xml, "<size");
            xml_number(xml, "from", below + 1);
            xml_number(xml, "to", of->block_bytes);
            xml_number(xml, "total", count * of->block_bytes);
            xml_number(xml, "count", count);
            xml_end(xml);
        }
        below = of->block_bytes;
    }
    xml_add(xml, "</sizes>\n");
}

static void xml_system(struct xml *xml, const struct glibc_view *view)
{
    xml_bytes(xml, "system type=\"current", view->arena_bytes);
    xml_bytes(xml, "system type=\"max", view->arena_most_bytes);
    xml_bytes(xml, "aspace type=\"total", view->arena_most_bytes);
    xml_bytes(xml, "aspace type=\"mprotect", view->arena_most_bytes);
}

static void xml_counter(struct xml *xml, const char *name, uint64_t value)
{
    xml_add(xml, "<counter name=\"");
    xml_add(xml, name);
    xml_add(xml, "\"");
    xml_number(xml, "value", value);
    xml_end(xml);
}

static void xml_own(struct xml *xml, const struct snapshot *snapshot)
{
    xml_add(xml, "<hakmem>\n");
#define X(name, meaning) xml_counter(xml, #name, snapshot->name);
    HAK_SNAPSHOT_TABLE(X)
    HAK_STAT_GLOBAL_TABLE(X)
#undef X
#define X(name, meaning) xml_counter(xml, #name, snapshot->sums[HAK_STAT_##name]);
    HAK_STAT_TABLE(X)
#undef X
#define X(rank, name, meaning)                                                                     \
    xml_counter(xml, "waits_" #name, snapshot->waits[HAK_LOCK_##rank]);                            \
    xml_counter(xml, "waited_ns_" #name, snapshot->waited_ns[HAK_LOCK_##rank]);
    HAK_LOCK_TABLE(X)
#undef X
    for (uint32_t i = 0; i < snapshot->class_count; i++) {
        const struct snapshot_class *of = &snapshot->classes[i];
        if (of->slabs == 0 && of->live_blocks == 0)
            continue;
        xml_add(xml, "<class");
        xml_number(xml, "size", of->block_bytes);
        xml_number(xml, "slabs", of->slabs);
        xml_number(xml, "live", of->live_blocks);
        xml_number(xml, "cached", of->cached_blocks);
        xml_number(xml, "free", of->free_blocks);
        xml_end(xml);
    }
    xml_add(xml, "</hakmem>\n");
}

void hak_emit_xml(const struct snapshot *snapshot, emit_writer *write, void *target)
{
    char line[512];
    struct xml xml = {write, target, {.start = line, .bytes = sizeof line}};
    struct glibc_view view = hak_glibc_view(snapshot);
    xml_add(&xml, "<malloc version=\"1\">\n<heap nr=\"0\">\n");
    xml_sizes(&xml, snapshot);
    xml_total(&xml, "fast", view.fast_count, view.fast_bytes);
    xml_total(&xml, "rest", view.rest_count, view.rest_bytes);
    xml_system(&xml, &view);
    xml_add(&xml, "</heap>\n");
    xml_total(&xml, "fast", view.fast_count, view.fast_bytes);
    xml_total(&xml, "rest", view.rest_count, view.rest_bytes);
    xml_total(&xml, "mmap", view.mapped_count, view.mapped_bytes);
    xml_system(&xml, &view);
    xml_own(&xml, snapshot);
    xml_add(&xml, "</malloc>\n");
    xml_flush(&xml);
}
