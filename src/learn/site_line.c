/* SPDX-License-Identifier: MIT */
#include "learn/site_line.h"

#include "base/bits.h"
#include "learn/line_reader.h"

#include <string.h>

static bool is_of_name(char letter)
{
    return letter > ' ' && letter < 0x7f && letter != '+' && letter != '@';
}

static void read_module(struct line_reader *reader, char *name)
{
    size_t used = 0;
    while (reader->at < reader->end && is_of_name(*reader->at) && used < HAK_SITE_MODULE_BYTES - 1)
        name[used++] = *reader->at++;
    name[used] = '\0';
    if (used == 0 || strcmp(name, "-") == 0)
        reader->is_right = false;
}

static void read_place(struct line_reader *reader, struct site_place *place)
{
    read_module(reader, place->module);
    hak_line_read_word(reader, "+0x");
    place->offset = hak_line_read_number(reader, 16, HAK_SITE_OFFSET_MOST);
    if (!reader->is_right || reader->at == reader->end || *reader->at != '@')
        return;
    reader->at++;
    place->build_id = hak_line_read_number(reader, 16, UINT64_MAX);
    if (place->build_id == 0)
        reader->is_right = false; /* it is left out then */
}

static enum rule_state read_state(struct line_reader *reader)
{
    for (int i = 0; i < RULE_STATES; i++) {
        const char *word = hak_rule_state_word((enum rule_state)i);
        size_t bytes = strlen(word);
        if ((size_t)(reader->end - reader->at) > bytes && memcmp(reader->at, word, bytes) == 0 &&
            reader->at[bytes] == ' ') {
            reader->at += bytes;
            return (enum rule_state)i;
        }
    }
    reader->is_right = false;
    return RULE_WATCHED;
}

static bool is_any(const struct line_reader *reader)
{
    return reader->end - reader->at >= 2 && reader->at[0] == '-' && reader->at[1] == '\n';
}

static void read_callers(struct line_reader *reader, struct site_line *line)
{
    read_place(reader, &line->places[1]);
    for (uint32_t i = 2; i < HAK_SITE_FRAMES && reader->at < reader->end && *reader->at == ' ';
         i++) {
        reader->at++;
        read_place(reader, &line->places[i]);
    }
}

size_t hak_site_line_read(struct site_line *line, const char *text, size_t bytes)
{
    struct line_reader reader = {text, text + hak_least(bytes, HAK_SITE_LINE_BYTES), true};
    memset(line, 0, sizeof *line);
    hak_line_read_word(&reader, "site ");
    line->state = read_state(&reader);
    hak_line_read_word(&reader, " ");
    line->block_bytes = (uint32_t)hak_line_read_number(&reader, 10, HAK_LEARNED_BLOCK_BYTES_MOST);
    hak_line_read_word(&reader, " ");
    line->judged = (uint32_t)hak_line_read_number(&reader, 10, HAK_SITE_COUNT_MOST);
    hak_line_read_word(&reader, " ");
    line->survivors = (uint32_t)hak_line_read_number(&reader, 10, line->judged);
    hak_line_read_word(&reader, " ");
    read_place(&reader, &line->places[0]);
    hak_line_read_word(&reader, " ");
    if (is_any(&reader))
        hak_line_read_word(&reader, "-");
    else
        read_callers(&reader, line);
    hak_line_read_word(&reader, "\n");
    if (reader.is_right)
        return (size_t)(reader.at - text);
    memset(line, 0, sizeof *line);
    return 0;
}

static bool is_nowhere(const struct site_place *place)
{
    return place->module[0] == '\0';
}

static void write_place(struct text *text, const struct site_place *place)
{
    if (is_nowhere(place)) {
        hak_text_add(text, "-");
        return;
    }
    hak_text_add(text, place->module);
    hak_text_add(text, "+0x");
    hak_text_add_number(text, place->offset, 16);
    if (place->build_id == 0)
        return;
    hak_text_add(text, "@");
    hak_text_add_number(text, place->build_id, 16);
}

void hak_site_line_write(struct text *text, const struct site_line *line)
{
    hak_text_add(text, "site ");
    hak_text_add(text, hak_rule_state_word(line->state));
    hak_text_add(text, " ");
    hak_text_add_number(text, line->block_bytes, 10);
    hak_text_add(text, " ");
    hak_text_add_number(text, line->judged, 10);
    hak_text_add(text, " ");
    hak_text_add_number(text, line->survivors, 10);
    for (uint32_t i = 0; i < 2 || (i < HAK_SITE_FRAMES && !is_nowhere(&line->places[i])); i++) {
        hak_text_add(text, " ");
        write_place(text, &line->places[i]);
    }
    hak_text_add(text, "\n");
}

bool hak_site_place_read(struct site_place *place, const char *text)
{
    struct line_reader reader = {text, text + strlen(text), true};
    memset(place, 0, sizeof *place);
    read_place(&reader, place);
    return reader.is_right && reader.at == reader.end;
}

void hak_site_module_name(char *name, const char *path)
{
    const char *last = strrchr(path, '/');
    size_t used = 0;
    for (last = last == NULL ? path : last + 1; *last != '\0' && used < HAK_SITE_MODULE_BYTES - 1;
         last++)
        name[used++] = is_of_name(*last) ? *last : '?';
    if (used == 0 || (used == 1 && name[0] == '-'))
        name[0] = '?', used = 1;
    name[used] = '\0';
}

static bool is_same_place(const struct site_place *left, const struct site_place *right)
{
    return strcmp(left->module, right->module) == 0 && left->offset == right->offset &&
           (left->build_id == right->build_id || left->build_id == 0 || right->build_id == 0);
}

/* Of so many places, innermost first. */
static bool is_same_from(const struct site_line *left, const struct site_line *right,
                         uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!is_same_place(&left->places[i], &right->places[i]))
            return false;
    return left->block_bytes == right->block_bytes;
}

bool hak_site_line_is_same(const struct site_line *left, const struct site_line *right)
{
    return is_same_from(left, right, HAK_SITE_FRAMES);
}

bool hak_site_line_lasts(const struct site_line *line)
{
    for (uint32_t i = 0; i < HAK_SITE_FRAMES; i++)
        if (strcmp(line->places[i].module, "?") == 0)
            return false;
    return true;
}

bool hak_site_line_is_said(const struct site_line *line)
{
    return line->state == RULE_PINNED || line->state == RULE_FORBIDDEN;
}

bool hak_site_line_is_above(const struct site_line *line, const struct site_line *wrapper)
{
    uint32_t count = 1;
    while (count < HAK_SITE_FRAMES && !is_nowhere(&wrapper->places[count]))
        count++;
    return count < HAK_SITE_FRAMES && !is_nowhere(&line->places[count]) &&
           is_same_from(line, wrapper, count);
}
