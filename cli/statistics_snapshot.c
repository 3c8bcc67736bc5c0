/* SPDX-License-Identifier: MIT */
#include "statistics.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct field {
    const char *name;
    size_t offset; /* of the number */
};

#define OF(name) offsetof(struct snapshot, name)
#define OF_MANY(name, index) (offsetof(struct snapshot, name) + (index) * sizeof(uint64_t))

static const struct field fields[] = {{"unix_ms", OF(unix_ms)},
#define X(name, meaning) {#name, OF(name)},
                                      HAK_SNAPSHOT_TABLE(X) HAK_STAT_GLOBAL_TABLE(X)
                                          HAK_SNAPSHOT_EXACT_TABLE(X)
#undef X
#define X(name, meaning) {#name, OF_MANY(sums, HAK_STAT_##name)},
                                              HAK_STAT_TABLE(X)
#undef X
#define X(rank, name, meaning)                                                                     \
    {"waits_" #name, OF_MANY(waits, HAK_LOCK_##rank)},                                             \
        {"waited_ns_" #name, OF_MANY(waited_ns, HAK_LOCK_##rank)},
                                                  HAK_LOCK_TABLE(X)
#undef X
#define X(name, initial, least, most, meaning) {"policy_" #name, OF(policy_##name)},
                                                      HAK_POLICY_TABLE(X)
#undef X
};

static const struct field class_fields[] = {
#define X(name) {#name, offsetof(struct snapshot_class, name)},
    X(slabs) X(live_blocks) X(cached_blocks) X(free_blocks) X(taken_blocks) X(popped_blocks)
        X(requests) X(reallocs)
#undef X
};

static const struct field cache_fields[] = {
#define X(name, kind, meaning) {#name, offsetof(struct snapshot_cache, name)},
    HAK_SNAPSHOT_CACHE_TABLE(X)
#undef X
};

static const struct field heap_fields[] = {
#define X(name, kind, meaning) {#name, offsetof(struct snapshot_heap, name)},
    HAK_SNAPSHOT_HEAP_TABLE(X)
#undef X
};

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static bool put(void *base, const struct field *table, size_t count, const char *name,
                uint64_t value)
{
    for (size_t i = 0; base != NULL && i < count; i++)
        if (strcmp(table[i].name, name) == 0) {
            memcpy((char *)base + table[i].offset, &value, sizeof value);
            return true;
        }
    return false;
}

/* The row of a size class, a cache or a heap, a new one if need be; NULL: there are too many. */
static struct snapshot_class *class_at(struct snapshot *snapshot, uint64_t block_bytes)
{
    uint32_t i = 0;
    while (i < snapshot->class_count && snapshot->classes[i].block_bytes != block_bytes)
        i++;
    if (i == HAK_SNAPSHOT_CLASSES)
        return NULL;
    if (i == snapshot->class_count)
        snapshot->classes[snapshot->class_count++].block_bytes = block_bytes;
    return &snapshot->classes[i];
}

static struct snapshot_cache *cache_at(struct snapshot *snapshot, bool is_processor, uint64_t id)
{
    uint32_t i = 0;
    for (; i < snapshot->cache_count; i++)
        if (snapshot->caches[i].id == id && snapshot->caches[i].is_processor == is_processor)
            return &snapshot->caches[i];
    if (i == HAK_SNAPSHOT_CACHES)
        return NULL;
    snapshot->caches[i].id = id;
    snapshot->caches[i].is_processor = is_processor;
    snapshot->cache_count++;
    return &snapshot->caches[i];
}

static struct snapshot_heap *heap_at(struct snapshot *snapshot, uint64_t id)
{
    uint32_t i = 0;
    while (i < snapshot->heap_count && snapshot->shared_heaps[i].id != id)
        i++;
    if (i == HAK_SNAPSHOT_HEAPS)
        return NULL;
    if (i == snapshot->heap_count)
        snapshot->shared_heaps[snapshot->heap_count++].id = id;
    return &snapshot->shared_heaps[i];
}

/* KIND_ID_NAME: of one class, cache or heap. */
static bool put_member(struct snapshot *snapshot, const struct number *number)
{
    char kind[16];
    uint64_t id;
    int end = 0;
    if (sscanf(number->name, "%15[a-z]_%" SCNu64 "_%n", kind, &id, &end) != 2 || end == 0)
        return false;
    const char *name = number->name + end;
    if (strcmp(kind, "class") == 0)
        return put(class_at(snapshot, id), class_fields, COUNT_OF(class_fields), name,
                   number->value);
    if (strcmp(kind, "processor") == 0 || strcmp(kind, "thread") == 0)
        return put(cache_at(snapshot, *kind == 'p', id), cache_fields, COUNT_OF(cache_fields), name,
                   number->value);
    if (strcmp(kind, "heap") == 0)
        return put(heap_at(snapshot, id), heap_fields, COUNT_OF(heap_fields), name, number->value);
    return false;
}

void report_to_snapshot(struct report *report, struct snapshot *snapshot)
{
    memset(snapshot, 0, sizeof *snapshot);
    snapshot->pid = (uint32_t)report_find(report, "pid", 0);
    snapshot->rseq_reason = (uint32_t)report_find(report, "rseq_reason", UINT32_MAX);
    for (size_t i = 0; i < report->count; i++) {
        struct number *number = &report->numbers[i];
        number->is_known = put(snapshot, fields, COUNT_OF(fields), number->name, number->value) ||
                           put_member(snapshot, number) || strcmp(number->name, "pid") == 0 ||
                           strcmp(number->name, "schema") == 0 ||
                           strcmp(number->name, "rseq_reason") == 0;
        snapshot->is_exact |= strncmp(number->name, "exact_", strlen("exact_")) == 0;
    }
}
