/* SPDX-License-Identifier: MIT */
#include "sites.h"

#include "os/os.h"
#include "profiles/rows.h"
#include "profiles/source.h"

#include <stdlib.h>
#include <string.h>

#define GROWTH_MS 10000u
#define ROUGH_SAMPLES 16u

/* Names that the last look found are not looked up again, where the same file is still there. */
static void adopt_names(struct profile *to, const struct profile *from)
{
    for (uint32_t i = 0; i < from->location_count; i++) {
        const struct location *known = &from->locations[i];
        const struct module *old = &from->modules[known->module];
        uint32_t index = profile_find_location(to, known->address);
        if (index == UINT32_MAX || to->locations[index].line_count > 0)
            continue;
        const struct module *now = &to->modules[to->locations[index].module];
        if (now->start != old->start || now->bias != old->bias ||
            strcmp(profile_text(to, now->path), profile_text(from, old->path)) != 0 ||
            strcmp(profile_text(to, now->build_id), profile_text(from, old->build_id)) != 0)
            continue;
        for (uint32_t at = 0; at < known->line_count; at++) {
            struct line line = from->lines[known->first_line + at];
            line.function = profile_name_of(to, profile_text(from, line.function));
            line.file = profile_name_of(to, profile_text(from, line.file));
            profile_add_line(to, index, line);
        }
    }
}

static int compare_places(const void *left, const void *right)
{
    const struct site_row *first = left, *second = right;
    int order = strcmp(first->function, second->function);
    if (order == 0)
        order = strcmp(first->file, second->file);
    if (order == 0)
        order = first->line < second->line ? -1 : first->line > second->line;
    return order;
}

static void sort_by(struct sites *sites, int (*compare)(const void *, const void *))
{
    if (sites->row_count > 0)
        qsort(sites->rows, sites->row_count, sizeof *sites->rows, compare);
}

static struct site_row *find_row(const struct sites *sites, const struct site_row *row)
{
    if (sites->row_count == 0)
        return NULL;
    return bsearch(row, sites->rows, sites->row_count, sizeof *row, compare_places);
}

static struct site_row row_from(const struct profile *profile, struct row *from)
{
    struct site_row row = {
        .function = profile_text(profile, from->at.function),
        .callers = from->callers,
        .file = base_name(profile_text(profile, from->at.file)),
        .line = from->at.number,
        .is_rough = from->samples > 0 && from->samples < ROUGH_SAMPLES,
        .live_bytes = from->values[VALUE_LIVE_BYTES],
        .live_blocks = from->values[VALUE_LIVE_OBJECTS],
        .allocated_bytes = from->values[VALUE_ALLOCATED_BYTES],
    };
    from->callers = NULL; /* the row keeps it */
    return row;
}

/* How many of the looks before this one count: the last one, and those not too long ago. */
static uint32_t looks_that_count(const struct sites *sites)
{
    uint32_t count = 1;
    while (count < sites->look_count && sites->look_ms[0] - sites->look_ms[count] <= GROWTH_MS)
        count++;
    return count == 1 && sites->look_count > 1 ? 2 : count;
}

static void fill(struct sites *now, const struct sites *before)
{
    struct rows rows;
    rows_make(&rows, &now->source->profile, BY_LINE);
    now->rows = grow(NULL, rows.count + 1u, sizeof *now->rows);
    now->row_count = rows.count;
    uint32_t looks = looks_that_count(now);
    double seconds = (double)(now->look_ms[0] - now->look_ms[looks - 1]) / 1000;
    for (uint32_t i = 0; i < rows.count; i++) {
        struct site_row *row = &now->rows[i];
        *row = row_from(&now->source->profile, &rows.start[i]);
        row->past[0] = row->live_bytes;
        /* One that was not there held nothing. */
        const struct site_row *old = find_row(before, row);
        if (old != NULL)
            memcpy(row->past + 1, old->past, sizeof row->past - sizeof *row->past);
        double grown = (double)row->live_bytes - (double)row->past[looks - 1];
        row->growth = looks > 1 && seconds > 0 ? grown / seconds : 0;
    }
    rows_free(&rows);
    sort_by(now, compare_places);
}

static bool is_same_process(const struct source *left, const struct source *right)
{
    return left != NULL && left->has_board && left->board->head.pid == right->board->head.pid &&
           left->board->head.start_ticks == right->board->head.start_ticks &&
           left->board->head.start_ms == right->board->head.start_ms;
}

static enum sites_state state_of(const struct source *source)
{
    return hak_load_relaxed(&source->board->head.mean_bytes) == 0 ? SITES_STOPPED : SITES_ON;
}

void sites_look(struct sites *sites, int pid)
{
    char number[16];
    struct sites now = {.state = SITES_WRONG};
    now.source = grow(NULL, 1, sizeof *now.source);
    snprintf(number, sizeof number, "%d", pid);
    if (!source_try(now.source, number)) {
        now.state = now.source->is_absent ? SITES_ABSENT : SITES_WRONG;
        snprintf(now.wrong, sizeof now.wrong, "%s", now.source->wrong);
        sites_end(sites);
        *sites = now;
        return;
    }
    now.state = state_of(now.source);
    now.look_ms[0] = hak_os_clock_ms();
    now.look_count = 1;
    if (!is_same_process(sites->source, now.source))
        sites_end(sites);
    else
        adopt_names(&now.source->profile, &sites->source->profile);
    source_name(now.source, NAMES_FOR_ALL);
    for (uint32_t i = 0; i < sites->look_count && now.look_count < SITES_LOOKS; i++)
        now.look_ms[now.look_count++] = sites->look_ms[i];
    sort_by(sites, compare_places);
    fill(&now, sites);
    sites_end(sites);
    *sites = now;
}

static int compare_live(const void *left, const void *right)
{
    const struct site_row *first = left, *second = right;
    if (first->live_bytes != second->live_bytes)
        return first->live_bytes > second->live_bytes ? -1 : 1;
    return compare_places(left, right);
}

static int compare_growth(const void *left, const void *right)
{
    const struct site_row *first = left, *second = right;
    if (first->growth > second->growth || first->growth < second->growth)
        return first->growth > second->growth ? -1 : 1;
    return compare_live(left, right);
}

static int compare_allocated(const void *left, const void *right)
{
    const struct site_row *first = left, *second = right;
    if (first->allocated_bytes != second->allocated_bytes)
        return first->allocated_bytes > second->allocated_bytes ? -1 : 1;
    return compare_places(left, right);
}

void sites_sort(struct sites *sites, enum sites_order order)
{
    sort_by(sites, order == SITES_BY_LIVE     ? compare_live
                   : order == SITES_BY_GROWTH ? compare_growth
                                              : compare_allocated);
}

bool site_row_has(const struct site_row *row, const char *letters)
{
    return strstr(row->function, letters) != NULL || strstr(row->file, letters) != NULL ||
           (row->callers != NULL && strstr(row->callers, letters) != NULL);
}

void sites_end(struct sites *sites)
{
    for (uint32_t i = 0; i < sites->row_count; i++)
        free((char *)(uintptr_t)sites->rows[i].callers);
    free(sites->rows);
    if (sites->source != NULL)
        source_end(sites->source);
    free(sites->source);
    *sites = (struct sites){0};
}
