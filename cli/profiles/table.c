/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "base/text.h"
#include "colours.h"
#include "profiles/rows.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { COLUMNS_LEAST = 40, LINE_BYTES = 1024, ROUGH_SAMPLES = 16 };

void table_begin(struct table *table)
{
    struct winsize size = {0};
    const char *columns = getenv("COLUMNS");
    bool is_terminal = isatty(STDOUT_FILENO) == 1;
    *table = (struct table){.to = stdout, .columns = 80, .rows_most = 20};
    if (is_terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        table->columns = size.ws_col;
    else if (columns != NULL && atoi(columns) > 0)
        table->columns = (uint32_t)atoi(columns);
    if (table->columns < COLUMNS_LEAST)
        table->columns = COLUMNS_LEAST;
    if (table->columns >= LINE_BYTES)
        table->columns = LINE_BYTES - 1;
    table->has_colours = is_terminal && colours_are_wanted();
}

char *life_text(char *text, size_t bytes, uint64_t ns)
{
    static const struct {
        double seconds;
        const char *unit;
    } units[] = {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}, {1e-3, "ms"}, {1e-6, "us"}};
    double seconds = (double)ns / 1e9;
    size_t unit = 0;
    while (unit < 5 && seconds < units[unit].seconds)
        unit++;
    double amount = seconds / units[unit].seconds;
    snprintf(text, bytes, "%.*f %s", amount < 9.95 ? 1 : 0, amount, units[unit].unit);
    return text;
}

/* "12.3 MiB", with a sign where it is a difference. */
static char *bytes_text(char text[32], const char *sign, uint64_t bytes)
{
    struct text size = {.start = text, .bytes = 31};
    hak_text_add(&size, sign);
    hak_text_add_size(&size, bytes);
    text[size.used] = '\0';
    return text;
}

/* A number that may be anything as one of bytes. */
static uint64_t bounded(double number)
{
    return number < 9e18 ? (uint64_t)number : UINT64_C(9000000000000000000);
}

static char *growth_text(char text[32], int64_t bytes)
{
    return bytes_text(text,
                      bytes > 0   ? "+"
                      : bytes < 0 ? "-"
                                  : "",
                      bytes < 0 ? 0 - (uint64_t)bytes : (uint64_t)bytes);
}

static char *count_text(char text[32], uint64_t count)
{
    static const char units[] = "kMGTPE";
    double amount = (double)count;
    int unit = -1;
    for (; amount >= (unit < 0 ? 99999.5 : 999.5) && unit < 5; unit++)
        amount /= 1000;
    if (unit < 0)
        snprintf(text, 32, "%" PRIu64, count);
    else
        snprintf(text, 32, "%.*f %c", amount < 9.95 ? 1 : 0, amount, units[unit]);
    return text;
}

/* A number of blocks, where the profile has any. */
static char *blocks_text(char text[32], const struct profile *profile, uint64_t count)
{
    if (profile->has_blocks)
        return count_text(text, count);
    snprintf(text, 32, "-");
    return text;
}

/* At most `columns` characters; a longer text loses its middle, or its end. */
static void print_cut(const struct table *table, const char *text, uint32_t columns, uint32_t tail)
{
    uint32_t bytes = (uint32_t)strlen(text);
    if (bytes <= columns) {
        fputs(text, table->to);
        return;
    }
    if (columns < tail + 6)
        tail = 0;
    uint32_t head = columns - tail - 2;
    uint32_t from = bytes - tail;
    while (head > 0 && ((unsigned char)text[head] & 0xc0) == 0x80)
        head--;
    while (from < bytes && ((unsigned char)text[from] & 0xc0) == 0x80)
        from++;
    fprintf(table->to, "%.*s..%s", (int)head, text, text + from);
}

