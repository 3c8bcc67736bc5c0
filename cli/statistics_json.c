/* SPDX-License-Identifier: MIT */
#include "statistics.h"

#include "stats/emit.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Objects in objects: more than our own form has, and little enough for any stack. */
#define DEPTH_MOST 16

/* Where a value stands: the keys of the objects around it, outermost first. */
struct path {
    char keys[DEPTH_MOST][REPORT_NAME_BYTES];
    int depth;
    uint64_t block_bytes; /* of the size class being read */
    const char *kind;     /* of the cache or heap being read */
    uint64_t id;          /* and its number */
    bool has_memory;      /* all statistics have that object */
    bool has_sites;       /* each heap profile has that list */
};

static bool read_value(struct reader *reader, struct path *path, struct report *report);

/* Goes past `letter`, and white space before it; false: it is not there. */
static bool take(struct reader *reader, char letter)
{
    reader_skip_space(reader);
    if (reader->at == reader->end || *reader->at != letter)
        return false;
    reader->at++;
    return true;
}

/* Reads a string, cut where it is long. */
static bool read_string(struct reader *reader, char *string)
{
    size_t bytes = 0;
    if (!take(reader, '"'))
        return reader_fail(reader, "has no string where JSON requires one");
    for (; reader->at < reader->end && *reader->at != '"'; reader->at++) {
        bool is_escape = *reader->at == '\\';
        reader->at += is_escape;
        if (reader->at == reader->end || *reader->at == '\n')
            break;
        if (bytes < REPORT_NAME_BYTES - 1)
            string[bytes++] = *reader->at;
    }
    string[bytes] = '\0';
    return take(reader, '"') || reader_fail(reader, "has a string without an end");
}

static bool is_inside(const struct path *path, const char *key)
{
    return path->depth >= 2 && strcmp(path->keys[0], key) == 0;
}

/* Caches and heaps are named by their numbers. */
static const struct {
    const char *group;
    const char *key;
    const char *kind;
} kinds[] = {
    {"caches", "processor", "processor"}, {"caches", "thread", "thread"}, {"heaps", "id", "heap"}};

/* A number gets the name that it has in the text form. */
static bool add(struct reader *reader, struct path *path, struct report *report, uint64_t value)
{
    char name[3 * REPORT_NAME_BYTES];
    const char *key = path->depth > 0 ? path->keys[path->depth - 1] : "";
    if (is_inside(path, "classes") && strcmp(key, "block_bytes") == 0) {
        path->block_bytes = value;
        return true;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (is_inside(path, kinds[i].group) && strcmp(key, kinds[i].key) == 0) {
            path->kind = kinds[i].kind;
            path->id = value;
            return true;
        }
    if ((is_inside(path, "caches") || is_inside(path, "heaps")) && path->kind != NULL)
        snprintf(name, sizeof name, "%s_%llu_%s", path->kind, (unsigned long long)path->id, key);
    else if (is_inside(path, "classes"))
        snprintf(name, sizeof name, "class_%llu_%s", (unsigned long long)path->block_bytes, key);
    else if (is_inside(path, "locks") && path->depth > 2)
        snprintf(name, sizeof name, "%s_%s", key, path->keys[path->depth - 2]);
    else if (is_inside(path, "policy"))
        snprintf(name, sizeof name, "policy_%s", key);
    else
        snprintf(name, sizeof name, "%s", key);
    name[REPORT_NAME_BYTES - 1] = '\0';
    return report_add(reader, report, name, value);
}

/* Of strings one is a number elsewhere. */
static bool add_string(struct reader *reader, const struct path *path, struct report *report,
                       const char *string)
{
    bool is_reason = path->depth == 1 && strcmp(path->keys[0], "rseq_reason") == 0;
    return !is_reason || report_add_reason(reader, report, string);
}

/* Fractions and signs are skipped: hakmem writes none, but for -1. */
static bool read_number(struct reader *reader, struct path *path, struct report *report)
{
    uint64_t value = 0;
    bool is_whole = true;
    const char *start = reader->at;
    for (; reader->at < reader->end && strchr("+-.eE0123456789", *reader->at) != NULL &&
           *reader->at != '\0';
         reader->at++) {
        if (!isdigit((unsigned char)*reader->at) || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*reader->at - '0'), &value))
            is_whole = false;
    }
    if (reader->at - start == 2 && memcmp(start, "-1", 2) == 0)
        return add(reader, path, report, HAK_LINE_NEVER_MS);
    return !is_whole || add(reader, path, report, value);
}

/* The keys of the outermost object tell what it is. */
static void note_kind(struct path *path)
{
    if (path->depth == 1) {
        path->has_memory |= strcmp(path->keys[0], "memory") == 0;
        path->has_sites |= strcmp(path->keys[0], "sites") == 0;
    }
}

static bool read_object(struct reader *reader, struct path *path, struct report *report)
{
    if (path->depth == DEPTH_MOST)
        return reader_fail(reader, "has objects nested too deeply");
    char *key = path->keys[path->depth++];
    bool is_good = take(reader, '}');
    while (!is_good) {
        if (!read_string(reader, key))
            return false;
        note_kind(path);
        if (!take(reader, ':'))
            return reader_fail(reader, "has a name without a value");
        if (!read_value(reader, path, report))
            return false;
        is_good = take(reader, '}');
        if (!is_good && !take(reader, ','))
            return reader_fail(reader, "is cut in the middle of an object");
    }
    path->depth--;
    return true;
}

static bool read_list(struct reader *reader, struct path *path, struct report *report)
{
    if (path->depth == DEPTH_MOST)
        return reader_fail(reader, "has lists nested too deeply");
    path->keys[path->depth++][0] = '\0';
    bool is_good = take(reader, ']');
    while (!is_good) {
        if (!read_value(reader, path, report))
            return false;
        is_good = take(reader, ']');
        if (!is_good && !take(reader, ','))
            return reader_fail(reader, "is cut in the middle of a list");
    }
    path->depth--;
    return true;
}

static bool read_value(struct reader *reader, struct path *path, struct report *report)
{
    static const char *const words[] = {"true", "false", "null"};
    char string[REPORT_NAME_BYTES];
    reader_skip_space(reader);
    if (take(reader, '{'))
        return read_object(reader, path, report);
    if (take(reader, '['))
        return read_list(reader, path, report);
    if (reader->at < reader->end && *reader->at == '"')
        return read_string(reader, string) && add_string(reader, path, report, string);
    if (reader->at < reader->end && (*reader->at == '-' || isdigit((unsigned char)*reader->at)))
        return read_number(reader, path, report);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t bytes = strlen(words[i]);
        if ((size_t)(reader->end - reader->at) >= bytes &&
            memcmp(reader->at, words[i], bytes) == 0) {
            reader->at += bytes;
            return true;
        }
    }
    return reader_fail(reader, "is not the JSON of statistics");
}

bool report_read_json(struct reader *reader, struct report *report)
{
    struct path path = {.depth = 0};
    if (!read_value(reader, &path, report))
        return false;
    if (!path.has_memory && path.has_sites)
        return reader_fail(reader, "ends a heap profile, not statistics: hakmem profile shows it");
    if (report_find(report, "pid", 0) == 0)
        return reader_fail(reader, "is JSON, but not statistics");
    if (report_find(report, "schema", HAK_EMIT_JSON_SCHEMA) != HAK_EMIT_JSON_SCHEMA)
        return reader_fail(reader, "is of another version of hakmem");
    return path.has_memory || reader_fail(reader, "is JSON, but not statistics");
}
