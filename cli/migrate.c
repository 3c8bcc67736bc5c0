/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "command.h"
#include "conf/conf_value.h"
#include "migrate_table.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

static const struct row {
    const char *allocator;
    const char *name;
    const char *ours;
    const char *form;
    const char *note;
} rows[] = {
#define X(allocator, name, ours, form, note) {#allocator, name, ours, form, note},
    MIGRATE_TABLE(X)
#undef X
};

/* Variables that hold several settings, and what is between name and value, and between two. */
static const struct {
    const char *name;
    char sets;
    char divides;
} lists[] = {
    {"MALLOC_CONF", ':', ','},
    {"_RJEM_MALLOC_CONF", ':', ','},
    {"JE_MALLOC_CONF", ':', ','},
    {"GLIBC_TUNABLES", '=', ':'},
};

static const struct row *find_row(const char *name)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

static const char *plain_word(const char *value)
{
    static const char *const yes[] = {"1", "t", "y", "yes", "on", "TRUE"};
    static const char *const no[] = {"0", "f", "n", "no", "off", "FALSE"};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        if (strcmp(value, yes[i]) == 0)
            return "true";
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        if (strcmp(value, no[i]) == 0)
            return "false";
    return value;
}

/* What follows `word=` in a list of words; false: it is not there. */
static bool look_up(const char *list, const char *word, char *to, size_t to_bytes)
{
    size_t bytes = strlen(word);
    for (const char *at = list;; at++) {
        size_t length = strcspn(at, ",");
        if (length > bytes && strncmp(at, word, bytes) == 0 && at[bytes] == '=') {
            snprintf(to, to_bytes, "%.*s", (int)(length - bytes - 1), at + bytes + 1);
            return true;
        }
        at += length;
        if (*at == '\0')
            return false;
    }
}

static bool convert(const struct row *row, const char *value, char *to, size_t to_bytes)
{
    char *end;
    errno = 0;
    if (strchr(row->form, '=') != NULL)
        return look_up(row->form, value, to, to_bytes) ||
               look_up(row->form, plain_word(value), to, to_bytes) ||
               look_up(row->form, "*", to, to_bytes);
    long long number = strtoll(value, &end, 10);
    if (end == value || *end != '\0' || errno != 0 || number < -1)
        return false;
    if (strcmp(row->form, "lg") == 0)
        return number >= 0 && number < 63 && snprintf(to, to_bytes, "%lld", 1LL << number) > 0;
    if (number == -1)
        return snprintf(to, to_bytes, "%s", strcmp(row->form, "ms") == 0 ? "never" : "-1") > 0;
    const char *unit = strcmp(row->form, "ms") == 0    ? "ms"
                       : strcmp(row->form, "mib") == 0 ? "M"
                                                       : "";
    return snprintf(to, to_bytes, "%lld%s", number, unit) > 0;
}

/* What was found, in its order. What is printed of a name or a value is at most 60 bytes. */
static struct found {
    const struct row *row; /* NULL: not known */
    char name[64];
    char value[64];
    char ours[64];
    enum { MEANS_NOTHING, NO_SUCH_VALUE, IS_DEFAULT, IS_CHANGE } weight;
} *all;
static size_t count;

/* Whether hakmem would take it, and whether it is what holds anyway. A variable that is no option
 * is 0 by default. */
static void weigh(struct found *found)
{
    enum conf_option option = hak_conf_find_bytes(found->row->ours, strlen(found->row->ours));
    int64_t number = 0, initial = 0;
    bool is_right = true;
    if (option == CONF_COUNT) {
        number = strcmp(found->ours, "0");
    } else {
        initial = hak_conf_rows[option].initial;
        is_right =
            hak_conf_parse(&hak_conf_rows[option], found->ours, strlen(found->ours), &number);
    }
    found->weight = !is_right ? NO_SUCH_VALUE : number == initial ? IS_DEFAULT : IS_CHANGE;
}

/* Adds one setting; false: nothing is known of it. */
static bool migrate_one(const char *name, const char *value)
{
    struct found *grown = realloc(all, (count + 1) * sizeof *all);
    if (grown == NULL)
        return false;
    all = grown;
    struct found *found = &all[count++];
    *found = (struct found){.row = find_row(name), .weight = MEANS_NOTHING};
    snprintf(found->name, sizeof found->name, "%.60s", name);
    snprintf(found->value, sizeof found->value, "%.60s", value);
    if (found->row == NULL || *found->row->ours == '\0')
        return found->row != NULL;
    found->weight = NO_SUCH_VALUE;
    if (convert(found->row, value, found->ours, sizeof found->ours))
        weigh(found);
    return true;
}

/* Of two settings of one option, whether the later one is what holds: it is the same setting once
 * more, or does not merely ask for the default. Samples are taken for `leaks`, too. */