/* The rest of a row from column `at` on: the function, its file and line, and its callers below. */
static void print_place(const struct table *table, const struct profile *profile,
                        const struct row *row, uint32_t at)
{
    char file[96] = "", paths[48] = "";
    uint32_t room = table->columns > at + 20 ? table->columns - at : 20;
    const char *function = profile_text(profile, row->at.function);
    const char *path = base_name(profile_text(profile, row->at.file));
    if (*path != '\0' && row->at.number > 0)
        snprintf(file, sizeof file, "  %.40s:%" PRIu32, path, row->at.number);
    else if (*path != '\0')
        snprintf(file, sizeof file, "  %.40s", path);
    uint32_t file_columns = (uint32_t)strlen(file);
    if (file_columns + 12 > room)
        file_columns = 0;
    print_cut(table, *function == '\0' ? "(no stack)" : function, room - file_columns, 14);
    fprintf(table->to, "%s\n", file_columns > 0 ? file : "");
    if (row->callers == NULL || *row->callers == '\0')
        return;
    if (row->site_count > 1)
        snprintf(paths, sizeof paths, " (%" PRIu32 " paths)", row->site_count);
    fprintf(table->to, "%*s%s", (int)at, "", table->has_colours ? "\033[2m" : "");
    print_cut(table, row->callers, room - (uint32_t)strlen(paths), 0);
    fprintf(table->to, "%s%s\n", paths, table->has_colours ? "\033[0m" : "");
}

/* The functions that freed such blocks, if any were freed: "others freed by < f < g". */
static void print_freed_by(const struct table *table, const struct row *row, uint32_t at)
{
    static const char words[] = "others freed by ";
    bool has_room = table->columns >= at + sizeof words + 8;
    if (!has_room || row->freed_by == NULL || *row->freed_by == '\0')
        return;
    fprintf(table->to, "%*s%s%s", (int)at, "", table->has_colours ? "\033[2m" : "", words);
    print_cut(table, row->freed_by + strspn(row->freed_by, "< "),
              table->columns - at - (uint32_t)(sizeof words - 1), 0);
    fprintf(table->to, "%s\n", table->has_colours ? "\033[0m" : "");
}

static void print_heading(const struct table *table, const char *heading)
{
    fprintf(table->to, "\n%s%.*s%s\n", table->has_colours ? "\033[1m" : "", (int)table->columns,
            heading, table->has_colours ? "\033[0m" : "");
}

static void print_period(const struct table *table, const struct profile *profile)
{
    char size[32], life[32];
    if (profile->period_bytes > 1)
        fprintf(table->to, "estimates; one sample in %s%s in the mean",
                profile->is_least_period ? "at least " : "",
                bytes_text(size, "", profile->period_bytes));
    if (profile->period_bytes > 1 && profile->duration_ns > 0)
        fprintf(table->to, ", for %s", life_text(life, sizeof life, profile->duration_ns));
    if (profile->period_bytes > 1)
        fputc('\n', table->to);
}

static void print_title(const struct table *table, const struct profile *profile)
{
    char size[32], count[32];
    const char *program = profile_text(profile, profile->program);
    fprintf(table->to, "%.40s", *program == '\0' ? "heap profile" : program);
    if (profile->pid != 0)
        fprintf(table->to, ", process %" PRIu64, profile->pid);
    fprintf(table->to, ": %s live", bytes_text(size, "", profile_sum(profile, VALUE_LIVE_BYTES)));
    if (profile->has_blocks)
        fprintf(table->to, " in %s blocks",
                count_text(count, profile_sum(profile, VALUE_LIVE_OBJECTS)));
    fputc('\n', table->to);
    print_period(table, profile);
}

