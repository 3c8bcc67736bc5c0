/* SPDX-License-Identifier: MIT */
#include "conf/conf.h"

#include "base/bits.h"
#include "base/text.h"
#include "os/os.h"

#include <stdlib.h>
#include <string.h>

enum kind { BYTES, MS, CHOICE, TEXT };

struct row {
    const char *name;
    enum kind kind;
    int64_t least;
    int64_t most;
    const char *choices;
};

static const struct row rows[CONF_COUNT] = {
#define X(name_, kind_, initial_, least_, most_, choices_, meaning_)                               \
    {.name = #name_,                                                                               \
     .kind = kind_,                                                                                \
     .least = (int64_t)(least_),                                                                   \
     .most = (int64_t)(most_),                                                                     \
     .choices = choices_},
    HAK_CONF_TABLE(X)
#undef X
};

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

/* Digits at the start of `value`; returns how many characters they are, 0 when none or too many. */
static size_t parse_digits(const char *value, size_t bytes, int64_t *number)
{
    size_t at = 0;
    int64_t total = 0;
    for (; at < bytes && value[at] >= '0' && value[at] <= '9'; at++) {
        if (__builtin_mul_overflow(total, 10, &total) ||
            __builtin_add_overflow(total, value[at] - '0', &total))
            return 0;
    }
    *number = total;
    return at;
}

static bool parse_bytes(const char *value, size_t bytes, int64_t *number)
{
    size_t at = parse_digits(value, bytes, number);
    if (at == 0)
        return false;
    if (at == bytes)
        return true;
    const char *units = "kKmMgGtT";
    const char *unit = memchr(units, value[at], 8);
    if (unit == NULL || at + 1 != bytes)
        return false;
    int64_t scale = (int64_t)1 << (10 * ((unit - units) / 2 + 1));
    return !__builtin_mul_overflow(*number, scale, number);
}

static bool parse_ms(const char *value, size_t bytes, int64_t *number)
{
    if (is_word(value, bytes, "-1") || is_word(value, bytes, "never")) {
        *number = HAK_CONF_NEVER_MS;
        return true;
    }
    size_t at = parse_digits(value, bytes, number);
    if (at == 0)
        return false;
    if (at == bytes || is_word(value + at, bytes - at, "ms"))
        return true;
    return is_word(value + at, bytes - at, "s") && !__builtin_mul_overflow(*number, 1000, number);
}

static bool parse_choice(const char *choices, const char *value, size_t bytes, int64_t *number)
{
    *number = 0;
    for (const char *word = choices;; word++, (*number)++) {
        size_t length = strcspn(word, "|");
        if (length == bytes && memcmp(word, value, bytes) == 0)
            return true;
        word += length;
        if (*word == '\0')
            break;
    }
    /* 0 and 1 mean the first two for every choice that starts with "off". */
    bool is_switch = strncmp(choices, "off", 3) == 0;
    *number =
        is_word(value, bytes, "1") || is_word(value, bytes, "on") || is_word(value, bytes, "yes");
    return is_switch && (*number == 1 || is_word(value, bytes, "0") || is_word(value, bytes, "no"));
}

static bool parse(const struct row *row, const char *value, size_t bytes, int64_t *number)
{
    switch (row->kind) {
    case BYTES:
        return parse_bytes(value, bytes, number);
    case MS:
        return parse_ms(value, bytes, number);
    case CHOICE:
        return parse_choice(row->choices, value, bytes, number);
    case TEXT:
        *number = 0;
        return bytes < HAK_CONF_TEXT_BYTES;
    }
    return false;
}

/* A number in the largest unit that divides it: 64K, 125ms, 3s, never. */
static void add_number(struct text *text, enum kind kind, int64_t number)
{
    static const char *const sizes[] = {"", "K", "M", "G", "T"};
    if (kind == MS && number == HAK_CONF_NEVER_MS) {
        hak_text_add(text, "never");
        return;
    }
    uint64_t value = (uint64_t)number;
    int unit = 0;
    for (; kind == BYTES && unit < 4 && value != 0 && value % 1024 == 0; unit++)
        value /= 1024;
    bool is_seconds = kind == MS && value != 0 && value % 1000 == 0;
    hak_text_add_number(text, is_seconds ? value / 1000 : value, 10);
    if (kind == BYTES)
        hak_text_add(text, sizes[unit]);
    else
        hak_text_add(text, is_seconds ? "s" : "ms");
}

