/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "command.h"
#include "conf/conf_value.h"
#include "profiles/rows.h"
#include "profiles/source.h"
#include "words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct wish {
    const char *process;
    double seconds;
    uint64_t most_bytes; /* of growth, for status 0 */
    bool is_all;
};

static double now_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void sleep_until(double until)
{
    struct timespec when = {.tv_sec = (time_t)until};
    when.tv_nsec = (long)((until - (double)when.tv_sec) * 1e9);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) != 0)
        continue;
}

/* "30" or "30s"; 0: it is none. */
static double seconds_from(const char *text)
{
    char *end;
    double seconds = strtod(text, &end);
    bool is_right = end != text && (*end == '\0' || strcmp(end, "s") == 0);
    return is_right && seconds >= 0.1 && seconds <= 86400 ? seconds : 0;
}

static bool bytes_from(const char *text, uint64_t *bytes)
{
    static const struct conf_row row = {.kind = CONF_KIND_BYTES, .most = INT64_MAX};
    int64_t number;
    if (!hak_conf_parse(&row, text, strlen(text), &number))
        return false;
    *bytes = (uint64_t)number;
    return true;
}

static int understand(struct wish *wish, char **words)
{
    const char *most = NULL;
    const struct word_option options[] = {
        {"--all", &wish->is_all, NULL}, {"--most", NULL, &most}, {0}};
    int status = words_read("growth", words, options);
    if (status != EXIT_DONE)
        return status;
    if (most != NULL && !bytes_from(most, &wish->most_bytes))
        return complain(EXIT_USAGE, "growth: --most takes a size, such as 512K or 16M");
    if (words[0] == NULL || words[1] == NULL)
        return complain_usage("growth");
    wish->process = words[0];
    wish->seconds = seconds_from(words[1]);
    if (wish->seconds == 0)
        return complain(EXIT_USAGE,
                        "growth: SECONDS is 0.1 to 86400 seconds, such as 30 or 30s, not '%.60s'",
                        words[1]);
    if (words[2] != NULL)
        return complain_word("growth", words[2]);
    if (process_number_from(words[0]) == 0)
        return complain(EXIT_USAGE, "growth: '%.60s' is not a process id", words[0]);
    return EXIT_DONE;
}

static int report(const struct wish *wish, struct source *now, const struct rows *before,
                  const struct profile *before_profile, double seconds)
{
    struct rows rows;
    struct table table;
    uint64_t grown = 0;
    rows_make(&rows, &now->profile, BY_LINE);
    rows_compare(&rows, &now->profile, before, before_profile);
    rows_sort(&rows, ORDER_GROWTH);
    for (uint32_t i = 0; i < rows.count; i++)
        if (row_growth(&rows.start[i]) > 0)
            grown = add_bounded(grown, (uint64_t)row_growth(&rows.start[i]));
    table_begin(&table);
    if (wish->is_all)
        table.rows_most = UINT32_MAX;
    table_growth(&table, &rows, &now->profile, seconds);
    if (!now->is_alive)
        puts("the process has ended");
    rows_free(&rows);
    return grown > wish->most_bytes ? EXIT_GREW : EXIT_DONE;
}

/* Why there is no second profile. */
static int complain_end(const struct source *now)
{
    if (now->is_absent && !now->is_alive)
        return complain(EXIT_FAILED, "growth: process %d ended meanwhile, and left no profile",
                        now->pid);
    return complain(EXIT_FAILED, "growth: %s", now->wrong);
}

static int watch(const struct wish *wish, struct source *before)
{
    double start = now_seconds();
    struct rows rows;
    struct source now;
    int status;
    source_name(before, NAMES_FOR_ALL);
    rows_make(&rows, &before->profile, BY_LINE);
    sleep_until(start + wish->seconds);
    double seconds = now_seconds() - start;
    if (source_try(&now, wish->process)) {
        source_name(&now, NAMES_FOR_ALL);
        status = report(wish, &now, &rows, &before->profile, seconds);
    } else {
        status = complain_end(&now);
    }
    source_end(&now);
    rows_free(&rows);
    return status;
}

int command_growth(int argument_count, char **arguments)
{
    (void)argument_count;
    struct wish wish = {.most_bytes = UINT64_MAX};
    int status = understand(&wish, arguments + 1);
    if (status != EXIT_DONE)
        return status;
    struct source before;
    status = EXIT_FAILED;
    if (source_read(&before, "growth", wish.process)) {
        status = before.is_alive ? watch(&wish, &before)
                                 : complain(EXIT_FAILED,
                                            "growth: process %d has ended; "
                                            "hakmem autopsy shows what it left",
                                            before.pid);
    }
    source_end(&before);
    return status;
}
