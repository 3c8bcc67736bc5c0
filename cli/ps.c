/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "ps.h"

#include "amount.h"
#include "ask.h"
#include "command.h"
#include "process.h"
#include "serving.h"
#include "target.h"
#include "words.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { ROWS_MOST = 4096, FILES_MOST = 1024 };

/* What a process is asked: to publish its statistics for 5 s. How long an answer may take. */
#define ASKED_WORDS "watch 5"
#define ASKED_MS 2500u
#define LOOK_MS 50

/* Programs whose files were examined before. */
static struct known {
    dev_t device;
    ino_t inode;
    bool holds_hakmem;
} known[FILES_MOST];
static int known_count;

/* Whether hakmem is linked into the program; most run more than once. */
static bool is_linked(int pid)
{
    static struct program program;
    char path[64];
    struct stat about;
    snprintf(path, sizeof path, "/proc/%d/exe", pid);
    if (stat(path, &about) != 0)
        return false;
    for (int i = 0; i < known_count; i++)
        if (known[i].inode == about.st_ino && known[i].device == about.st_dev)
            return known[i].holds_hakmem;
    bool holds = program_read(&program, path) && program.holds_hakmem;
    if (known_count < FILES_MOST)
        known[known_count++] = (struct known){about.st_dev, about.st_ino, holds};
    return holds;
}

__attribute__((format(printf, 3, 4))) static void write_text(char *text, size_t bytes,
                                                             const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_line(text, bytes, format, arguments);
    va_end(arguments);
}

static void describe(struct process_row *row, const struct serving *serving)
{
    char *text = row->allocator;
    size_t bytes = sizeof row->allocator;
    row->is_served = serving->kind == SERVING_LINKED || serving->kind == SERVING_PRELOADED;
    switch (serving->kind) {
    case SERVING_PRELOADED:
        write_text(text, bytes, "hakmem");
        return;
    case SERVING_LINKED:
        write_text(text, bytes, "hakmem (linked)");
        return;
    case SERVING_OWN_MALLOC:
        write_text(text, bytes, "not hakmem: the program's own malloc");
        return;
    case SERVING_SHADOWED:
        write_text(text, bytes, "not hakmem: %s comes first", serving->server);
        return;
    default:
        write_text(text, bytes, "unknown, though hakmem is mapped");
    }
}

static void read_live(struct process_row *row, const struct process *process)
{
    static struct target target;
    const char *why;
    row->has_live = target_read_numbers(&target, process, &why);
    row->live_bytes = row->has_live ? target.page.snapshot.live_bytes : 0;
}

/* False: the process maps no hakmem, or has ended. */
static bool read_row(struct process_row *row, int pid)
{
    static struct serving serving;
    struct process process;
    if ((!process_maps(pid, "/libhakmem.so", false) && !is_linked(pid)) ||
        !serving_read(&serving, pid))
        return false;
    bool is_there = serving.kind != SERVING_NOTHING && process_find(&process, pid);
    if (is_there) {
        memset(row, 0, sizeof *row);
        row->pid = pid;
        row->resident_bytes = process.resident_bytes;
        snprintf(row->name, sizeof row->name, "%s", *process.name == '\0' ? "?" : process.name);
        for (char *letter = row->name; *letter != '\0'; letter++)
            if (*letter == ' ')
                *letter = '_';
        describe(row, &serving);
        read_live(row, &process);
        process_leave(&process);
    }
    serving_forget(&serving);
    return is_there;
}

static int compare(const void *left, const void *right)
{
    const struct process_row *a = left, *b = right;
    return (a->pid > b->pid) - (a->pid < b->pid);
}

struct rows {
    struct process_row *start;
    int count, most;
};

static void add_row(int pid, void *context)
{
    struct rows *rows = context;
    if (rows->count < rows->most && read_row(&rows->start[rows->count], pid))
        rows->count++;
}

int processes_find(struct process_row *rows, int most)
{
    struct rows found = {.start = rows, .most = most};
    processes_visit(add_row, &found);
    qsort(rows, (size_t)found.count, sizeof *rows, compare);
    return found.count;
}

