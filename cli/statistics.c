/* SPDX-License-Identifier: MIT */
#include "statistics.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool report_add(struct report *report, const char *name, uint64_t value)
{
    if (report->count == report->room) {
        size_t room = report->room * 2 + 64;
        struct number *numbers = realloc(report->numbers, room * sizeof *numbers);
        if (numbers == NULL)
            return false;
        report->numbers = numbers;
        report->room = room;
    }
    struct number *number = &report->numbers[report->count++];
    snprintf(number->name, sizeof number->name, "%s", name);
    number->value = value;
    return true;
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

/* Reads `name: value` up to the end of its line; false: it is none. */
static bool read_line(struct reader *reader, char *name, uint64_t *value)
{
    const char *at = reader->at;
    size_t bytes = 0;
    while (at < reader->end && is_name_letter(*at) && bytes < REPORT_NAME_BYTES - 1)
        name[bytes++] = *at++;
    name[bytes] = '\0';
    if (bytes == 0 || reader->end - at < 3 || at[0] != ':' || at[1] != ' ')
        return false;
    at += 2;
    if (!isdigit((unsigned char)*at))
        return false;
    *value = 0;
    for (; at < reader->end && isdigit((unsigned char)*at); at++)
        if (__builtin_mul_overflow(*value, 10, value) ||
            __builtin_add_overflow(*value, (uint64_t)(*at - '0'), value))
            return false;
    if (at < reader->end && *at != '\n')
        return false;
    reader->at = at < reader->end ? at + 1 : at;
    return true;
}

static bool fail(struct reader *reader, const char *what)
{
    reader->wrong = what;
    return false;
}

/* A report ends where the next one begins: with the process, or with an object. */
static bool read_text(struct reader *reader, struct report *report)
{
    char name[REPORT_NAME_BYTES];
    uint64_t value;
    while (reader->at < reader->end) {
        struct reader before = *reader;
        if (report->count > 0 && (*reader->at == '{' || *reader->at == '\n'))
            return true;
        if (!read_line(reader, name, &value))
            return fail(reader, "is not `name: value`");
        if (report->count > 0 && strcmp(name, report->numbers[0].name) == 0) {
            *reader = before;
            return true;
        }
        if (!report_add(report, name, value))
            return fail(reader, "no memory for it");
        reader->line++;
    }
    return true;
}

bool report_read(struct reader *reader, struct report *report)
{
    while (reader->at < reader->end && isspace((unsigned char)*reader->at))
        reader->line += *reader->at++ == '\n';
    if (reader->at == reader->end)
        return false;
    if (*reader->at == '{')
        return report_read_json(reader, report);
    if (*reader->at == '<')
        return fail(reader, "is XML; this command reads text and JSON");
    if (*reader->at == '#')
        return fail(reader, "is OpenMetrics; this command reads text and JSON");
    return read_text(reader, report);
}
