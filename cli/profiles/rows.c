/* SPDX-License-Identifier: MIT */
#include "profiles/rows.h"

#include "profiles/perf_map.h"

#include <stdlib.h>
#include <string.h>

enum { CALLERS_MOST = 12 };

static int compare_u64(uint64_t left, uint64_t right)
{
    return left < right ? -1 : left > right;
}

/* By place; of one place the largest site first. */
static int compare_places(const void *left, const void *right)
{
    const struct row *first = left, *second = right;
    int order = compare_u64(first->at.function, second->at.function);
    if (order == 0)
        order = compare_u64(first->at.file, second->at.file);
    if (order == 0)
        order = compare_u64(first->at.number, second->at.number);
    return order == 0 ? compare_u64(second->most_bytes, first->most_bytes) : order;
}

static bool is_same_place(const struct row *left, const struct row *right)
{
    return left->at.function == right->at.function && left->at.file == right->at.file &&
           left->at.number == right->at.number;
}

static char *callers_text(const struct profile *profile, const struct frame *frames, uint32_t count,
                          bool is_python)
{
    char *text = NULL;
    size_t bytes;
    FILE *to = count == 0 ? NULL : open_memstream(&text, &bytes);
    uint32_t written = 0;
    for (uint32_t i = 0; to != NULL && i < count && written < CALLERS_MOST; i++) {
        const char *name = profile_text(profile, frames[i].function);
        /* Between functions of Python is only the interpreter. */
        if (is_python && !is_python_name(name))
            continue;
        /* The callers of main are the same for all. */
        if (strncmp(name, "__libc_start_", 13) == 0)
            break;
        fprintf(to, "%s< %s", written++ > 0 ? " " : "", name);
    }
    if (to != NULL)
        fclose(to);
    return text;
}

static char *freed_by_text(const struct profile *profile, struct stack stack,
                           struct frame frames[FRAMES_MOST])
{
    uint32_t count = stack_frames(profile, stack, frames);
    if (count == 0)
        return NULL;
    uint32_t origin = site_origin(profile, frames, count);
    return callers_text(profile, frames + origin, count - origin,
                        is_python_name(profile_text(profile, frames[origin].function)));
}

static struct row row_of(const struct profile *profile, const struct site *site, enum row_key key)
{
    static struct frame frames[FRAMES_MOST];
    uint32_t count = stack_frames(profile, site->stack, frames);
    struct row row = {.site_count = 1,
                      .most_bytes = site->values[VALUE_LIVE_BYTES],
                      .samples = site->samples,
                      .oldest_ns = site->oldest_ns,
                      .grown_ns = site->grown_ns};
    memcpy(row.values, site->values, sizeof row.values);
    if (count == 0)
        return row;
    uint32_t origin = site_origin(profile, frames, count);
    row.at = frames[origin];
    if (key == BY_FUNCTION)
        row.at.number = 0;
    row.callers = callers_text(profile, frames + origin + 1, count - origin - 1,
                               is_python_name(profile_text(profile, frames[origin].function)));
    row.freed_by = freed_by_text(profile, site->freed_by, frames);
    return row;
}

/* `from` is of the same place, and smaller. */
static void merge_row(struct row *row, struct row *from)
{
    for (int value = 0; value < VALUE_COUNT; value++)
        row->values[value] = add_bounded(row->values[value], from->values[value]);
    row->site_count += from->site_count;
    row->samples = add_bounded(row->samples, from->samples);
    row->oldest_ns = from->oldest_ns > row->oldest_ns ? from->oldest_ns : row->oldest_ns;
    if (row->grown_ns == 0 || (from->grown_ns != 0 && from->grown_ns < row->grown_ns))
        row->grown_ns = from->grown_ns;
    free(from->callers);
    if (row->freed_by == NULL)
        row->freed_by = from->freed_by;
    else
        free(from->freed_by);
}

void rows_make(struct rows *rows, const struct profile *profile, enum row_key key)
{
    rows->start = grow(NULL, profile->site_count, sizeof *rows->start);
    rows->count = 0;
    for (uint32_t i = 0; i < profile->site_count; i++)
        rows->start[i] = row_of(profile, &profile->sites[i], key);
    qsort(rows->start, profile->site_count, sizeof *rows->start, compare_places);
    for (uint32_t i = 0; i < profile->site_count; i++) {
        struct row *last = rows->count == 0 ? NULL : &rows->start[rows->count - 1];
        if (last != NULL && is_same_place(last, &rows->start[i]))
            merge_row(last, &rows->start[i]);
        else
            rows->start[rows->count++] = rows->start[i];
    }
}

void rows_free(struct rows *rows)
{
    for (uint32_t i = 0; i < rows->count; i++) {
        free(rows->start[i].callers);
        free(rows->start[i].freed_by);
    }
    free(rows->start);
    *rows = (struct rows){0};
}

static name_id translate(struct profile *to, const struct profile *from, name_id name)
{
    return profile_name_of(to, profile_text(from, name));
}

void rows_compare(struct rows *rows, struct profile *profile, const struct rows *before,
                  const struct profile *before_profile)
{
    uint32_t known = rows->count;
    qsort(rows->start, known, sizeof *rows->start, compare_places);
    for (uint32_t i = 0; i < before->count; i++) {
        const struct row *from = &before->start[i];
        struct row row = {.at = from->at, .most_bytes = UINT64_MAX};
        row.at.function = translate(profile, before_profile, from->at.function);
        row.at.file = translate(profile, before_profile, from->at.file);
        row.at.module = translate(profile, before_profile, from->at.module);
        /* The first row that is not less: that of the place, if there is one. */
        uint32_t low = 0, high = known;
        while (low < high) {
            uint32_t middle = low + (high - low) / 2;
            if (compare_places(&rows->start[middle], &row) < 0)
                low = middle + 1;
            else
                high = middle;
        }
        struct row *to = &rows->start[low];
        if (low == known || !is_same_place(to, &row)) {
            rows->start = grow(rows->start, rows->count + 1u, sizeof *rows->start);
            to = &rows->start[rows->count++];
            row.most_bytes = 0;
            *to = row;
        }
        to->before_bytes = from->values[VALUE_LIVE_BYTES];
        to->before_objects = from->values[VALUE_LIVE_OBJECTS];
    }
}

int64_t row_growth(const struct row *row)
{
    uint64_t now = row->values[VALUE_LIVE_BYTES], before = row->before_bytes;
    uint64_t change = now > before ? now - before : before - now;
    int64_t bounded = change > INT64_MAX ? INT64_MAX : (int64_t)change;
    return now > before ? bounded : -bounded;
}

static int compare_live(const void *left, const void *right)
{
    const struct row *first = left, *second = right;
    int order = compare_u64(second->values[VALUE_LIVE_BYTES], first->values[VALUE_LIVE_BYTES]);
    return order == 0 ? compare_places(left, right) : order;
}

static int compare_allocated(const void *left, const void *right)
{
    const struct row *first = left, *second = right;
    int order =
        compare_u64(second->values[VALUE_ALLOCATED_BYTES], first->values[VALUE_ALLOCATED_BYTES]);
    return order == 0 ? compare_places(left, right) : order;
}

static int compare_growth(const void *left, const void *right)
{
    int64_t first = row_growth(left), second = row_growth(right);
    return first > second ? -1 : first < second ? 1 : compare_places(left, right);
}

void rows_sort(struct rows *rows, enum order order)
{
    qsort(rows->start, rows->count, sizeof *rows->start,
          order == ORDER_LIVE        ? compare_live
          : order == ORDER_ALLOCATED ? compare_allocated
                                     : compare_growth);
}