static void begin_row(const struct process_row *row, bool is_json, const char *key, bool is_first)
{
    if (!is_json) {
        printf("%s%d %s\n", is_first ? "" : "\n", row->pid, row->name);
        return;
    }
    printf("%s{\"pid\": %d, \"name\": ", is_first ? "" : ",\n ", row->pid);
    put_json_string(row->name);
    printf(", \"%s\": ", key);
}

void processes_show(const struct process_view *view, bool is_json)
{
    static struct process_row rows[PROCESSES_MOST];
    int count = processes_find(rows, PROCESSES_MOST);
    bool is_first = true;
    if (is_json)
        putchar('[');
    for (int i = 0; i < count; i++) {
        if (!rows[i].is_served || !view->look(rows[i].pid, view->seen))
            continue;
        begin_row(&rows[i], is_json, view->key, is_first);
        view->print(view->seen, is_json);
        if (is_json)
            putchar('}');
        is_first = false;
    }
    if (is_json)
        puts("]");
    else if (is_first)
        puts(view->none);
}

static bool wants_live(const struct process_row *row)
{
    return row->is_served && !row->has_live;
}

/* Reads answers; true: none is awaited any more. */
static bool read_asked(struct process_row *rows, struct ask *asks, int count)
{
    bool is_over = true;
    for (int i = 0; i < count; i++) {
        struct control_request seen;
        if (asks[i].fd < 0 || rows[i].has_live)
            continue;
        enum ask_state state = ask_look(&asks[i], &seen);
        if (state == ASK_ANSWERED)
            read_live(&rows[i], &asks[i].process);
        is_over = is_over && state != ASK_WAITS && state != ASK_TAKEN;
    }
    return is_over;
}

/* All at once, so that one that sleeps costs the others nothing. */
static void ask_all(struct process_row *rows, int count)
{
    static struct ask asks[ROWS_MOST];
    const char *why;
    uint64_t give_up_ms = shared_clock_ms() + ASKED_MS;
    for (int i = 0; i < count; i++) {
        asks[i].fd = -1;
        if (wants_live(&rows[i]))
            ask_begin(&asks[i], rows[i].pid, ASKED_WORDS, ASKED_MS, 0, &why);
    }
    while (!read_asked(rows, asks, count) && shared_clock_ms() < give_up_ms)
        nanosleep(&(struct timespec){0, LOOK_MS * 1000000}, NULL);
    for (int i = 0; i < count; i++)
        ask_end(&asks[i]);
}

static void print_json(const struct process_row *rows, int count)
{
    putchar('[');
    for (int i = 0; i < count; i++) {
        printf("%s{\"pid\": %d, \"name\": ", i == 0 ? "" : ",\n ", rows[i].pid);
        put_json_string(rows[i].name);
        printf(", \"resident_bytes\": %" PRIu64 ", \"live_bytes\": ", rows[i].resident_bytes);
        if (rows[i].has_live)
            printf("%" PRIu64, rows[i].live_bytes);
        else
            printf("null");
        printf(", \"is_served\": %s, \"allocator\": ", rows[i].is_served ? "true" : "false");
        put_json_string(rows[i].allocator);
        putchar('}');
    }
    puts("]");
}

static void print_rows(const struct process_row *rows, int count)
{
    printf("%7s %-15s %8s %8s  %s\n", "PID", "NAME", "RESIDENT", "LIVE", "ALLOCATOR");
    for (int i = 0; i < count; i++)
        printf("%7d %-15s %8s %8s  %s\n", rows[i].pid, rows[i].name,
               bytes_of(rows[i].resident_bytes).text,
               rows[i].has_live ? bytes_of(rows[i].live_bytes).text : "-", rows[i].allocator);
}

int command_ps(int argument_count, char **arguments)
{
    (void)argument_count;
    static struct process_row rows[ROWS_MOST];
    bool is_json = false, asks = false;
    const struct word_option options[] = {{"--json", &is_json, NULL}, {"--ask", &asks, NULL}, {0}};
    int status = words_read("ps", arguments + 1, options);
    if (status != EXIT_DONE)
        return status;
    if (arguments[1] != NULL)
        return complain_word("ps", arguments[1]);
    int count = processes_find(rows, ROWS_MOST);
    if (asks)
        ask_all(rows, count);
    if (is_json)
        print_json(rows, count);
    else
        print_rows(rows, count);
    return EXIT_DONE;
}