static bool is_stronger(const struct found *later, const struct found *earlier)
{
    if (later->row == earlier->row)
        return true;
    if (later->weight != earlier->weight)
        return later->weight > earlier->weight;
    return strcmp(earlier->ours, "leaks") != 0 && strcmp(earlier->ours, later->ours) != 0;
}

/* The setting that decides about the option. */
static const struct found *what_holds(const char *ours)
{
    const struct found *best = NULL;
    for (const struct found *i = all; i < all + count; i++)
        if (i->weight >= IS_DEFAULT && strcmp(i->row->ours, ours) == 0 &&
            (best == NULL || is_stronger(i, best)))
            best = i;
    return best;
}

/* Mode hardened has all words of `harden`, and a list of fewer would take some away. */
static const struct found *what_decides(const struct found *found)
{
    const struct found *mode = what_holds("mode");
    bool is_in_mode = strcmp(found->row->ours, "harden") == 0 && mode != NULL &&
                      strcmp(mode->ours, "hardened") == 0;
    return is_in_mode ? mode : what_holds(found->row->ours);
}

static void print_variable(const struct found *found)
{
    const char *name = found->row->ours;
    printf("%s", strncmp(name, "HAKMEM_", 7) == 0 ? "" : "HAKMEM_");
    for (; *name != '\0'; name++)
        putchar(toupper((unsigned char)*name));
    printf("=%s", found->ours);
}

static void print_found(const struct found *found)
{
    const struct row *row = found->row;
    if (row == NULL) {
        printf("# %s=%s: not known\n", found->name, found->value);
    } else if (found->weight == MEANS_NOTHING) {
        printf("# %s=%s: nothing to set; %s\n", found->name, found->value, row->note);
    } else if (found->weight == NO_SUCH_VALUE) {
        printf("# %s=%s: no value of %s corresponds to it\n", found->name, found->value, row->ours);
    } else if (what_decides(found) != found) {
        printf("# %s=%s: nothing to set beside ", found->name, found->value);
        print_variable(what_decides(found));
        putchar('\n');
    } else {
        print_variable(found);
        printf("  # %s=%s%s%s\n", found->name, found->value, *row->note == '\0' ? "" : "; ",
               row->note);
    }
}

/* Each setting of a list; returns how many are not known. */
static int migrate_list(char *text, char sets, char divides)
{
    int unknown = 0;
    char between[] = {divides, '\0'};
    for (char *rest = text, *setting; (setting = strsep(&rest, between)) != NULL;) {
        char *value = strchr(setting, sets);
        if (*setting == '\0')
            continue;
        if (value != NULL)
            *value++ = '\0';
        unknown += !migrate_one(setting, value == NULL ? "" : value);
    }
    return unknown;
}

/* What is printed may be evaluated by a shell: a value ends no comment and begins no line. */
static void keep_on_one_line(char *text)
{
    for (; *text != '\0'; text++)
        if (iscntrl((unsigned char)*text))
            *text = '?';
}

/* NAME=VALUE; returns how many settings in it are not known. */
static int migrate(const char *setting)
{
    char *text = strdup(setting);
    char *value = text == NULL ? NULL : strchr(text, '=');
    int unknown = 1;
    if (value != NULL) {
        keep_on_one_line(text);
        *value++ = '\0';
        size_t i = 0;
        while (i < sizeof lists / sizeof *lists && strcmp(lists[i].name, text) != 0)
            i++;
        unknown = i < sizeof lists / sizeof *lists
                      ? migrate_list(value, lists[i].sets, lists[i].divides)
                      : !migrate_one(text, value);
    }
    free(text);
    return unknown;
}

static bool is_foreign(const char *variable)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(variable, "="), variable);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (strcmp(lists[i].name, name) == 0)
            return true;
    return find_row(name) != NULL || strncmp(name, "TCMALLOC_", 9) == 0 ||
           strncmp(name, "MIMALLOC_", 9) == 0;
}

int command_migrate(int argument_count, char **arguments)
{
    int unknown = 0, seen = 0;
    for (int i = 1; i < argument_count; i++, seen++) {
        if (strchr(arguments[i], '=') == NULL)
            return complain(EXIT_USAGE, "migrate takes NAME=VALUE, not '%.60s'", arguments[i]);
        unknown += migrate(arguments[i]);
    }
    for (char **i = environ; argument_count < 2 && *i != NULL; i++)
        if (is_foreign(*i)) {
            unknown += migrate(*i);
            seen++;
        }
    for (const struct found *i = all; i < all + count; i++)
        print_found(i);
    if (seen == 0)
        return complain(EXIT_FAILED, "no setting of another allocator is in the environment");
    if (unknown > 0)
        return complain(EXIT_FAILED, "migrate: %d of the settings %s not known", unknown,
                        unknown == 1 ? "is" : "are");
    return EXIT_DONE;
}
