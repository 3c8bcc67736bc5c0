/* SPDX-License-Identifier: MIT */
#include "conf/conf.h"

#include "base/bits.h"
#include "os/stderr.h"

#include <stdlib.h>
#include <string.h>

struct conf hak_conf = {
    .number =
        {
#define X(name, kind, initial, least, most, choices, meaning) (int64_t)(initial),
            HAK_CONF_TABLE(X)
#undef X
        },
};

HAK_AT_HAND static bool abort_when_wrong;

static void add_clean(struct text *text, char letter)
{
    hak_text_add_bytes(text, letter >= ' ' && letter <= '~' ? &letter : "?", 1);
}

/* Adds where the setting was found (a variable, a line of the file, HAKMEM_CONF or hakmem_conf) and
 * its name as it was typed, which need not be text. */
static void add_place(struct text *text, const struct conf_pair *pair, enum conf_source source)
{
    bool is_file = source == CONF_FILE;
    hak_text_add(text, "hakmem: ");
    if (source == CONF_VARIABLE) {
        hak_text_add(text, "HAKMEM_");
    } else {
        hak_text_add(text, hak_conf_source_name(source));
        hak_text_add(text, is_file ? ":" : "");
        if (is_file)
            hak_text_add_number(text, pair->line, 10);
        hak_text_add(text, ": ");
    }
    for (size_t i = 0; i < hak_least(pair->name_bytes, 64); i++)
        add_clean(text, pair->name[i]);
}

/* A wrong value is repeated in part: it may be long, and need not be text. */
static void add_quoted(struct text *text, const char *value, size_t value_bytes)
{
    hak_text_add(text, "'");
    for (size_t i = 0; i < hak_least(value_bytes, 40); i++)
        add_clean(text, value[i]);
    hak_text_add(text, value_bytes > 40 ? "...'" : "'");
}

static void say(struct text *text)
{
    hak_os_stderr_line(text);
    if (abort_when_wrong)
        abort();
}

static void report_value(const struct conf_pair *pair, enum conf_source source,
                         const struct conf_row *row)
{
    char line[512];
    struct text text = {.start = line, .bytes = sizeof line};
    add_place(&text, pair, source);
    hak_text_add(&text, ": bad value ");
    add_quoted(&text, pair->value, pair->value_bytes);
    hak_text_add(&text, ", accepted: ");
    hak_conf_add_range(&text, row);
    say(&text);
}

static void report_no_value(const struct conf_pair *pair, enum conf_source source)
{
    char line[512];
    struct text text = {.start = line, .bytes = sizeof line};
    add_place(&text, pair, source);
    hak_text_add(&text, ": no value given");
    say(&text);
}

static void report_no_name(const struct conf_pair *pair, enum conf_source source)
{
    char line[512];
    struct text text = {.start = line, .bytes = sizeof line};
    add_place(&text, pair, source);
    hak_text_add(&text, "no name given for value ");
    add_quoted(&text, pair->value, pair->value_bytes);
    say(&text);
}

static void report_unknown(const struct conf_pair *pair, enum conf_source source)
{
    char line[512];
    struct text text = {.start = line, .bytes = sizeof line};
    enum conf_option nearest = hak_conf_nearest(pair->name, pair->name_bytes);
    add_place(&text, pair, source);
    hak_text_add(&text, ": there is no such option");
    if (nearest != CONF_COUNT) {
        hak_text_add(&text, "; the nearest is ");
        hak_text_add(&text, hak_conf_rows[nearest].name);
    }
    say(&text);
}

void hak_conf_tell_file(const char *path, const char *what)
{
    char line[512];
    struct text text = {.start = line, .bytes = sizeof line};
    hak_text_add(&text, "hakmem: ");
    hak_text_add(&text, path);
    hak_text_add(&text, ": ");
    hak_text_add(&text, what);
    hak_os_stderr_line(&text);
}

void hak_conf_report_file(const char *path, const char *what)
{
    hak_conf_tell_file(path, what);
    if (abort_when_wrong)
        abort();
}