static void add_range(struct text *text, const struct row *row)
{
    if (row->kind == CHOICE) {
        hak_text_add(text, row->choices);
    } else if (row->kind == TEXT) {
        hak_text_add(text, "less than 256 characters");
    } else {
        add_number(text, row->kind, row->least);
        hak_text_add(text, " to ");
        add_number(text, row->kind, row->most);
        hak_text_add(text, row->kind == BYTES ? " (units K, M, G, T)" : " (units ms, s)");
    }
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

static void report_value(const struct row *row, const char *value, size_t value_bytes)
{
    char line[512];
    struct text text = {.start = line, .bytes = sizeof line - 1};
    hak_text_add(&text, "hakmem: ");
    add_variable(&text, row->name, strlen(row->name));
    hak_text_add(&text, ": bad value ");
    add_quoted(&text, value, value_bytes);
    hak_text_add(&text, ", accepted: ");
    add_range(&text, row);
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
    const struct row *row = &rows[option];
    int64_t number = __atomic_load_n(&hak_conf.number[option], __ATOMIC_RELAXED);
    if (row->kind == TEXT) {
        hak_text_add(text, hak_conf.text[option]);
    } else if (row->kind == CHOICE) {
        const char *word = row->choices;
        for (int64_t i = 0; i < number; i++)
            word += strcspn(word, "|") + 1;
        hak_text_add_bytes(text, word, strcspn(word, "|"));
    } else if (row->kind == MS && number == HAK_CONF_NEVER_MS) {
        hak_text_add(text, "-1");
    } else {
        hak_text_add_number(text, (uint64_t)number, 10);
    }
}

void hak_conf_show(int fd)
{
    static const char *const sources[] = {"built-in", "HAKMEM_CONF", "environment"};
    for (int i = 0; i < CONF_COUNT; i++) {
        char line[512];
        struct text text = {.start = line, .bytes = sizeof line};
        hak_text_add(&text, "hakmem: ");
        hak_text_add(&text, rows[i].name);
        hak_text_add(&text, "=");
        add_value(&text, i);
        hak_text_add(&text, " (");
        hak_text_add(&text, sources[hak_conf.source[i]]);
        hak_text_add(&text, ")\n");
        hak_os_write(fd, line, text.used);
    }
}

/* Options are named in lower case, their variables in upper case. */
static bool is_name(const char *text, size_t bytes, const char *name)
{
    if (strlen(name) != bytes)
        return false;
    for (size_t i = 0; i < bytes; i++) {
        char lower = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] - 'A' + 'a') : text[i];
        if (lower != name[i])
            return false;
    }
    return true;
}

enum conf_option hak_conf_find(const char *name)
{
    int option = 0;
    while (option < CONF_COUNT && !is_name(name, strlen(name), rows[option].name))
        option++;
    return (enum conf_option)option;
}

bool hak_conf_change(enum conf_option option, const char *value)
{
    const struct row *row = &rows[option];
    int64_t number;
    if (row->kind == TEXT || !parse(row, value, strlen(value), &number) || number < row->least ||
        number > row->most)
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
    for (int i = 0; i < CONF_COUNT; i++) {
        if (!is_name(name, name_bytes, rows[i].name))
            continue;
        int64_t number;
        if (!parse(&rows[i], value, value_bytes, &number) || number < rows[i].least ||
            number > rows[i].most) {
            report_value(&rows[i], value, value_bytes);
            return false;
        }
        hak_conf.number[i] = number;
        hak_conf.source[i] = (uint8_t)source;
        if (rows[i].kind == TEXT) {
            memcpy(hak_conf.text[i], value, value_bytes);
            hak_conf.text[i][value_bytes] = '\0';
        }
        return true;
    }
    report_name(name, name_bytes, ": there is no such option");
    return false;
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
