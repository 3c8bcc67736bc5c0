/* SPDX-License-Identifier: MIT */
#include "stats/emit.h"

#include "stats/line_writer.h"

void hak_emit(enum emit_form form, const struct snapshot *snapshot, emit_writer *write,
              void *target)
{
    static void (*const forms[])(const struct snapshot *, emit_writer *, void *) = {
        [EMIT_TEXT] = hak_emit_text,
        [EMIT_RAW] = hak_emit_raw,
        [EMIT_JSON] = hak_emit_json,
        [EMIT_XML] = hak_emit_xml,
        [EMIT_OPENMETRICS] = hak_emit_openmetrics,
        [EMIT_SUMMARY] = hak_emit_summary,
    };
    if (form != EMIT_NOTHING)
        forms[form](snapshot, write, target);
}

static void add_line(struct line_writer *out, const char *name, uint64_t value)
{
    hak_line_add(out, name);
    hak_line_add(out, ": ");
    hak_line_value(out, value);
    hak_line_add(out, "\n");
    hak_line_flush(out);
}

static void add_class_line(struct line_writer *out, uint64_t block_bytes, const char *what,
                           uint64_t value)
{
    hak_line_add(out, "class_");
    hak_line_number(out, block_bytes);
    add_line(out, what, value);
}

static void add_class(struct line_writer *out, const struct snapshot_class *of, bool is_exact)
{
    add_class_line(out, of->block_bytes, "_slabs", of->slabs);
    add_class_line(out, of->block_bytes, "_live_blocks", of->live_blocks);
    add_class_line(out, of->block_bytes, "_cached_blocks", of->cached_blocks);
    add_class_line(out, of->block_bytes, "_free_blocks", of->free_blocks);
    add_class_line(out, of->block_bytes, "_taken_blocks", of->taken_blocks);
    add_class_line(out, of->block_bytes, "_popped_blocks", of->popped_blocks);
    if (!is_exact)
        return;
    add_class_line(out, of->block_bytes, "_requests", of->requests);
    add_class_line(out, of->block_bytes, "_reallocs", of->reallocs);
}

static void add_member_line(struct line_writer *out, const char *kind, uint64_t id,
                            const char *what, uint64_t value)
{
    hak_line_add(out, kind);
    hak_line_number(out, id);
    add_line(out, what, value);
}

static void add_caches_and_heaps(struct line_writer *out, const struct snapshot *snapshot)
{
    for (uint32_t i = 0; i < snapshot->cache_count; i++) {
        const struct snapshot_cache *of = &snapshot->caches[i];
        const char *kind = of->is_processor ? "processor_" : "thread_";
#define X(name, level, meaning) add_member_line(out, kind, of->id, "_" #name, of->name);
        HAK_SNAPSHOT_CACHE_TABLE(X)
#undef X
    }
    for (uint32_t i = 0; i < snapshot->heap_count; i++) {
        const struct snapshot_heap *of = &snapshot->shared_heaps[i];
#define X(name, level, meaning) add_member_line(out, "heap_", of->id, "_" #name, of->name);
        HAK_SNAPSHOT_HEAP_TABLE(X)
#undef X
    }
}

void hak_emit_raw(const struct snapshot *snapshot, emit_writer *write, void *target)
{
    char line[HAK_LINE_BYTES];
    struct line_writer out = hak_line_on(line, write, target);
    add_line(&out, "pid", snapshot->pid);
    add_line(&out, "unix_ms", snapshot->unix_ms);
    add_line(&out, "rseq_reason", snapshot->rseq_reason);
#define X(name, meaning) add_line(&out, #name, snapshot->name);
    HAK_SNAPSHOT_TABLE(X)
    HAK_STAT_GLOBAL_TABLE(X)
    if (snapshot->is_exact) {
        HAK_SNAPSHOT_EXACT_TABLE(X)
    }
#undef X
#define X(name, meaning) add_line(&out, #name, snapshot->sums[HAK_STAT_##name]);
    HAK_STAT_TABLE(X)
#undef X
#define X(rank, name, meaning)                                                                     \
    add_line(&out, "waits_" #name, snapshot->waits[HAK_LOCK_##rank]);                              \
    add_line(&out, "waited_ns_" #name, snapshot->waited_ns[HAK_LOCK_##rank]);
    HAK_LOCK_TABLE(X)
#undef X
#define X(name, initial, least, most, meaning)                                                     \
    add_line(&out, "policy_" #name, snapshot->policy_##name);
    HAK_POLICY_TABLE(X)
#undef X
    for (uint32_t i = 0; i < snapshot->class_count; i++)
        if (hak_emit_is_in_use(&snapshot->classes[i]))
            add_class(&out, &snapshot->classes[i], snapshot->is_exact);
    add_caches_and_heaps(&out, snapshot);
    add_line(&out, HAK_EMIT_RAW_LAST, out.flush_count);
}
