/* SPDX-License-Identifier: MIT */
#include "summary.h"

#include "command.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { CLASSES_SHOWN = 3, NAMES_MOST = 4 };

/* Below this there is nothing to be won. */
#define WORTH_BYTES ((uint64_t)4 << 20)

/* Where memory is that no live block has, and what makes it less. */
static const struct place {
    const char *names[NAMES_MOST]; /* whose sum it is */
    const char *words;
    const char *help;
} places[] = {
    {{"slab_free_bytes"},
     "free inside slabs",
     "much is free beside live blocks of the same size: HAKMEM_PRICE=compact"},
    {{"cached_bytes"},
     "in the threads' caches",
     "the threads keep much at hand: HAKMEM_THREAD_CACHE=1M, or HAKMEM_PRICE=compact"},
    {{"withheld_bytes", "homeward_bytes"},
     "freed by other threads, on the way back",
     "threads free what sleeping ones allocated: hakmem_thread_idle in those that wait"},
    {{"slab_warm_bytes", "span_warm_bytes"},
     "free, kept for the next blocks",
     "much is kept: HAKMEM_RETAIN=1M, or a shorter HAKMEM_DECAY"},
    {{"metadata_bytes", "table_bytes"}, "hakmem's own records", NULL},
};
enum { PLACES = sizeof places / sizeof *places };

static uint64_t sum_of(const struct report *report, const struct place *place)
{
    uint64_t sum = 0;
    for (int i = 0; i < NAMES_MOST && place->names[i] != NULL; i++)
        sum += report_find(report, place->names[i], 0);
    return sum;
}

static uint64_t class_number(const struct report *report, uint64_t block, const char *what)
{
    char name[REPORT_NAME_BYTES];
    snprintf(name, sizeof name, "class_%" PRIu64 "_%s_blocks", block, what);
    return report_find(report, name, 0);
}

struct held_class {
    uint64_t block;
    uint64_t bytes;
};

/* The classes that hold most, the first one first; of those not there bytes are 0. */
static void find_largest(const struct report *report, struct held_class largest[CLASSES_SHOWN])
{
    memset(largest, 0, CLASSES_SHOWN * sizeof *largest);
    for (size_t i = 0; i < report->count; i++) {
        struct held_class held;
        int end = 0;
        if (sscanf(report->numbers[i].name, "class_%" SCNu64 "_slabs%n", &held.block, &end) != 1 ||
            end == 0 || report->numbers[i].name[end] != '\0')
            continue;
        held.bytes = held.block * (class_number(report, held.block, "live") +
                                   class_number(report, held.block, "cached") +
                                   class_number(report, held.block, "free"));
        for (int k = 0; k < CLASSES_SHOWN; k++) {
            struct held_class smaller = largest[k];
            if (smaller.bytes >= held.bytes)
                continue;
            largest[k] = held;
            held = smaller;
        }
    }
}

static void print_largest(const struct report *report)
{
    struct held_class largest[CLASSES_SHOWN];
    char size[32];
    find_largest(report, largest);
    if (largest[0].bytes == 0)
        return;
    printf("Most is held by blocks of");
    for (int i = 0; i < CLASSES_SHOWN && largest[i].bytes != 0; i++)
        printf("%s %" PRIu64 " bytes (%s)", i == 0 ? "" : ",", largest[i].block,
               size_text(size, largest[i].bytes));
    puts(".");
}

/* The place that takes more than a quarter, and the most. */
static void print_help_line(const struct report *report, uint64_t held)
{
    const struct place *most = NULL;
    uint64_t most_bytes = held / 4 > WORTH_BYTES ? held / 4 : WORTH_BYTES;
    for (int i = 0; i < PLACES; i++) {
        uint64_t bytes = sum_of(report, &places[i]);
        if (bytes < most_bytes || places[i].help == NULL)
            continue;
        most = &places[i];
        most_bytes = bytes;
    }
    if (most != NULL)
        printf("What may help: %s.\n", most->help);
    if (report_find(report, "out_of_memory", 0) != 0)
        printf("Requests were refused: %" PRIu64 ".\n", report_find(report, "out_of_memory", 0));
}

void print_summary(const struct report *report)
{
    uint64_t live = report_find(report, "live_bytes", 0), held = live;
    char live_text[32], held_text[32];
    if (report_find(report, "window_committed_bytes", 0) == 0 || live == 0)
        return;
    for (int i = 0; i < PLACES; i++)
        held += sum_of(report, &places[i]);
    printf("The program has %s in %" PRIu64 " blocks; hakmem holds %s for it: %.2f times that.\n",
           size_text(live_text, live),
           report_find(report, "small_live_blocks", 0) +
               report_find(report, "large_live_blocks", 0) +
               report_find(report, "guarded_live_blocks", 0),
           size_text(held_text, held), (double)held / (double)live);
    for (int i = 0; i < PLACES; i++) {
        uint64_t bytes = sum_of(report, &places[i]);
        if (bytes != 0)
            printf("%12s %5.1f %%  %s\n", size_text(held_text, bytes),
                   (double)bytes * 100 / (double)held, places[i].words);
    }
    print_largest(report);
    print_help_line(report, held);
    putchar('\n');
}