void hak_conf_be_strict(bool is_strict)
{
    if (abort_when_wrong != is_strict) /* else a page is copied for it */
        abort_when_wrong = is_strict;
}

static void add_value(struct text *text, int option)
{
    int64_t number = __atomic_load_n(&hak_conf.number[option], __ATOMIC_RELAXED);
    hak_conf_add_value(text, &hak_conf_rows[option], number, hak_conf.text[option]);
}

const char *hak_conf_source_name(enum conf_source source)
{
    static const char *const names[CONF_SOURCE_COUNT] = {
        "built-in",    "price",       "mode",        HAK_CONF_PATH,
        "hakmem_conf", "HAKMEM_CONF", "environment", "while running"};
    return names[source];
}

void hak_conf_show(void)
{
    for (int i = 0; i < CONF_COUNT; i++) {
        char line[512];
        struct text text = {.start = line, .bytes = sizeof line};
        hak_text_add(&text, "hakmem: ");
        hak_text_add(&text, hak_conf_rows[i].name);
        hak_text_add(&text, "=");
        add_value(&text, i);
        hak_text_add(&text, " (");
        hak_text_add(&text, hak_conf_source_name((enum conf_source)hak_conf.source[i]));
        hak_text_add(&text, ")");
        hak_os_stderr_line(&text);
    }
}

bool hak_conf_wants_fence(void)
{
    const char *which = hak_conf_text(fence);
    return *which != '\0' && strcmp(which, "none") != 0;
}

enum conf_option hak_conf_find(const char *name)
{
    return hak_conf_find_bytes(name, strlen(name));
}

bool hak_conf_change(enum conf_option option, const char *value)
{
    const struct conf_row *row = &hak_conf_rows[option];
    int64_t number;
    if (row->kind == CONF_KIND_TEXT || !hak_conf_parse(row, value, strlen(value), &number))
        return false;
    __atomic_store_n(&hak_conf.number[option], number, __ATOMIC_RELAXED);
    __atomic_store_n(&hak_conf.source[option], CONF_RUNNING, __ATOMIC_RELAXED);
    return true;
}

void hak_conf_lower(enum conf_option option, int64_t number)
{
    __atomic_store_n(&hak_conf.number[option], number, __ATOMIC_RELAXED);
}

bool hak_conf_read(enum conf_option option, char *value, size_t value_bytes)
{
    if (value_bytes == 0)
        return false;
    struct text text = {.start = value, .bytes = value_bytes};
    add_value(&text, (int)option);
    if (text.used == value_bytes)
        return false;
    value[text.used] = '\0';
    return true;
}

bool hak_conf_set_pair(const struct conf_pair *pair, enum conf_source source)
{
    if (pair->value == NULL) {
        report_no_value(pair, source);
        return false;
    }
    enum conf_option option = hak_conf_find_bytes(pair->name, pair->name_bytes);
    if (option == CONF_COUNT) {
        if (pair->name_bytes == 0 && source != CONF_VARIABLE)
            report_no_name(pair, source);
        else
            report_unknown(pair, source);
        return false;
    }
    const struct conf_row *row = &hak_conf_rows[option];
    int64_t number;
    if (!hak_conf_parse(row, pair->value, pair->value_bytes, &number)) {
        report_value(pair, source, row);
        return false;
    }
    hak_conf.number[option] = number;
    hak_conf.source[option] = (uint8_t)source;
    if (row->kind == CONF_KIND_TEXT) {
        memcpy(hak_conf.text[option], pair->value, pair->value_bytes);
        hak_conf.text[option][pair->value_bytes] = '\0';
    }
    return true;
}

bool hak_conf_set(const char *name, size_t name_bytes, const char *value, size_t value_bytes,
                  enum conf_source source)
{
    struct conf_pair pair = {
        .name = name, .name_bytes = name_bytes, .value = value, .value_bytes = value_bytes};
    return hak_conf_set_pair(&pair, source);
}
