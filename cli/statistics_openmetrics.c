/* SPDX-License-Identifier: MIT */
#include "statistics.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* The samples of one process; comments are passed over, and the last one is the end. */

#define PREFIX "hakmem_"
#define TOTAL "_total"
#define END "# EOF"
#define NS_DIGITS 9

/* What a sample is called: hakmem_NAME{LABEL="OF"}. */
struct sample {
    char name[REPORT_NAME_BYTES];
    char label[REPORT_NAME_BYTES];
    char of[REPORT_NAME_BYTES];
};

static bool fail_sample(struct reader *reader)
{
    return reader_fail(reader, "is no sample of OpenMetrics that hakmem writes");
}

static bool take(struct reader *reader, const char *word)
{
    if (!reader_sees(reader, word))
        return false;
    reader->at += strlen(word);
    return true;
}

/* Reads up to one of `ends`, in this line; what is long is cut. */
static bool read_until(struct reader *reader, const char *ends, char *word)
{
    size_t bytes = 0;
    for (; reader->at < reader->end && *reader->at != '\n' && *reader->at != '\0'; reader->at++) {
        if (strchr(ends, *reader->at) != NULL) {
            word[bytes] = '\0';
            return true;
        }
        if (bytes < REPORT_NAME_BYTES - 1)
            word[bytes++] = *reader->at;
    }
    return false;
}

/* Of several labels the last one counts. */
static bool read_labels(struct reader *reader, struct sample *sample)
{
    *sample->label = *sample->of = '\0';
    if (!take(reader, "{"))
        return true;
    do {
        if (!read_until(reader, "=", sample->label) || !take(reader, "=\"") ||
            !read_until(reader, "\"", sample->of) || !take(reader, "\""))
            return false;
        if (strcmp(sample->label, "pid") == 0)
            return reader_fail(reader, "is of one of many processes: this command reads one");
    } while (take(reader, ","));
    return take(reader, "}");
}

/* A whole number, or seconds as nanoseconds. */
static bool read_value(struct reader *reader, uint64_t *value)
{
    if (!reader_number(reader, value))
        return false;
    if (take(reader, ".")) {
        for (int i = 0; i < NS_DIGITS; i++) {
            bool is_digit = reader->at < reader->end && isdigit((unsigned char)*reader->at);
            uint64_t digit = is_digit ? (uint64_t)(*reader->at++ - '0') : 0;
            if (__builtin_mul_overflow(*value, 10, value) ||
                __builtin_add_overflow(*value, digit, value))
                return false;
        }
    }
    return take(reader, "\n");
}

static bool begins_with(const char *name, const char *beginning)
{
    return strncmp(name, beginning, strlen(beginning)) == 0;
}

/* The name in the raw form. */
static void name_raw(const struct sample *sample, char name[3 * REPORT_NAME_BYTES])
{
    const size_t bytes = 3 * REPORT_NAME_BYTES;
    const char *rest = strchr(sample->name, '_');
    rest = rest == NULL ? "" : rest + 1;
    if (strcmp(sample->label, "size") == 0 && begins_with(sample->name, "class_"))
        snprintf(name, bytes, "class_%s_%s", sample->of, rest);
    else if (strcmp(sample->name, "lock_waits") == 0)
        snprintf(name, bytes, "waits_%s", sample->of);
    else if (strcmp(sample->name, "lock_waited_seconds") == 0)
        snprintf(name, bytes, "waited_ns_%s", sample->of);
    else if (begins_with(sample->name, "cache_") || strcmp(sample->label, "heap") == 0)
        snprintf(name, bytes, "%s_%s_%s", sample->label, sample->of, rest);
    else
        snprintf(name, bytes, "%s", sample->name);
}

static bool read_sample(struct reader *reader, struct report *report)
{
    struct sample sample;
    char name[3 * REPORT_NAME_BYTES];
    uint64_t value;
    if (!take(reader, PREFIX) || !read_until(reader, "{ ", sample.name) ||
        !read_labels(reader, &sample) || !take(reader, " ") || !read_value(reader, &value))
        return fail_sample(reader);
    reader->line++;
    size_t length = strlen(sample.name);
    if (length > strlen(TOTAL) && strcmp(sample.name + length - strlen(TOTAL), TOTAL) == 0)
        sample.name[length - strlen(TOTAL)] = '\0';
    if (strcmp(sample.name, "build_info") == 0)
        return true;
    if (strcmp(sample.name, "rseq_info") == 0)
        return report_add_reason(reader, report, sample.of);
    name_raw(&sample, name);
    name[REPORT_NAME_BYTES - 1] = '\0';
    return report_add(reader, report, name, value);
}

bool report_read_openmetrics(struct reader *reader, struct report *report)
{
    while (reader->at < reader->end) {
        bool is_end = reader_sees(reader, END);
        if (*reader->at != '#') {
            if (!read_sample(reader, report))
                return false;
            continue;
        }
        const char *newline = memchr(reader->at, '\n', (size_t)(reader->end - reader->at));
        if (newline == NULL)
            break;
        reader->at = newline + 1;
        reader->line++;
        if (is_end)
            return report->count > 0 || reader_fail(reader, "ends metrics that are not hakmem's");
    }
    return reader_fail(reader, "is missing: the metrics are truncated before # EOF");
}
