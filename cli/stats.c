/* SPDX-License-Identifier: MIT */
#include "command.h"
#include "statistics.h"
#include "stats/snapshot.h"
#include "summary.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* No file of statistics is larger than this, and no reader waits for one that has no end. */
#define FILE_BYTES_MOST ((size_t)256 << 20)

struct row {
    const char *name;
    const char *meaning;
};

static const struct row rows[] = {
#define X(name, meaning) {#name, meaning},
    HAK_SNAPSHOT_TABLE(X) HAK_SNAPSHOT_EXACT_TABLE(X) HAK_STAT_GLOBAL_TABLE(X) HAK_STAT_TABLE(X)
#undef X
};

static const char *meaning_of(const char *name)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].name, name) == 0)
            return rows[i].meaning;
    return "";
}

static bool ends_in(const char *name, const char *end)
{
    size_t name_bytes = strlen(name), end_bytes = strlen(end);
    return name_bytes >= end_bytes && strcmp(name + name_bytes - end_bytes, end) == 0;
}

static bool begins_with(const char *name, const char *beginning)
{
    return strncmp(name, beginning, strlen(beginning)) == 0;
}

/* A value with the unit that its name ends in. */
static const char *value_text(char *text, const struct number *number)
{
    if (ends_in(number->name, "_bytes"))
        return size_text(text, number->value);
    const char *unit = "";
    if (ends_in(number->name, "_ms"))
        unit = " ms";
    else if (ends_in(number->name, "_ns") || begins_with(number->name, "waited_ns_"))
        unit = " ns";
    snprintf(text, 32, "%" PRIu64 "%s", number->value, unit);
    return text;
}

static void print_head(const struct report *report, const char *path)
{
    char when[64] = "";
    time_t seconds = (time_t)(report_find(report, "unix_ms", 0) / 1000);
    struct tm local;
    if (seconds != 0 && localtime_r(&seconds, &local) != NULL)
        strftime(when, sizeof when, ", %Y-%m-%d %H:%M:%S", &local);
    if (report_find(report, "shadowed", 0) != 0)
        puts("hakmem was mapped and served nothing: another malloc came first");
    uint64_t process = report_find(report, "pid", 0);
    if (process != 0)
        printf("process %" PRIu64 "%s\n\n", process, when);
    else
        printf("%s\n\n", path);
}

/* Where the window's memory is: the parts add up to what is committed. */
static void print_memory(const struct report *report)
{
    static const char *const parts[] = {"small_live_bytes", "large_live_bytes", "cached_bytes",
                                        "withheld_bytes",   "homeward_bytes",   "slab_free_bytes",
                                        "slab_warm_bytes",  "slab_clean_bytes", "span_warm_bytes",
                                        "span_clean_bytes", "span_lost_bytes",  "hole_bytes"};
    uint64_t whole = report_find(report, "window_committed_bytes", 0);
    if (whole == 0)
        return;
    char size[32];
    printf("%-20s %12s\n", "window", size_text(size, whole));
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        uint64_t bytes = report_find(report, parts[i], 0);
        if (bytes == 0)
            continue;
        printf("  %-18s %12s %5.1f %%  %s\n", parts[i], size_text(size, bytes),
               (double)bytes * 100 / (double)whole, meaning_of(parts[i]));
    }
    putchar('\n');
}

/* The size classes in use: slabs, blocks that are live, at hand and free. */
static void print_classes(const struct report *report)
{
    bool is_first = true;
    for (size_t i = 0; i < report->count; i++) {
        const char *name = report->numbers[i].name;
        unsigned long long block;
        if (sscanf(name, "class_%llu_", &block) != 1 || !ends_in(name, "_slabs"))
            continue;
        if (is_first)
            printf("%10s %8s %12s %12s %12s\n", "block", "slabs", "live", "cached", "free");
        is_first = false;
        char live[64], cached[64], free_blocks[64];
        snprintf(live, sizeof live, "class_%llu_live_blocks", block);
        snprintf(cached, sizeof cached, "class_%llu_cached_blocks", block);
        snprintf(free_blocks, sizeof free_blocks, "class_%llu_free_blocks", block);
        printf("%10llu %8" PRIu64 " %12" PRIu64 " %12" PRIu64 " %12" PRIu64 "\n", block,
               report->numbers[i].value, report_find(report, live, 0),
               report_find(report, cached, 0), report_find(report, free_blocks, 0));
    }
    if (!is_first)
        putchar('\n');
}

static void print_numbers(const struct report *report, bool is_all)
{
    size_t silent = 0;
    for (size_t i = 0; i < report->count; i++) {
        const struct number *number = &report->numbers[i];
        if (begins_with(number->name, "class_") || strcmp(number->name, "pid") == 0 ||
            strcmp(number->name, "unix_ms") == 0 || strcmp(number->name, "schema") == 0)
            continue;
        if (!is_all && (number->value == 0 || begins_with(number->name, "policy_"))) {
            silent++;
            continue;
        }
        char value[32];
        const char *meaning = meaning_of(number->name);
        printf("%-28s %14s%s%s\n", number->name, value_text(value, number),
               *meaning != '\0' ? "  " : "", meaning);
    }
    if (silent > 0)
        printf("(and %zu numbers that are zero or settings; --all shows them)\n", silent);
}

/* The whole file, in a block that the caller frees; NULL: said why. */
static char *read_file(const char *path, size_t *bytes)
{
    bool is_input = strcmp(path, "-") == 0;
    int fd = is_input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    size_t room = 1 << 16;
    char *start = fd < 0 ? NULL : malloc(room);
    *bytes = 0;
    for (ssize_t got; start != NULL && (got = read(fd, start + *bytes, room - *bytes)) != 0;) {
        if (got > 0)
            *bytes += (size_t)got;
        bool is_too_large = *bytes == FILE_BYTES_MOST;
        char *larger = start;
        if (got > 0 && !is_too_large && *bytes == room)
            larger = realloc(start, room *= 2);
        if (is_too_large)
            errno = EFBIG;
        if (got < 0 || is_too_large || larger == NULL) {
            free(start);
            larger = NULL;
        }
        start = larger;
    }
    if (start == NULL)
        complain(0, "%.200s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return start;
}

static int show(const char *path, struct reader *reader, bool is_all)
{
    int reports = 0;
    struct report report = {0};
    for (; report_read(reader, &report); reports++) {
        printf("%s", reports > 0 ? "\n" : "");
        print_head(&report, path);
        print_summary(&report);
        print_memory(&report);
        print_classes(&report);
        print_numbers(&report, is_all);
        report.count = 0;
    }
    free(report.numbers);
    if (reader->wrong != NULL)
        return complain(EXIT_FAILED, "%.200s: line %u %s", path, reader->line, reader->wrong);
    if (reports == 0)
        return complain(EXIT_FAILED, "%.200s: the file is empty", path);
    return EXIT_DONE;
}

int command_stats(int argument_count, char **arguments)
{
    bool is_all = argument_count > 1 && strcmp(arguments[1], "--all") == 0;
    int at = is_all ? 2 : 1;
    if (argument_count != at + 1 || (arguments[at][0] == '-' && arguments[at][1] != '\0'))
        return complain_usage("stats");
    const char *path = arguments[at];
    size_t bytes;
    char *text = read_file(path, &bytes);
    if (text == NULL)
        return EXIT_FAILED;
    struct reader reader = {.at = text, .end = text + bytes, .line = 1};
    int status = show(path, &reader, is_all);
    free(text);
    return status;
}
