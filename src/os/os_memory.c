/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "os/os_memory.h"

#include "base/bits.h"
#include "os/file_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* A file read line by line; longer lines are cut. */
struct lines {
    int fd;
    size_t begin;
    size_t end;
    char buffer[2048];
};

/* The next line, ended by 0; NULL: there is none. */
static char *next_line(struct lines *lines)
{
    for (;;) {
        char *start = lines->buffer + lines->begin;
        char *newline = memchr(start, '\n', lines->end - lines->begin);
        if (newline != NULL) {
            *newline = '\0';
            lines->begin = (size_t)(newline + 1 - lines->buffer);
            return start;
        }
        lines->end -= lines->begin;
        memmove(lines->buffer, start, lines->end);
        lines->begin = 0;
        if (lines->end == sizeof lines->buffer)
            lines->end = 0;
        ssize_t got =
            hak_call_read(lines->fd, lines->buffer + lines->end, sizeof lines->buffer - lines->end);
        if (got <= 0)
            return NULL;
        lines->end += (size_t)got;
    }
}

static uint64_t number_at(const char *text, uint64_t base)
{
    uint64_t value = 0;
    for (; *text == ' '; text++)
        continue;
    for (;; text++) {
        uint64_t digit = *text >= 'a' ? (uint64_t)(*text - 'a') + 10 : (uint64_t)(*text - '0');
        if (digit >= base)
            return value;
        value = value * base + digit;
    }
}

static struct lines open_lines(const char *path)
{
    struct lines lines = {.fd = hak_call_open(path, O_RDONLY | O_CLOEXEC)};
    return lines;
}

static void close_lines(const struct lines *lines)
{
    if (lines->fd >= 0)
        hak_call_close(lines->fd);
}

/* A mapping's first line begins with its addresses, all others with a capital. */
static bool is_mapping(const char *line)
{
    return (*line >= '0' && *line <= '9') || (*line >= 'a' && *line <= 'f');
}

static bool is_within(uintptr_t address, const struct os_range *ranges, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (address >= ranges[i].start && address < ranges[i].end)
            return true;
    return false;
}

/* The kilobytes behind the name of a field, in bytes; 0: the line is another field's. */
static uint64_t field_bytes(const char *line, const char *name)
{
    size_t length = strlen(name);
    return strncmp(line, name, length) == 0 ? number_at(line + length, 10) * 1024 : 0;
}

static void add_mappings(struct os_memory *memory, const struct os_range *own, uint32_t own_count)
{
    struct lines lines = open_lines("/proc/self/smaps");
    bool is_own = false;
    for (char *line; lines.fd >= 0 && (line = next_line(&lines)) != NULL;) {
        if (is_mapping(line)) {
            is_own = is_within(number_at(line, 16), own, own_count);
            continue;
        }
        uint64_t resident = field_bytes(line, "Rss:");
        memory->resident_bytes += resident;
        memory->own_bytes += is_own ? resident : 0;
        memory->huge_bytes += is_own ? field_bytes(line, "AnonHugePages:") : 0;
    }
    close_lines(&lines);
}

static void read_status(struct os_memory *memory)
{
    struct lines lines = open_lines("/proc/self/status");
    for (char *line; lines.fd >= 0 && (line = next_line(&lines)) != NULL;) {
        memory->resident_bytes += field_bytes(line, "VmRSS:\t");
        memory->peak_bytes += field_bytes(line, "VmHWM:\t");
    }
    close_lines(&lines);
}

/* The kernel counts the peak in batches: it may lag behind. */
static void raise_peak(struct os_memory *memory)
{
    memory->peak_bytes = hak_most(memory->peak_bytes, memory->resident_bytes);
}

struct os_memory hak_os_memory_read(const struct os_range *own, uint32_t own_count)
{
    struct os_memory memory = {0};
    int saved = errno;
    read_status(&memory);
    memory.resident_bytes = 0; /* counted in batches, too: the sum is exact */
    add_mappings(&memory, own, own_count);
    raise_peak(&memory);
    errno = saved;
    return memory;
}

struct os_memory hak_os_memory_read_total(void)
{
    struct os_memory memory = {0};
    int saved = errno;
    read_status(&memory);
    raise_peak(&memory);
    errno = saved;
    return memory;
}