static void print_end(const struct table *table, const struct profile *profile, uint32_t shown,
                      uint32_t count, uint64_t rest_bytes)
{
    char size[32];
    if (count > shown)
        fprintf(table->to, "and %" PRIu32 " more, %s; --all shows them\n", count - shown,
                bytes_text(size, "", rest_bytes));
    if (profile->lost_sites > 0)
        fprintf(table->to, "%" PRIu64 " stacks found no room: their sum is (no stack)\n",
                profile->lost_sites);
    if (profile->unshown_sites > 0)
        fprintf(table->to,
                "%" PRIu64 " stacks are missing: there is no room in /dev/shm for them\n",
                profile->unshown_sites);
    if (profile->lost_modules > 0)
        fputs("some libraries found no room: functions have no names, or those of others\n",
              table->to);
    if (profile->lost_samples > 0)
        fprintf(table->to, "%" PRIu64 " samples have no end: not among what lives\n",
                profile->lost_samples);
}

static uint64_t mean_life(const struct row *row)
{
    uint64_t allocated = row->values[VALUE_ALLOCATED_OBJECTS];
    uint64_t live = row->values[VALUE_LIVE_OBJECTS];
    return allocated > live ? row->values[VALUE_LIFE_NS] / (allocated - live) : 0;
}

/* Live bytes a minute since the oldest block came: "+1.2 MiB"; "-": for most of that time the site
 * has allocated nothing. */
static char *rate_text(char text[32], const struct row *row)
{
    if (row->grown_ns > row->oldest_ns / 2) {
        snprintf(text, 32, "-");
        return text;
    }
    double minutes = (double)row->oldest_ns / 6e10;
    return bytes_text(text, "+", bounded((double)row->values[VALUE_LIVE_BYTES] / minutes));
}

/* The columns behind the share: blocks and their mean life, or the age of the oldest and growth. */
static void print_past(const struct table *table, const struct row *row,
                       const struct profile *profile, bool is_box)
{
    char text[32], rate[32];
    if (is_box && row->oldest_ns > 0)
        fprintf(table->to, " %8s %12s  ", life_text(text, sizeof text, row->oldest_ns),
                rate_text(rate, row));
    else if (is_box)
        fprintf(table->to, " %8s %12s  ", "-", "-");
    else
        fprintf(table->to, " %8s", blocks_text(text, profile, row->values[VALUE_LIVE_OBJECTS]));
    if (!is_box)
        fprintf(table->to, " %8s  ",
                mean_life(row) > 0 ? life_text(text, sizeof text, mean_life(row)) : "-");
}

static void print_live(const struct table *table, const struct rows *rows,
                       const struct profile *profile, bool is_box)
{
    char size[32];
    uint64_t live = profile_sum(profile, VALUE_LIVE_BYTES), rest = 0;
    uint32_t shown = 0, living = 0;
    bool has_rough = false;
    for (uint32_t i = 0; i < rows->count; i++) {
        const struct row *row = &rows->start[i];
        uint64_t bytes = row->values[VALUE_LIVE_BYTES];
        living += bytes > 0;
        if (shown == table->rows_most || bytes == 0) {
            rest = add_bounded(rest, bytes);
            continue;
        }
        bool is_rough = row->samples > 0 && row->samples < ROUGH_SAMPLES;
        has_rough |= is_rough;
        fprintf(table->to, "%10s %c%5.1f%%", bytes_text(size, "", bytes), is_rough ? '~' : ' ',
                live == 0 ? 0 : 100 * (double)bytes / (double)live);
        print_past(table, row, profile, is_box);
        print_place(table, profile, row, is_box ? 42 : 38);
        shown++;
    }
    if (living == 0)
        fputs("nothing\n", table->to);
    if (has_rough)
        fprintf(table->to, "~ of fewer than %d samples\n", ROUGH_SAMPLES);
    print_end(table, profile, shown, living, rest);
}

void table_profile(const struct table *table, const struct rows *rows,
                   const struct profile *profile)
{
    print_title(table, profile);
    print_heading(table, "      live   share   blocks     life  where");
    print_live(table, rows, profile, false);
}

