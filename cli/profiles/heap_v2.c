/* SPDX-License-Identifier: MIT */
#include "profiles/formats.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HEAD "heap_v2/"

/* What is left to read; no line is read beyond `end`. */
struct scan {
    const char *at, *end;
    uint32_t line;
};

bool is_heap_v2(const char *text, size_t bytes)
{
    return bytes >= strlen(HEAD) && memcmp(text, HEAD, strlen(HEAD)) == 0;
}

/* The next line without its end, copied to `line`; false: there is none. */
static bool next_line(struct scan *scan, char *line, size_t room)
{
    if (scan->at == scan->end)
        return false;
    const char *end = memchr(scan->at, '\n', (size_t)(scan->end - scan->at));
    size_t bytes = (size_t)((end == NULL ? scan->end : end) - scan->at);
    size_t kept = bytes < room - 1 ? bytes : room - 1;
    memcpy(line, scan->at, kept);
    line[kept] = '\0';
    scan->at = end == NULL ? scan->end : end + 1;
    scan->line++;
    return true;
}

/* What so many sampled blocks of so many bytes stand for: a block of b bytes is sampled with the
 * probability 1 - exp(-b / period). */
static void scale(uint64_t period, uint64_t *objects, uint64_t *bytes)
{
    if (period <= 1 || *objects == 0 || *bytes == 0)
        return;
    double mean = (double)*bytes / (double)*objects;
    double factor = 1 / -expm1(-mean / (double)period);
    double most = 9e18;
    *objects = (uint64_t)fmin((double)*objects * factor + 0.5, most);
    *bytes = (uint64_t)fmin((double)*bytes * factor + 0.5, most);
}

/* "  t*: 28: 106496 [0: 0]": blocks and bytes that live, and that were allocated. */
static bool read_counts(const struct profile *profile, const char *line, uint64_t *values)
{
    uint64_t live[2], allocated[2];
    if (sscanf(line, " t*: %" SCNu64 ": %" SCNu64 " [%" SCNu64 ": %" SCNu64 "]", &live[0], &live[1],
               &allocated[0], &allocated[1]) != 4)
        return false;
    scale(profile->period_bytes, &live[0], &live[1]);
    scale(profile->period_bytes, &allocated[0], &allocated[1]);
    values[VALUE_LIVE_OBJECTS] = live[0];
    values[VALUE_LIVE_BYTES] = live[1];
    values[VALUE_ALLOCATED_OBJECTS] = allocated[0];
    values[VALUE_ALLOCATED_BYTES] = allocated[1];
    return true;
}

/* "@ 0x7f12 0x5566": return addresses, innermost first. */
static bool read_stack(struct profile *profile, const char *line)
{
    uint32_t stack[PROFILE_DEPTH_MOST], depth = 0;
    for (char *at = (char *)line + 1, *end; depth < PROFILE_DEPTH_MOST; at = end) {
        uint64_t address = strtoull(at, &end, 16);
        if (end == at) {
            at += strspn(at, " \r");
            if (*at != '\0')
                return false;
            break;
        }
        stack[depth++] = profile_location(profile, address - (address > 0));
    }
    profile_add_site(profile, stack, depth);
    return true;
}

/* A line of /proc/PID/maps; only code counts. */
static void read_mapping(struct profile *profile, const char *line)
{
    struct module module = {0};
    char rights[8];
    int path = 0;
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %n", &module.start,
               &module.end, rights, &module.offset, &path) < 4 ||
        path == 0 || strchr(rights, 'x') == NULL || line[path] == '\0')
        return;
    module.path = profile_name_of(profile, line + path);
    profile_add_module(profile, module);
}

static void place_locations(struct profile *profile)
{
    for (uint32_t i = 0; i < profile->location_count; i++)
        profile->locations[i].module = profile_module_at(profile, profile->locations[i].address);
    if (profile->module_count > 1)
        profile->program =
            profile_name_of(profile, base_name(profile_text(profile, profile->modules[1].path)));
}

