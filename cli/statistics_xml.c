/* SPDX-License-Identifier: MIT */
#include "statistics.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* The XML that malloc_info writes: elements without text, of which those inside <hakmem> count. */

enum { ATTRIBUTES_MOST = 16 };

struct attribute {
    char name[REPORT_NAME_BYTES];
    char value[REPORT_NAME_BYTES];
};

struct element {
    char name[REPORT_NAME_BYTES];
    struct attribute attributes[ATTRIBUTES_MOST];
    int count;
};

/* Attributes of a size class, and the ends of their names in the raw form. */
static const struct {
    const char *attribute;
    const char *name;
} class_names[] = {{"slabs", "slabs"},       {"live", "live_blocks"},   {"cached", "cached_blocks"},
                   {"free", "free_blocks"},  {"taken", "taken_blocks"}, {"popped", "popped_blocks"},
                   {"requests", "requests"}, {"reallocs", "reallocs"}};

static bool fail_cut(struct reader *reader)
{
    return reader_fail(reader, "is XML that is cut, or no statistics");
}

/* Reads letters up to what is none of a name, or to a quotation mark; what is long is cut. */
static void read_word(struct reader *reader, char *word, bool is_quoted)
{
    size_t bytes = 0;
    for (; reader->at < reader->end && *reader->at != '\n'; reader->at++) {
        char letter = *reader->at;
        bool is_name = isalnum((unsigned char)letter) || letter == '_' || letter == '/';
        if (is_quoted ? letter == '"' : !is_name)
            break;
        if (bytes < REPORT_NAME_BYTES - 1)
            word[bytes++] = letter;
    }
    word[bytes] = '\0';
}

static bool take(struct reader *reader, const char *word)
{
    if (!reader_sees(reader, word))
        return false;
    reader->at += strlen(word);
    return true;
}

/* Reads `<name a="b" ...>`, with or without a slash at either end. */
static bool read_element(struct reader *reader, struct element *element)
{
    element->count = 0;
    reader_skip_space(reader);
    if (!take(reader, "<"))
        return fail_cut(reader);
    read_word(reader, element->name, false);
    for (;;) {
        reader_skip_space(reader);
        if (take(reader, ">") || take(reader, "/>"))
            return true;
        if (element->count == ATTRIBUTES_MOST)
            return fail_cut(reader);
        struct attribute *attribute = &element->attributes[element->count++];
        read_word(reader, attribute->name, false);
        if (*attribute->name == '\0' || !take(reader, "=\""))
            return fail_cut(reader);
        read_word(reader, attribute->value, true);
        if (!take(reader, "\""))
            return fail_cut(reader);
    }
}

static const char *find(const struct element *element, const char *name)
{
    for (int i = 0; i < element->count; i++)
        if (strcmp(element->attributes[i].name, name) == 0)
            return element->attributes[i].value;
    return "";
}

static bool add(struct reader *reader, struct report *report, const char *name, const char *text)
{
    struct reader digits = {.at = text, .end = text + strlen(text)};
    uint64_t value;
    if (!reader_number(&digits, &value) || digits.at != digits.end)
        return reader_fail(reader, "has something else where a number should be");
    return report_add(reader, report, name, value);
}

static bool add_class(struct reader *reader, struct report *report, const struct element *element)
{
    char name[3 * REPORT_NAME_BYTES];
    for (size_t i = 0; i < sizeof class_names / sizeof *class_names; i++) {
        const char *value = find(element, class_names[i].attribute);
        snprintf(name, sizeof name, "class_%s_%s", find(element, "size"), class_names[i].name);
        if (*value != '\0' && !add(reader, report, name, value))
            return false;
    }
    return true;
}

/* A cache or a heap: its first attribute says which. */
static bool add_member(struct reader *reader, struct report *report, const struct element *element,
                       const char *kind)
{
    char name[3 * REPORT_NAME_BYTES];
    for (int i = 1; i < element->count; i++) {
        const struct attribute *attribute = &element->attributes[i];
        snprintf(name, sizeof name, "%s_%s_%s", kind, element->attributes[0].value,
                 attribute->name);
        if (!add(reader, report, name, attribute->value))
            return false;
    }
    return true;
}

static bool add_element(struct reader *reader, struct report *report, const struct element *element)
{
    if (strcmp(element->name, "counter") == 0)
        return add(reader, report, find(element, "name"), find(element, "value"));
    if (strcmp(element->name, "class") == 0)
        return add_class(reader, report, element);
    if (strcmp(element->name, "cache") == 0 && element->count > 0)
        return add_member(reader, report, element, element->attributes[0].name);
    if (strcmp(element->name, "heap") == 0 && element->count > 0)
        return add_member(reader, report, element, "heap");
    if (strcmp(element->name, "rseq") == 0)
        return report_add_reason(reader, report, find(element, "reason"));
    return true;
}

bool report_read_xml(struct reader *reader, struct report *report)
{
    struct element element;
    bool is_own = false;
    do {
        if (!read_element(reader, &element))
            return false;
        if (is_own && !add_element(reader, report, &element))
            return false;
        is_own =
            (is_own || strcmp(element.name, "hakmem") == 0) && strcmp(element.name, "/hakmem") != 0;
    } while (strcmp(element.name, "/malloc") != 0);
    return report->count > 0 || reader_fail(reader, "ends XML that is not hakmem's");
}
