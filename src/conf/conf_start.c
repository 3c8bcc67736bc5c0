/* SPDX-License-Identifier: MIT */
#include "conf/conf.h"
#include "conf/conf_modes.h"
#include "os/os.h"
#include "os/os_file.h"
#include "os/stderr.h"

#include <string.h>

/* A file that is full of mistakes, or no settings at all, is not worth more lines than this. */
#define FILE_MISTAKES_MOST 8

/* The program's own settings, in the packed form; include/hakmem/hakmem.h tells programs of it. */
extern const char *hakmem_conf __attribute__((weak, visibility("default")));

/* Of the row that holds where nothing is set: every process reads it (HAK_TEXT_AT_HAND). */
static const char no_settings[] = "";
#define SETTINGS_AT_HAND(settings) (sizeof(settings) > 1 ? (settings) : no_settings)
static const char *const mode_rows[] = {
#define X(word, settings) SETTINGS_AT_HAND(settings),
    HAK_CONF_MODE_TABLE(X)
#undef X
};
static const char *const price_rows[] = {
#define X(word, settings) SETTINGS_AT_HAND(settings),
    HAK_CONF_PRICE_TABLE(X)
#undef X
};

static struct conf_text text_of(const char *start, size_t bytes)
{
    return (struct conf_text){.at = start, .end = start + bytes};
}

/* What some editors begin a text with, and is none of it. */
static void skip_byte_order_mark(struct conf_text *text)
{
    static const char mark[] = {'\xef', '\xbb', '\xbf'};
    if (text->end - text->at >= (ptrdiff_t)sizeof mark && memcmp(text->at, mark, sizeof mark) == 0)
        text->at += sizeof mark;
}

static void set_all_lines(const char *path, struct conf_text text)
{
    skip_byte_order_mark(&text);
    struct conf_pair pair;
    int mistakes = 0;
    while (hak_conf_next_line(&text, &pair)) {
        if (hak_conf_set_pair(&pair, CONF_FILE) || ++mistakes < FILE_MISTAKES_MOST)
            continue;
        hak_conf_report_file(path, "too many errors, the rest is not read");
        return;
    }
}

void hak_conf_read_file(const char *path)
{
    /* Threads may start with small stacks, so it is not on one; untouched without a file. */
    static char buffer[HAK_CONF_FILE_BYTES];
    size_t bytes;
    switch (hak_os_file_read(path, buffer, sizeof buffer, &bytes)) {
    case OS_FILE_READ:
        if (memchr(buffer, '\0', bytes) != NULL)
            hak_conf_report_file(path, "is not text, ignored");
        else
            set_all_lines(path, text_of(buffer, bytes));
        break;
    case OS_FILE_ABSENT:
        break;
    case OS_FILE_REFUSED:
        hak_conf_report_file(path, "cannot be read, ignored");
        break;
    case OS_FILE_IRREGULAR:
        hak_conf_report_file(path, "is not a regular file, ignored");
        break;
    case OS_FILE_LARGE:
        hak_conf_report_file(path, "is larger than 16 KiB, ignored");
        break;
    }
}

void hak_conf_read_packed(const char *packed, enum conf_source source)
{
    struct conf_text text = text_of(packed, strlen(packed));
    struct conf_pair pair;
    while (hak_conf_next_packed(&text, &pair))
        hak_conf_set_pair(&pair, source);
}

/* Sets options that have not been set. */
static void imply(const char *settings, enum conf_source source)
{
    struct conf_text text = text_of(settings, strlen(settings));
    struct conf_pair pair;
    while (hak_conf_next_packed(&text, &pair)) {
        enum conf_option option = hak_conf_find_bytes(pair.name, pair.name_bytes);
        if (option == CONF_COUNT || hak_conf.source[option] == CONF_BUILT_IN)
            hak_conf_set_pair(&pair, source);
    }
}

void hak_conf_imply(void)
{
    imply(mode_rows[hak_conf_number(mode)], CONF_MODE);
    imply(price_rows[hak_conf_number(price)], CONF_PRICE);
}

static void follow(enum conf_option option, int64_t number, enum conf_source source)
{
    __atomic_store_n(&hak_conf.number[option], number, __ATOMIC_RELAXED);
    __atomic_store_n(&hak_conf.source[option], (uint8_t)source, __ATOMIC_RELAXED);
}

