/* SPDX-License-Identifier: MIT */
#include "command.h"
#include "conf/conf.h"
#include "words.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const meanings[CONF_COUNT] = {
#define X(name, kind, initial, least, most, choices, meaning) [CONF_##name] = (meaning),
    HAK_CONF_TABLE(X)
#undef X
};

typedef void add_fn(struct text *text, int option);

/* What one of the functions below makes of an option, as a string. */
static const char *string(char *line, size_t line_bytes, add_fn *add, int option)
{
    struct text text = {.start = line, .bytes = line_bytes - 1};
    add(&text, option);
    line[text.used] = '\0';
    return line;
}

static void add_number(struct text *text, int option, int64_t number)
{
    const struct conf_row *row = &hak_conf_rows[option];
    bool is_number = row->kind == CONF_KIND_BYTES || row->kind == CONF_KIND_MS;
    if (is_number)
        hak_conf_add_round(text, row, number);
    else
        hak_conf_add_value(text, row, number, "");
}

static void add_value(struct text *text, int option)
{
    if (hak_conf_rows[option].kind == CONF_KIND_TEXT)
        hak_text_add(text, hak_conf.text[option]);
    else
        add_number(text, option, hak_conf.number[option]);
}

static void add_default(struct text *text, int option)
{
    if (hak_conf_rows[option].kind != CONF_KIND_TEXT)
        add_number(text, option, hak_conf_rows[option].initial);
}

static void add_range(struct text *text, int option)
{
    hak_conf_add_range(text, &hak_conf_rows[option]);
}

/* Prints words with at most 78 columns a line, indented. */
static void print_wrapped(const char *words)
{
    int column = 0;
    for (const char *word = words; *word != '\0';) {
        int length = (int)strcspn(word, " ");
        if (column == 0 || column + length + 1 > 78)
            column = printf("%s    %.*s", column == 0 ? "" : "\n", length, word) - (column != 0);
        else
            column += printf(" %.*s", length, word);
        word += length;
        word += strspn(word, " ");
    }
    putchar('\n');
}

static void print_option(int option)
{
    char value[512], initial[512], range[512], lines[2048];
    const char *source = hak_conf_source_name((enum conf_source)hak_conf.source[option]);
    printf("%-15s %-20s %s\n", hak_conf_rows[option].name,
           string(value, sizeof value, add_value, option), source);
    string(initial, sizeof initial, add_default, option);
    string(range, sizeof range, add_range, option);
    snprintf(lines, sizeof lines, "accepted: %s%s%s", range,
             *initial == '\0' ? "" : "; built in: ", initial);
    print_wrapped(meanings[option]);
    print_wrapped(lines);
}

/* Prints `"name": "value"` after `before`. */
static void print_member(const char *before, const char *name, const char *value)
{
    printf("%s\"%s\": ", before, name);
    put_json_string(value);
}

static void print_json(int option, const char *before)
{
    char value[512], initial[512], range[512], variable[64];
    const char *name = hak_conf_rows[option].name;
    snprintf(variable, sizeof variable, "HAKMEM_%s", name);
    for (char *letter = variable; *letter != '\0'; letter++)
        *letter = (char)toupper((unsigned char)*letter);
    printf("%s", before);
    print_member("{", "name", name);
    print_member(", ", "variable", variable);
    print_member(", ", "value", string(value, sizeof value, add_value, option));
    print_member(", ", "from", hak_conf_source_name((enum conf_source)hak_conf.source[option]));
    print_member(", ", "built_in", string(initial, sizeof initial, add_default, option));
    print_member(", ", "accepted", string(range, sizeof range, add_range, option));
    print_member(", ", "meaning", meanings[option]);
    putchar('}');
}

void settings_read(void)
{
    /* These would end this program, or print what it prints itself. */
    unsetenv("HAKMEM_ABORT_CONF");
    unsetenv("HAKMEM_SHOW_CONF");
    hak_conf_start();
}

int command_options(int argument_count, char **arguments)
{
    (void)argument_count;
    bool is_json = false;
    char **names = arguments + 1;
    const struct word_option options[] = {{"--json", &is_json, NULL}, {0}};
    int understood = words_read("options", names, options);
    if (understood != EXIT_DONE)
        return understood;
    int count = 0;
    for (; names[count] != NULL; count++)
        if (hak_conf_find(names[count]) == CONF_COUNT)
            return complain_option(names[count], strlen(names[count]));
    settings_read();
    if (!is_json)
        printf("%-15s %-20s %s\n", "OPTION", "VALUE", "FROM");
    bool are_all = count == 0;
    for (int i = 0; i < (are_all ? CONF_COUNT : count); i++) {
        int option = are_all ? i : (int)hak_conf_find(names[i]);
        if (is_json)
            print_json(option, i == 0 ? "[\n" : ",\n");
        else
            print_option(option);
    }
    if (is_json)
        puts("\n]");
    return EXIT_DONE;
}