void table_box(const struct table *table, const struct rows *rows, const struct profile *profile)
{
    print_title(table, profile);
    print_heading(table, "      live   share   oldest  grows a min  where");
    print_live(table, rows, profile, true);
}

void table_leaks(const struct table *table, const struct rows *rows, const struct profile *profile,
                 uint64_t least_ns)
{
    char size[32], count[32], life[32], rate[32];
    uint64_t rest = 0;
    uint32_t shown = 0, old = 0;
    print_title(table, profile);
    fprintf(table->to, "sites whose oldest block is of %s or more\n",
            life_text(life, sizeof life, least_ns));
    print_heading(table, "      live   blocks   oldest  grows a min  where");
    for (uint32_t i = 0; i < rows->count; i++) {
        const struct row *row = &rows->start[i];
        uint64_t bytes = row->values[VALUE_LIVE_BYTES];
        if (row->oldest_ns < least_ns || bytes == 0)
            continue;
        old++;
        if (shown == table->rows_most) {
            rest = add_bounded(rest, bytes);
            continue;
        }
        fprintf(table->to, "%10s %8s %8s %12s  ", bytes_text(size, "", bytes),
                blocks_text(count, profile, row->values[VALUE_LIVE_OBJECTS]),
                life_text(life, sizeof life, row->oldest_ns), rate_text(rate, row));
        print_place(table, profile, row, 43);
        print_freed_by(table, row, 43);
        shown++;
    }
    if (old == 0)
        fputs("none\n", table->to);
    print_end(table, profile, shown, old, rest);
}

static void print_growth(const struct table *table, const struct profile *profile,
                         const struct row *row, double seconds)
{
    char growth[32], rate[32], size[32], life[32];
    int64_t grown = row_growth(row);
    double a_second = (double)(grown < 0 ? -grown : grown) / seconds;
    if (seconds > 0)
        snprintf(size, sizeof size, "%.28s/s",
                 bytes_text(rate, grown < 0 ? "-" : "+", bounded(a_second)));
    else
        bytes_text(size, "", row->before_bytes);
    fprintf(table->to, "%11s %13s %10s  ", growth_text(growth, grown), size,
            bytes_text(rate, "", row->values[VALUE_LIVE_BYTES]));
    if (seconds > 0)
        fprintf(table->to, "%7s  ",
                row->oldest_ns > 0 ? life_text(life, sizeof life, row->oldest_ns) : "-");
    print_place(table, profile, row, seconds > 0 ? 47 : 38);
}

void table_growth(const struct table *table, const struct rows *rows, const struct profile *profile,
                  double seconds)
{
    uint64_t grown = 0, shrunk = 0;
    uint32_t shown = 0, count = 0;
    uint64_t rest = 0;
    char plus[32], minus[32];
    for (uint32_t i = 0; i < rows->count; i++) {
        int64_t growth = row_growth(&rows->start[i]);
        if (growth > 0)
            grown = add_bounded(grown, (uint64_t)growth);
        else
            shrunk = add_bounded(shrunk, 0 - (uint64_t)growth);
    }
    print_title(table, profile);
    fprintf(table->to, "%s where it grew, %s where it shrank\n",
            bytes_text(plus, grown > 0 ? "+" : "", grown),
            bytes_text(minus, shrunk > 0 ? "-" : "", shrunk));
    print_heading(table, seconds > 0 ? "       grew      a second       live   oldest  where"
                                     : "       grew        before        now  where");
    for (uint32_t i = 0; i < rows->count; i++) {
        int64_t growth = row_growth(&rows->start[i]);
        if (growth == 0)
            continue;
        count++;
        if (shown < table->rows_most) {
            print_growth(table, profile, &rows->start[i], seconds);
            shown++;
        } else {
            rest = add_bounded(rest, growth > 0 ? (uint64_t)growth : 0);
        }
    }
    if (count == 0)
        fputs("nothing\n", table->to);
    print_end(table, profile, shown, count, rest);
}