/* The lines of one stack; the sums before the first stack are not needed. */
static bool read_line(struct profile *profile, const char *line)
{
    if (*line == '@') {
        if (profile->site_count == PROFILE_SITES_MOST)
            return profile_refuse(profile, "has too many sites");
        return read_stack(profile, line) || profile_refuse(profile, "is no stack");
    }
    const char *word = line + strspn(line, " ");
    if (strncmp(word, "t*:", 3) != 0)
        return *word == '\0' || *word == 't' || *word == '#' ||
               profile_refuse(profile, "is not known in heap_v2");
    uint64_t values[VALUE_COUNT] = {0};
    if (!read_counts(profile, word, values))
        return profile_refuse(profile, "is not `t*: BLOCKS: BYTES [BLOCKS: BYTES]`");
    if (profile->site_count > 0)
        memcpy(profile->sites[profile->site_count - 1].values, values, sizeof values);
    return true;
}

/* All lines before those of the mappings, and the line that begins these. A file without it was
 * cut. Line 2 cannot tell: jemalloc corrects each sum for itself, so they do not add up to it. */
static bool read_sites(struct profile *profile, struct scan *scan, char *line, size_t room)
{
    while (next_line(scan, line, room)) {
        if (strncmp(line, "MAPPED_LIBRARIES", 16) == 0)
            return true;
        if (!read_line(profile, line)) {
            char why[sizeof profile->wrong];
            memcpy(why, profile->wrong, sizeof why);
            return profile_refuse(profile, "line %" PRIu32 " %.200s", scan->line, why);
        }
    }
    return profile_refuse(profile, "is cut short: it has no MAPPED_LIBRARIES");
}

bool heap_v2_read(struct profile *profile, const char *text, size_t bytes)
{
    static char line[32768];
    struct scan scan = {.at = text, .end = text + bytes};
    char *end;
    if (!is_heap_v2(text, bytes) || !next_line(&scan, line, sizeof line))
        return profile_refuse(profile, "is not heap_v2");
    profile->period_bytes = strtoull(line + strlen(HEAD), &end, 10);
    if (end == line + strlen(HEAD) || (*end != '\0' && *end != '\r'))
        return profile_refuse(profile, "line 1 has no period");
    if (!read_sites(profile, &scan, line, sizeof line))
        return false;
    if (text[bytes - 1] != '\n')
        return profile_refuse(profile, "is cut short: its last line has no end");
    while (next_line(&scan, line, sizeof line))
        read_mapping(profile, line);
    place_locations(profile);
    profile->has_blocks = true;
    profile->has_allocated = profile_sum(profile, VALUE_ALLOCATED_BYTES) > 0;
    return true;
}

static void write_counts(const uint64_t *values, FILE *to)
{
    fprintf(to, "%" PRIu64 ": %" PRIu64 " [%" PRIu64 ": %" PRIu64 "]\n", values[VALUE_LIVE_OBJECTS],
            values[VALUE_LIVE_BYTES], values[VALUE_ALLOCATED_OBJECTS],
            values[VALUE_ALLOCATED_BYTES]);
}

void heap_v2_write(const struct profile *profile, FILE *to)
{
    uint64_t sums[VALUE_COUNT];
    for (enum value value = 0; value < VALUE_COUNT; value++)
        sums[value] = profile_sum(profile, value);
    fputs(HEAD "1\n  t*: ", to);
    write_counts(sums, to);
    for (uint32_t i = 0; i < profile->site_count; i++) {
        const struct site *site = &profile->sites[i];
        fputc('@', to);
        for (uint32_t frame = 0; frame < site->stack.depth; frame++)
            fprintf(to, " 0x%" PRIx64,
                    profile->locations[profile->frames[site->stack.first_frame + frame]].address +
                        1);
        fputs("\n  t*: ", to);
        write_counts(site->values, to);
    }
    fputs("\nMAPPED_LIBRARIES:\n", to);
    for (uint32_t i = 1; i < profile->module_count; i++) {
        const struct module *module = &profile->modules[i];
        fprintf(to, "%" PRIx64 "-%" PRIx64 " r-xp %08" PRIx64 " 00:00 0 %s\n", module->start,
                module->end, module->offset, profile_text(profile, module->path));
    }
}