/* Undoes the settings implied by the last price, then applies those of the new one. */
void hak_conf_follow_price(void)
{
    const char *settings = price_rows[hak_conf_number(price)];
    struct conf_text text = text_of(settings, strlen(settings));
    struct conf_pair pair;
    int64_t number;
    for (int i = 0; i < CONF_COUNT; i++)
        if (hak_conf.source[i] == CONF_PRICE)
            follow((enum conf_option)i, hak_conf_rows[i].initial, CONF_BUILT_IN);
    while (hak_conf_next_packed(&text, &pair)) {
        enum conf_option option = hak_conf_find_bytes(pair.name, pair.name_bytes);
        if (hak_conf.source[option] == CONF_BUILT_IN &&
            hak_conf_parse(&hak_conf_rows[option], pair.value, pair.value_bytes, &number))
            follow(option, number, CONF_PRICE);
    }
}

/* Read as a switch of the table is. */
static bool is_on(const char *value)
{
    static const struct conf_row row = {.kind = CONF_KIND_CHOICE, .most = 1, .choices = "off|on"};
    int64_t number;
    return value != NULL && hak_conf_parse(&row, value, strlen(value), &number) && number == 1;
}

/* The value of a variable; NULL: it is not set. */
static const char *find_variable(char **environment, const char *name)
{
    size_t name_bytes = strlen(name);
    for (char **i = environment; *i != NULL; i++)
        if (strncmp(*i, name, name_bytes) == 0 && (*i)[name_bytes] == '=')
            return *i + name_bytes + 1;
    return NULL;
}

/* A text may well be empty: a name that wins over another one. */
static bool may_be_empty(const char *name, size_t name_bytes)
{
    enum conf_option option = hak_conf_find_bytes(name, name_bytes);
    return option == CONF_COUNT || hak_conf_rows[option].kind == CONF_KIND_TEXT;
}

/* Scripts empty a variable where they want it unset. */
static void set_from_variable(const char *variable)
{
    static const char *const not_options[] = {"CONF=", "SHOW_CONF=", "ABORT_CONF="};
    for (size_t i = 0; i < sizeof not_options / sizeof *not_options; i++)
        if (strncmp(variable, not_options[i], strlen(not_options[i])) == 0)
            return;
    size_t name_bytes = strcspn(variable, "=");
    const char *value = variable + name_bytes + 1;
    if (variable[name_bytes] == '=' && (*value != '\0' || may_be_empty(variable, name_bytes)))
        hak_conf_set(variable, name_bytes, value, strlen(value), CONF_VARIABLE);
}

static void set_from_environment(char **environment)
{
    const char *packed = find_variable(environment, HAK_TEXT_AT_HAND("HAKMEM_CONF"));
    if (packed != NULL)
        hak_conf_read_packed(packed, CONF_PACKED);
    for (char **i = environment; *i != NULL; i++)
        if (strncmp(*i, HAK_TEXT_AT_HAND("HAKMEM_"), 7) == 0)
            set_from_variable(*i + 7);
}

/* Says that the file of `profile` has no effect where nothing is learned that it could hold. It is
 * no mistake, so nothing aborts. */
static void tell_idle(void)
{
    char line[512];
    struct text text = {.start = line, .bytes = sizeof line};
    if (*hak_conf_text(profile) == '\0' || hak_conf_number(learn) != 0)
        return;
    hak_text_add(&text, "hakmem: without effect, since nothing is learned: profile");
    hak_text_add(&text, " (");
    hak_text_add(&text, hak_conf_source_name((enum conf_source)hak_conf.source[CONF_profile]));
    hak_text_add(&text, ")");
    hak_os_stderr_line(&text);
}

void hak_conf_start(void)
{
    char *nothing[] = {NULL};
    char **environment = hak_os_is_privileged() ? NULL : hak_os_environment();
    if (environment == NULL)
        environment = nothing;
    hak_conf_be_strict(is_on(find_variable(environment, HAK_TEXT_AT_HAND("HAKMEM_ABORT_CONF"))));
    hak_conf_read_file(HAK_TEXT_AT_HAND(HAK_CONF_PATH));
    if (&hakmem_conf != NULL && hakmem_conf != NULL)
        hak_conf_read_packed(hakmem_conf, CONF_PROGRAM);
    set_from_environment(environment);
    hak_conf_imply();
    if (is_on(find_variable(environment, HAK_TEXT_AT_HAND("HAKMEM_SHOW_CONF"))))
        hak_conf_show();
    else
        tell_idle();
}
