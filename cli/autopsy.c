/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "boxes.h"
#include "command.h"
#include "profiles/rows.h"
#include "profiles/source.h"
#include "stats/emit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { AUTOPSY_ROWS = 12 };

static void write_out(void *unused, const char *piece, size_t bytes)
{
    (void)unused;
    fwrite(piece, 1, bytes, stdout);
}

/* How the process is, and when it was last heard of. */
static void print_end(const struct source *source)
{
    const struct board_head *head = &source->board->head;
    uint64_t heard_ms = hak_load_relaxed(&head->refreshed_ms);
    uint64_t after_ms = heard_ms > head->start_ms ? heard_ms - head->start_ms : 0;
    char when[32];
    if (source->is_alive)
        printf("Process %" PRIu64 " is running.\n", head->pid);
    else
        printf("Process %" PRIu64 " ended without a normal exit.\nLast update: %s\n", head->pid,
               utc_text(when, head->start_unix_ms + after_ms));
}

/* The statistics of the black box, copied by the steps of their reader; false: there are none. */
static bool read_statistics(const struct source *source, struct shm_page *page)
{
    const struct stats_shm *shm = &source->board->stats;
    return shm->head.magic == HAK_SHM_MAGIC && shm->head.layout == hak_shm_layout() &&
           hak_shm_read(shm, page) && page->snapshot.class_count <= HAK_SNAPSHOT_CLASSES &&
           page->snapshot.cache_count <= HAK_SNAPSHOT_CACHES &&
           page->snapshot.heap_count <= HAK_SNAPSHOT_HEAPS;
}

static void print_event(struct event event, uint64_t clock_ms)
{
    char size[32];
    enum event_kind kind = hak_event_kind(event);
    const char *unit = hak_event_unit(kind);
    double age = clock_ms > event.when_ms ? (double)(clock_ms - event.when_ms) / 1000 : 0;
    if (strcmp(unit, "bytes") == 0)
        size_text(size, hak_event_number(event));
    else
        snprintf(size, sizeof size, "%s %" PRIu64, unit, hak_event_number(event));
    printf("  %10.1f s before  %-16s %10s\n", age, hak_event_name(kind), size);
}

static void print_events(const struct shm_page *page)
{
    puts("\nLast events");
    for (uint32_t i = 0; i < HAK_EVENTS_KEPT; i++) {
        enum event_kind kind = hak_event_kind(page->events[i]);
        if (kind > EVENT_NONE && kind < EVENT_COUNT)
            print_event(page->events[i], page->clock_ms);
    }
}

static int report(struct source *source)
{
    static struct shm_page page;
    struct rows rows;
    struct table table;
    source_name(source, NAMES_FOR_ALL);
    print_end(source);
    rows_make(&rows, &source->profile, BY_LINE);
    rows_sort(&rows, ORDER_LIVE);
    table_begin(&table);
    table.rows_most = AUTOPSY_ROWS;
    table_box(&table, &rows, &source->profile);
    rows_free(&rows);
    if (!read_statistics(source, &page)) {
        puts("\nResidency and events are not known: they need HAKMEM_BLACKBOX=on.");
        return EXIT_DONE;
    }
    puts("\nMemory");
    hak_emit_summary(&page.snapshot, write_out, NULL);
    print_events(&page);
    return EXIT_DONE;
}

static int report_of(const char *word)
{
    struct source source;
    int status = EXIT_FAILED;
    if (source_read(&source, "autopsy", word))
        status =
            source.has_board
                ? report(&source)
                : complain(EXIT_FAILED, "autopsy: %.100s is a profile, not the file of a process",
                           source.path);
    source_end(&source);
    return status;
}

/* The number of a process, or the path of a file. */
static bool is_plain(const char *word)
{
    return word[strspn(word, "0123456789")] == '\0' || strchr(word, '/') != NULL;
}

/* Of a program, whose own file may lie here, or else of a file. */
static int report_named(const char *name)
{
    struct boxes boxes;
    boxes_find(&boxes);
    const struct box *box = boxes_named(&boxes, name);
    bool is_known = box != NULL || access(name, F_OK) == 0;
    int status = is_known ? report_of(box != NULL ? box->path : name)
                          : complain(EXIT_FAILED,
                                     "autopsy: there is no file '%.100s', and no program of "
                                     "that name left a black box",
                                     name);
    boxes_end(&boxes);
    return status;
}

static int list(void)
{
    struct boxes boxes;
    boxes_find(&boxes);
    boxes_print(&boxes);
    boxes_end(&boxes);
    return EXIT_DONE;
}

int command_autopsy(int argument_count, char **arguments)
{
    if (argument_count == 1)
        return list();
    if (argument_count != 2 || arguments[1][0] == '-')
        return complain_word("autopsy", arguments[arguments[1][0] == '-' ? 1 : 2]);
    return is_plain(arguments[1]) ? report_of(arguments[1]) : report_named(arguments[1]);
}
