/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "profiles/perf_map.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RANGES_MOST = 1 << 20, LINE_BYTES = 1024 };

#define PYTHON "py::"

struct range {
    uint64_t start, end;
    uint32_t order; /* of the line */
    name_id function, file;
};

struct ranges {
    struct range *start;
    uint32_t count, room;
};

bool is_python_name(const char *function)
{
    return strncmp(function, PYTHON, sizeof PYTHON - 1) == 0;
}

/* py::FUNCTION:FILE, or any name. */
static void name_range(struct profile *profile, struct range *range, const char *name)
{
    const char *file = is_python_name(name) ? strrchr(name, ':') : NULL;
    size_t bytes = strlen(name);
    if (file != NULL && file > name + sizeof PYTHON - 1) {
        bytes = (size_t)(file - name);
        range->file = profile_name_of(profile, file + 1);
    }
    range->function = profile_name(profile, name, bytes);
}

static void read_line(struct profile *profile, struct ranges *ranges, char *line)
{
    char *end, *name;
    struct range range = {.order = ranges->count};
    range.start = strtoull(line, &end, 16);
    uint64_t bytes = strtoull(end, &name, 16);
    line[strcspn(line, "\n")] = '\0';
    if (end == line || name == end || *name != ' ' || bytes == 0 || bytes > 1u << 30 ||
        range.start > UINT64_MAX - bytes)
        return;
    range.end = range.start + bytes;
    name_range(profile, &range, name + 1);
    if (ranges->count == ranges->room) {
        ranges->room = ranges->room == 0 ? 1024 : ranges->room * 2;
        ranges->start = grow(ranges->start, ranges->room, sizeof *ranges->start);
    }
    ranges->start[ranges->count++] = range;
}

static int compare_ranges(const void *left, const void *right)
{
    const struct range *first = left, *second = right;
    if (first->start != second->start)
        return first->start < second->start ? -1 : 1;
    return first->order < second->order ? -1 : 1;
}

/* The last one that begins at or before the address, and has it. */
static const struct range *find_range(const struct ranges *ranges, uint64_t address)
{
    uint32_t low = 0, high = ranges->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (ranges->start[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && address < ranges->start[low - 1].end ? &ranges->start[low - 1] : NULL;
}

static FILE *open_map(const char *root, int pid, uint32_t user)
{
    char path[128];
    struct stat about;
    snprintf(path, sizeof path, "%.64s/tmp/perf-%d.map", root, pid);
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    FILE *file = NULL;
    if (fd >= 0 && fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_uid == user)
        file = fdopen(fd, "r");
    if (file == NULL && fd >= 0)
        close(fd);
    return file;
}

static bool is_wanted(const struct location *location)
{
    return location->module == 0 && location->line_count == 0;
}

void perf_map_names(struct profile *profile, const char *root, int pid, uint32_t user)
{
    char line[LINE_BYTES];
    struct ranges ranges = {0};
    bool has_any = false;
    for (uint32_t i = 0; i < profile->location_count; i++)
        has_any |= is_wanted(&profile->locations[i]);
    FILE *file = has_any ? open_map(root, pid, user) : NULL;
    while (file != NULL && ranges.count < RANGES_MOST && fgets(line, sizeof line, file) != NULL)
        read_line(profile, &ranges, line);
    if (file != NULL)
        fclose(file);
    if (ranges.count > 0)
        qsort(ranges.start, ranges.count, sizeof *ranges.start, compare_ranges);
    for (uint32_t i = 0; i < profile->location_count; i++) {
        const struct range *range = is_wanted(&profile->locations[i])
                                        ? find_range(&ranges, profile->locations[i].address)
                                        : NULL;
        if (range != NULL)
            profile_add_line(profile, i,
                             (struct line){.function = range->function, .file = range->file});
    }
    free(ranges.start);
}
