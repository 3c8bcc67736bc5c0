/* SPDX-License-Identifier: MIT */
#include "conf/conf_value.h"

#include "base/bits.h"
#include "os/listen.h"

#include <string.h>

const struct conf_row hak_conf_rows[CONF_COUNT] = {
#define X(name_, kind_, initial_, least_, most_, choices_, meaning_)                               \
    {.name = #name_,                                                                               \
     .kind = CONF_KIND_##kind_,                                                                    \
     .initial = (int64_t)(initial_),                                                               \
     .least = (int64_t)(least_),                                                                   \
     .most = (int64_t)(most_),                                                                     \
     .choices = choices_},
    HAK_CONF_TABLE(X)
#undef X
};

/* No option has a longer name. */
#define NAME_BYTES_MOST 24

#define X(name, kind, initial, least, most, choices, meaning)                                      \
    hak_static_assert(sizeof #name <= NAME_BYTES_MOST, "its distance to others can be told");
HAK_CONF_TABLE(X)
#undef X

static char lower(char letter)
{
    return letter >= 'A' && letter <= 'Z' ? (char)(letter - 'A' + 'a') : letter;
}

/* Options are named in lower case, their variables in upper case. */
static bool is_name(const char *text, size_t bytes, const char *name)
{
    if (strlen(name) != bytes)
        return false;
    for (size_t i = 0; i < bytes; i++) {
        if (lower(text[i]) != name[i])
            return false;
    }
    return true;
}

/* Options are also known by the names of their variables. */
static void cut_prefix(const char **name, size_t *name_bytes)
{
    const size_t prefix_bytes = 7;
    if (*name_bytes < prefix_bytes || !is_name(*name, prefix_bytes, "hakmem_"))
        return;
    *name += prefix_bytes;
    *name_bytes -= prefix_bytes;
}

enum conf_option hak_conf_find_bytes(const char *name, size_t name_bytes)
{
    int option = 0;
    cut_prefix(&name, &name_bytes);
    while (option < CONF_COUNT && !is_name(name, name_bytes, hak_conf_rows[option].name))
        option++;
    return (enum conf_option)option;
}

size_t hak_conf_distance(const char *text, size_t bytes, const char *name)
{
    size_t row[NAME_BYTES_MOST + 1];
    size_t name_bytes = strlen(name);
    for (size_t i = 0; i <= name_bytes; i++)
        row[i] = i;
    for (size_t at = 0; at < bytes; at++) {
        size_t corner = row[0];
        row[0] = at + 1;
        for (size_t i = 0; i < name_bytes; i++) {
            size_t changed = corner + (lower(text[at]) != name[i]);
            corner = row[i + 1];
            row[i + 1] = hak_least(changed, hak_least(corner, row[i]) + 1);
        }
    }
    return row[name_bytes];
}

int hak_conf_nearest_of(const char *word, size_t word_bytes, const char *(*name_of)(int index),
                        int count)
{
    int nearest = count;
    size_t least = (word_bytes + 1) / 3 + 1;
    if (word_bytes > NAME_BYTES_MOST)
        return count;
    for (int i = 0; i < count; i++) {
        size_t far = hak_conf_distance(word, word_bytes, name_of(i));
        if (far >= least)
            continue;
        least = far;
        nearest = i;
    }
    return nearest;
}

static const char *option_name(int option)
{
    return hak_conf_rows[option].name;
}

enum conf_option hak_conf_nearest(const char *name, size_t name_bytes)
{
    cut_prefix(&name, &name_bytes);
    return (enum conf_option)hak_conf_nearest_of(name, name_bytes, option_name, CONF_COUNT);
}

static bool is_word(const char *value, size_t bytes, const char *word)
{
    return strlen(word) == bytes && memcmp(value, word, bytes) == 0;
}

static bool is_yes(const char *value, size_t bytes)
{
    return is_word(value, bytes, "1") || is_word(value, bytes, "on") ||
           is_word(value, bytes, "yes");
}

static bool is_no(const char *value, size_t bytes)
{
    return is_word(value, bytes, "0") || is_word(value, bytes, "off") ||
           is_word(value, bytes, "no");
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

static bool parse_count(const char *value, size_t bytes, int64_t *number)
{
    return bytes > 0 && parse_digits(value, bytes, number) == bytes;
}

/* The position of a word among `choices`; false: it is none of them. */
static bool find_word(const char *choices, const char *value, size_t bytes, int64_t *position)
{
    *position = 0;
    for (const char *word = choices;; word++, (*position)++) {
        size_t length = strcspn(word, "|");
        if (length > 0 && length == bytes && memcmp(word, value, bytes) == 0)
            return true;
        word += length;
        if (*word == '\0')
            return false;
    }
}

static bool parse_choice(const char *choices, const char *value, size_t bytes, int64_t *number)
{
    if (find_word(choices, value, bytes, number))
        return true;
    bool is_switch = strncmp(choices, "off|", 4) == 0;
    if (is_switch && is_no(value, bytes)) {
        *number = 0;
        return true;
    }
    /* Yes is the word "on" where there is one, else what comes after "off". */
    if (is_switch && is_yes(value, bytes)) {
        if (!find_word(choices, "on", 2, number))
            *number = 1;
        return true;
    }
    return false;
}

/* Words with '+' between them, each a bit. */
static bool parse_set(const struct conf_row *row, const char *value, size_t bytes, int64_t *number)
{
    *number = 0;
    if (is_word(value, bytes, "none") || is_no(value, bytes))
        return true;
    if (is_word(value, bytes, "all") || is_yes(value, bytes)) {
        *number = row->most;
        return true;
    }
    for (size_t at = 0;; at++) {
        size_t length = 0;
        while (at + length < bytes && value[at + length] != '+')
            length++;
        int64_t position;
        if (!find_word(row->choices, value + at, length, &position))
            return false;
        *number |= (int64_t)1 << position;
        at += length;
        if (at == bytes)
            return true;
    }
}

static bool parse_size(const char *value, size_t bytes, size_t *size)
{
    int64_t number = 0;
    bool is_right = parse_bytes(value, bytes, &number) && (uint64_t)number <= HAK_TIB;
    *size = (size_t)number;
    return is_right;
}

/* A size, or two with ".." between them. */
static bool parse_range(const char *value, size_t bytes, struct conf_fence *fence)
{
    size_t first_bytes = 0;
    while (first_bytes + 1 < bytes && memcmp(value + first_bytes, "..", 2) != 0)
        first_bytes++;
    bool has_dots = first_bytes + 1 < bytes;
    const char *last = has_dots ? value + first_bytes + 2 : value;
    return parse_size(value, has_dots ? first_bytes : bytes, &fence->bytes_least) &&
           parse_size(last, bytes - (size_t)(last - value), &fence->bytes_most) &&
           fence->bytes_least <= fence->bytes_most;
}

/* FILE+0xOFFSET */
static bool is_call(const char *value, size_t bytes)
{
    size_t digits = 0;
    while (digits < bytes && value[bytes - digits - 1] != '\0' &&
           strchr("0123456789abcdef", value[bytes - digits - 1]) != NULL)
        digits++;
    return digits > 0 && bytes > digits + 3 && memcmp(value + bytes - digits - 3, "+0x", 3) == 0;
}

bool hak_conf_parse_fence(const char *value, size_t value_bytes, struct conf_fence *fence)
{
    *fence = (struct conf_fence){.bytes_most = SIZE_MAX, .is_call = is_call(value, value_bytes)};
    return fence->is_call || is_word(value, value_bytes, "all") ||
           parse_range(value, value_bytes, fence);
}

static bool is_fence(const char *value, size_t bytes)
{
    struct conf_fence fence;
    return is_word(value, bytes, "none") || hak_conf_parse_fence(value, bytes, &fence);
}

static bool is_signal(const char *value, size_t bytes)
{
    char name[16] = "";
    if (bytes >= sizeof name)
        return false;
    memcpy(name, value, bytes);
    return hak_os_signal_find(name) != 0;
}

/* An empty text is that of an option that is not set. */
static bool is_text(const struct conf_row *row, const char *value, size_t bytes)
{
    if (bytes >= HAK_CONF_TEXT_BYTES || memchr(value, '\0', bytes) != NULL)
        return false;
    if (row == &hak_conf_rows[CONF_fence])
        return bytes == 0 || is_fence(value, bytes);
    if (row == &hak_conf_rows[CONF_stats_signal])
        return bytes == 0 || is_signal(value, bytes);
    return true;
}

static bool parse_kind(const struct conf_row *row, const char *value, size_t bytes, int64_t *number)
{
    switch (row->kind) {
    case CONF_KIND_BYTES:
        return parse_bytes(value, bytes, number);
    case CONF_KIND_MS:
        return parse_ms(value, bytes, number);
    case CONF_KIND_COUNT:
        return parse_count(value, bytes, number);
    case CONF_KIND_CHOICE:
        return parse_choice(row->choices, value, bytes, number);
    case CONF_KIND_SET:
        return parse_set(row, value, bytes, number);
    case CONF_KIND_TEXT:
        *number = 0;
        return is_text(row, value, bytes);
    }
    return false;
}

bool hak_conf_parse(const struct conf_row *row, const char *value, size_t value_bytes,
                    int64_t *number)
{
    return parse_kind(row, value, value_bytes, number) && *number >= row->least &&
           *number <= row->most;
}

static void add_word(struct text *text, const char *choices, int64_t position)
{
    for (; position > 0; position--)
        choices += strcspn(choices, "|") + 1;
    hak_text_add_bytes(text, choices, strcspn(choices, "|"));
}

static void add_set(struct text *text, const struct conf_row *row, int64_t number)
{
    if (number == 0 || number == row->most) {
        hak_text_add(text, number == 0 ? "none" : "all");
        return;
    }
    for (int64_t rest = number; rest != 0; rest &= rest - 1) {
        hak_text_add(text, rest == number ? "" : "+");
        add_word(text, row->choices, __builtin_ctzll((unsigned long long)rest));
    }
}

void hak_conf_add_value(struct text *text, const struct conf_row *row, int64_t number,
                        const char *string)
{
    if (row->kind == CONF_KIND_TEXT)
        hak_text_add(text, string);
    else if (row->kind == CONF_KIND_CHOICE)
        add_word(text, row->choices, number);
    else if (row->kind == CONF_KIND_SET)
        add_set(text, row, number);
    else if (row->kind == CONF_KIND_MS && number == HAK_CONF_NEVER_MS)
        hak_text_add(text, "-1");
    else
        hak_text_add_number(text, (uint64_t)number, 10);
}

void hak_conf_add_round(struct text *text, const struct conf_row *row, int64_t number)
{
    static const char *const sizes[] = {"", "K", "M", "G", "T"};
    uint64_t value = (uint64_t)number;
    if (row->kind == CONF_KIND_BYTES) {
        int unit = 0;
        for (; unit < 4 && value != 0 && value % 1024 == 0; unit++)
            value /= 1024;
        hak_text_add_number(text, value, 10);
        hak_text_add(text, sizes[unit]);
    } else if (row->kind == CONF_KIND_COUNT) {
        hak_text_add_number(text, value, 10);
    } else if (number == HAK_CONF_NEVER_MS) {
        hak_text_add(text, "never");
    } else {
        bool is_seconds = value != 0 && value % 1000 == 0;
        hak_text_add_number(text, is_seconds ? value / 1000 : value, 10);
        hak_text_add(text, is_seconds ? "s" : "ms");
    }
}

void hak_conf_add_range(struct text *text, const struct conf_row *row)
{
    if (row->kind == CONF_KIND_CHOICE) {
        hak_text_add(text, row->choices);
        return;
    }
    if (row->kind == CONF_KIND_SET) {
        hak_text_add(text, "none, all, or words with + between them of ");
        hak_text_add(text, row->choices);
        return;
    }
    if (row->kind == CONF_KIND_TEXT) {
        hak_text_add(text, *row->choices != '\0' ? row->choices : "less than 256 characters");
        return;
    }
    hak_conf_add_round(text, row, row->least);
    hak_text_add(text, " to ");
    hak_conf_add_round(text, row, row->most);
    if (row->kind != CONF_KIND_COUNT)
        hak_text_add(text, row->kind == CONF_KIND_BYTES ? " (units K, M, G, T)" : " (units ms, s)");
}
