/* SPDX-License-Identifier: MIT */
#include "conf/conf.h"

#include "base/bits.h"
#include "os/os.h"

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

static bool abort_when_wrong;

static bool is_word(const char *value, size_t bytes, const char *word)
{
    return strlen(word) == bytes && memcmp(value, word, bytes) == 0;
}

/* HAKMEM_<NAME>, however the name was written. */
static void add_variable(struct text *text, const char *name, size_t name_bytes)
{
    hak_text_add(text, "HAKMEM_");
    for (size_t i = 0; i < hak_least(name_bytes, 64); i++) {
        char upper = name[i] >= 'a' && name[i] <= 'z' ? (char)(name[i] - 'a' + 'A') : name[i];
        hak_text_add_bytes(text, &upper, 1);
    }
}

/* A wrong value is repeated in part: it may be long, and need not be text. */
static void add_quoted(struct text *text, const char *value, size_t value_bytes)
{
    hak_text_add(text, "'");
    for (size_t i = 0; i < hak_least(value_bytes, 40); i++)
        hak_text_add_bytes(text, value[i] >= ' ' && value[i] <= '~' ? &value[i] : "?", 1);
    hak_text_add(text, value_bytes > 40 ? "...'" : "'");
}

static void say(struct text *text)
{
    text->start[text->used++] = '\n';
    hak_os_write(2, text->start, text->used);
    if (abort_when_wrong)
        abort();
}

static void report_value(const struct conf_row *row, const char *value, size_t value_bytes)
{
    char line[512];
    struct text text = {.start = line, .bytes = sizeof line - 1};
    hak_text_add(&text, "hakmem: ");
    add_variable(&text, row->name, strlen(row->name));
    hak_text_add(&text, ": bad value ");
    add_quoted(&text, value, value_bytes);
    hak_text_add(&text, ", accepted: ");
    hak_conf_add_range(&text, row);
    say(&text);
}

static void report_name(const char *name, size_t name_bytes, const char *what)
{
    char line[512];
    struct text text = {.start = line, .bytes = sizeof line - 1};
    hak_text_add(&text, "hakmem: ");
    add_variable(&text, name, name_bytes);
    hak_text_add(&text, what);
    say(&text);
}

static void add_value(struct text *text, int option)
{
    int64_t number = __atomic_load_n(&hak_conf.number[option], __ATOMIC_RELAXED);
    hak_conf_add_value(text, &hak_conf_rows[option], number, hak_conf.text[option]);
}

void hak_conf_show(int fd)
{
    static const char *const sources[] = {"built-in", "HAKMEM_CONF", "environment"};
    for (int i = 0; i < CONF_COUNT; i++) {
        char line[512];
        struct text text = {.start = line, .bytes = sizeof line};
        hak_text_add(&text, "hakmem: ");
        hak_text_add(&text, hak_conf_rows[i].name);
        hak_text_add(&text, "=");
        add_value(&text, i);
        hak_text_add(&text, " (");
        hak_text_add(&text, sources[hak_conf.source[i]]);
        hak_text_add(&text, ")\n");
        hak_os_write(fd, line, text.used);
    }
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
    return true;
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

bool hak_conf_set(const char *name, size_t name_bytes, const char *value, size_t value_bytes,
                  enum conf_source source)
{
    enum conf_option option = hak_conf_find_bytes(name, name_bytes);
    if (option == CONF_COUNT) {
        report_name(name, name_bytes, ": there is no such option");
        return false;
    }
    const struct conf_row *row = &hak_conf_rows[option];
    int64_t number;
    if (!hak_conf_parse(row, value, value_bytes, &number)) {
        report_value(row, value, value_bytes);
        return false;
    }
    hak_conf.number[option] = number;
    hak_conf.source[option] = (uint8_t)source;
    if (row->kind == CONF_KIND_TEXT) {
        memcpy(hak_conf.text[option], value, value_bytes);
        hak_conf.text[option][value_bytes] = '\0';
    }
    return true;
}

void hak_conf_set_packed(const char *packed)
{
    while (*packed != '\0') {
        size_t bytes = strcspn(packed, ",");
        const char *colon = memchr(packed, ':', bytes);
        if (colon != NULL)
            hak_conf_set(packed, (size_t)(colon - packed), colon + 1,
                         bytes - (size_t)(colon - packed) - 1, CONF_PACKED);
        else if (bytes > 0)
            report_name(packed, bytes, ": no value is given in HAKMEM_CONF");
        packed += bytes + (packed[bytes] == ',');
    }
}

static bool is_on(const char *value)
{
    return value != NULL && strcmp(value, "1") == 0;
}

static void set_from_variable(const char *variable)
{
    static const char *const not_options[] = {"CONF", "SHOW_CONF", "ABORT_CONF"};
    const char *name = variable + strlen("HAKMEM_");
    size_t name_bytes = strcspn(name, "=");
    for (size_t i = 0; i < sizeof not_options / sizeof *not_options; i++)
        if (is_word(name, name_bytes, not_options[i]))
            return;
    if (name[name_bytes] == '=')
        hak_conf_set(name, name_bytes, name + name_bytes + 1, strlen(name + name_bytes + 1),
                     CONF_VARIABLE);
}

void hak_conf_start(void)
{
    char **environment = hak_os_environment();
    if (environment == NULL || hak_os_is_privileged())
        return;
    const char *packed = NULL;
    const char *show = NULL;
    for (char **i = environment; *i != NULL; i++) {
        if (strncmp(*i, "HAKMEM_", 7) != 0)
            continue;
        if (strncmp(*i, "HAKMEM_CONF=", 12) == 0)
            packed = *i + 12;
        else if (strncmp(*i, "HAKMEM_SHOW_CONF=", 17) == 0)
            show = *i + 17;
        else if (strncmp(*i, "HAKMEM_ABORT_CONF=", 18) == 0)
            abort_when_wrong = is_on(*i + 18);
    }
    if (packed != NULL)
        hak_conf_set_packed(packed);
    for (char **i = environment; *i != NULL; i++)
        if (strncmp(*i, "HAKMEM_", 7) == 0)
            set_from_variable(*i);
    if (is_on(show))
        hak_conf_show(2);
}
