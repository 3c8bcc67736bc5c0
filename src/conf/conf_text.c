/* SPDX-License-Identifier: MIT */
#include "conf/conf_text.h"

#include <string.h>

static bool is_space(char letter)
{
    return letter == ' ' || letter == '\t' || letter == '\r';
}

/* Cuts white space from both ends of [*from, *to). */
static void trim(const char **from, const char **to)
{
    while (*from < *to && is_space(**from))
        (*from)++;
    while (*from < *to && is_space((*to)[-1]))
        (*to)--;
}

/* Where a comment begins, or `end`: '#' at the start of the line or after white space, so that
 * names of files may have one. */
static const char *find_comment(const char *start, const char *end)
{
    for (const char *at = start; at < end; at++)
        if (*at == '#' && (at == start || is_space(at[-1])))
            return at;
    return end;
}

/* The first `letter` in [start, end), or `end`. */
static const char *find_letter(const char *start, const char *end, char letter)
{
    const char *found = start < end ? memchr(start, letter, (size_t)(end - start)) : NULL;
    return found != NULL ? found : end;
}

bool hak_conf_split(const char *start, const char *end, struct conf_pair *pair)
{
    trim(&start, &end);
    if (start == end)
        return false;
    const char *equals = find_letter(start, end, '=');
    const char *middle = find_letter(start, equals, ':');
    const char *name_end = middle;
    const char *value = middle < end ? middle + 1 : end;
    pair->name = start;
    trim(&pair->name, &name_end);
    pair->name_bytes = (size_t)(name_end - pair->name);
    trim(&value, &end);
    pair->value = middle < end ? value : NULL;
    pair->value_bytes = (size_t)(end - value);
    return true;
}

bool hak_conf_next_line(struct conf_text *text, struct conf_pair *pair)
{
    while (text->at < text->end) {
        const char *start = text->at;
        const char *line_end = find_letter(start, text->end, '\n');
        text->at = line_end < text->end ? line_end + 1 : text->end;
        text->line++;
        pair->line = text->line;
        if (hak_conf_split(start, find_comment(start, line_end), pair))
            return true;
    }
    return false;
}

bool hak_conf_next_packed(struct conf_text *text, struct conf_pair *pair)
{
    while (text->at < text->end) {
        const char *start = text->at;
        const char *end = find_letter(start, text->end, ',');
        text->at = end < text->end ? end + 1 : text->end;
        pair->line = 0;
        if (hak_conf_split(start, end, pair))
            return true;
    }
    return false;
}
