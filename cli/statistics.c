/* SPDX-License-Identifier: MIT */
#include "statistics.h"

#include "os/rseq.h"
#include "stats/emit.h"
#include "stats/summary.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool reader_fail(struct reader *reader, const char *what)
{
    if (reader->wrong == NULL)
        reader->wrong = what;
    return false;
}

void reader_skip_space(struct reader *reader)
{
    while (reader->at < reader->end && isspace((unsigned char)*reader->at))
        reader->line += *reader->at++ == '\n';
}

bool reader_sees(const struct reader *reader, const char *word)
{
    size_t bytes = strlen(word);
    return (size_t)(reader->end - reader->at) >= bytes && memcmp(reader->at, word, bytes) == 0;
}

bool reader_number(struct reader *reader, uint64_t *value)
{
    if (reader_sees(reader, "-1")) {
        reader->at += 2;
        *value = HAK_LINE_NEVER_MS;
        return true;
    }
    const char *start = reader->at;
    *value = 0;
    for (; reader->at < reader->end && isdigit((unsigned char)*reader->at); reader->at++)
        if (__builtin_mul_overflow(*value, 10, value) ||
            __builtin_add_overflow(*value, (uint64_t)(*reader->at - '0'), value))
            return false;
    return reader->at > start;
}

bool report_add(struct reader *reader, struct report *report, const char *name, uint64_t value)
{
    if (report->count == report->room) {
        size_t room = report->room * 2 + 64;
        struct number *numbers = realloc(report->numbers, room * sizeof *numbers);
        if (numbers == NULL)
            return reader_fail(reader, "needs more memory than there is");
        report->numbers = numbers;
        report->room = room;
    }
    struct number *number = &report->numbers[report->count++];
    snprintf(number->name, sizeof number->name, "%s", name);
    number->value = value;
    number->is_known = false;
    return true;
}

bool report_add_reason(struct reader *reader, struct report *report, const char *meaning)
{
    uint32_t reason = 0;
    while (reason < RSEQ_REASON_COUNT && strcmp(hak_rseq_meaning(reason), meaning) != 0)
        reason++;
    return report_add(reader, report, "rseq_reason", reason);
}

uint64_t report_find(const struct report *report, const char *name, uint64_t otherwise)
{
    for (size_t i = 0; i < report->count; i++)
        if (strcmp(report->numbers[i].name, name) == 0)
            return report->numbers[i].value;
    return otherwise;
}

static bool is_name_letter(char letter)
{
    return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '_';
}

/* Reads `name: value` and the end of its line. */
static bool read_row(struct reader *reader, char *name, uint64_t *value)
{
    static const char wrong[] = "is not `name: value`";
    size_t bytes = 0;
    for (; reader->at < reader->end && is_name_letter(*reader->at); reader->at++)
        if (bytes < REPORT_NAME_BYTES - 1)
            name[bytes++] = *reader->at;
    name[bytes] = '\0';
    if (bytes == 0 || !reader_sees(reader, ": "))
        return reader_fail(reader, wrong);
    reader->at += strlen(": ");
    if (!reader_number(reader, value))
        return reader_fail(reader, wrong);
    if (reader->at == reader->end)
        return reader_fail(reader, "has no end: the report is truncated");
    if (*reader->at != '\n')
        return reader_fail(reader, wrong);
    reader->at++;
    reader->line++;
    return true;
}

/* The last row says how many came before. */
static bool read_raw(struct reader *reader, struct report *report)
{
    char name[REPORT_NAME_BYTES];
    uint64_t value;
    while (reader->at < reader->end) {
        if (!read_row(reader, name, &value))
            return false;
        if (strcmp(name, HAK_EMIT_RAW_LAST) == 0)
            return value == report->count ||
                   reader_fail(reader, "comes after a report that lacks rows");
        if (!report_add(reader, report, name, value))
            return false;
    }
    return reader_fail(reader, "is missing: the report is truncated");
}

/* Goes past the line. */
static void skip_line(struct reader *reader)
{
    const char *newline = memchr(reader->at, '\n', (size_t)(reader->end - reader->at));
    reader->line += newline != NULL;
    reader->at = newline == NULL ? reader->end : newline + 1;
}

/* A report for people: a summary, which ends with its advice, and mostly tables, which end with
 * what is not shown. */
static bool read_text(struct reader *reader, struct report *report)
{
    bool has_advice = false, has_tables = false;
    report->text = reader->at;
    for (skip_line(reader); reader->at < reader->end; skip_line(reader)) {
        if (reader_sees(reader, HAK_SUMMARY_HEAD))
            break;
        if (reader_sees(reader, HAK_EMIT_TEXT_LAST)) {
            has_advice = true;
            has_tables = false;
            skip_line(reader);
            break;
        }
        has_advice |= reader_sees(reader, HAK_SUMMARY_LAST);
        has_tables |= has_advice && *reader->at == '\n';
    }
    report->text_bytes = (size_t)(reader->at - report->text);
    if (!has_advice || has_tables || reader->at[-1] != '\n')
        return reader_fail(reader, "is missing: the report is truncated");
    return true;
}

bool report_read(struct reader *reader, struct report *report)
{
    reader_skip_space(reader);
    if (reader->at == reader->end)
        return false;
    if (reader_sees(reader, HAK_SUMMARY_HEAD))
        return read_text(reader, report);
    if (*reader->at == '{')
        return report_read_json(reader, report);
    if (*reader->at == '<')
        return report_read_xml(reader, report);
    if (*reader->at == '#')
        return report_read_openmetrics(reader, report);
    return read_raw(reader, report);
}
