/* SPDX-License-Identifier: MIT */
#include "base/text.h"
#include "command.h"
#include "conf/conf_value.h"
#include "hakmem/hakmem.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct command {
    const char *name;
    const char *arguments;
    const char *meaning;
    const char *details;
    command_fn *run;
};

static const struct command commands[] = {
#define X(name, arguments, meaning, details) {#name, arguments, meaning, details, command_##name},
    COMMAND_TABLE(X)
#undef X
};
static const size_t command_count = sizeof commands / sizeof *commands;

void print_line(char *line, size_t bytes, const char *format, va_list arguments)
{
    vsnprintf(line, bytes, format, arguments);
    for (char *letter = line; *letter != '\0'; letter++)
        if ((unsigned char)*letter < ' ' || *letter == 0x7f)
            *letter = '?';
}

void put_json_string(const char *string)
{
    putchar('"');
    for (; *string != '\0'; string++) {
        if (*string == '"' || *string == '\\')
            putchar('\\');
        putchar((unsigned char)*string < ' ' || *string == 0x7f ? '?' : *string);
    }
    putchar('"');
}

int complain(int status, const char *format, ...)
{
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    print_line(line, sizeof line, format, arguments);
    va_end(arguments);
    fflush(stdout);
    fprintf(stderr, "hakmem: %s\n", line);
    return status;
}

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < command_count; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static const char *command_name(int index)
{
    return commands[index].name;
}

static int complain_command(const char *name)
{
    int count = (int)command_count;
    int nearest = hak_conf_nearest_of(name, strlen(name), command_name, count);
    if (nearest == count)
        return complain(EXIT_USAGE, "there is no subcommand '%.100s'; hakmem --help lists them",
                        name);
    return complain(EXIT_USAGE, "there is no subcommand '%.100s'; the nearest is %s", name,
                    commands[nearest].name);
}

void end_by_signal(int number)
{
    signal(number, SIG_DFL);
    raise(number);
}

int complain_usage(const char *command)
{
    return complain(EXIT_USAGE, "usage: hakmem %s %s", command, find_command(command)->arguments);
}

int complain_word(const char *command, const char *word)
{
    const char *fault = *word == '-' ? "there is no option" : "unexpected argument";
    return complain(EXIT_USAGE, "%s: %s '%.60s'; hakmem %s --help", command, fault, word, command);
}

int complain_option(const char *name, size_t name_bytes)
{
    int shown = (int)(name_bytes < 60 ? name_bytes : 60);
    enum conf_option nearest = hak_conf_nearest(name, name_bytes);
    if (nearest == CONF_COUNT)
        return complain(EXIT_USAGE, "there is no option '%.*s'; hakmem options lists them", shown,
                        name);
    return complain(EXIT_USAGE, "there is no option '%.*s'; the nearest is %s", shown, name,
                    hak_conf_rows[nearest].name);
}

bool refuse(struct reason *reason, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_line(reason->text, sizeof reason->text, format, arguments);
    va_end(arguments);
    return false;
}

const char *shown_name(const char *name)
{
    return *name == '\0' ? "''" : name;
}

char *size_text(char *text, uint64_t bytes)
{
    struct text size = {.start = text, .bytes = 31};
    hak_text_add_size(&size, bytes);
    text[size.used] = '\0';
    return text;
}

/* The bytes of the first argument of a usage text, whose brackets may hold blanks. */
static int argument_bytes(const char *arguments)
{
    int bytes = 0;
    for (int depth = 0; arguments[bytes] != '\0'; bytes++) {
        if (depth == 0 && arguments[bytes] == ' ')
            break;
        depth += (arguments[bytes] == '[') - (arguments[bytes] == ']');
    }
    return bytes;
}

/* How a subcommand is used, in lines of at most 79 columns. */
static void print_form(const char *before, const struct command *command)
{
    int indent = printf("%shakmem %s", before, command->name);
    int column = indent;
    for (const char *argument = command->arguments; *argument != '\0';) {
        int bytes = argument_bytes(argument);
        if (column + 1 + bytes > 79)
            column = printf("\n%*s", indent, "") - 1;
        column += printf(" %.*s", bytes, argument);
        argument += bytes;
        argument += *argument == ' ';
    }
    putchar('\n');
}

static int print_usage(const struct command *command)
{
    print_form("usage: ", command);
    printf("%s\n%sSee hakmem(1).\n", command->meaning, command->details);
    return EXIT_DONE;
}

static bool is_help(const char *word)
{
    return word != NULL && (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0);
}

static int print_help(void)
{
    puts("hakmem - a drop-in malloc for Linux\n");
    for (size_t i = 0; i < command_count; i++) {
        print_form("  ", &commands[i]);
        printf("      %s\n", commands[i].meaning);
    }
    puts("  hakmem --version\n  hakmem SUBCOMMAND --help\n\nSee hakmem(1), and hakmem(3) for "
         "programs.");
    return EXIT_DONE;
}

/* Flushes the output; if that fails, so does the exit status. */
static int finish(int status)
{
    if (fflush(stdout) != 0 || ferror(stdout))
        return complain(status == EXIT_DONE ? EXIT_FAILED : status, "cannot write the output");
    return status;
}

int main(int argument_count, char **arguments)
{
    if (argument_count < 2)
        return complain(EXIT_USAGE, "a subcommand is missing; hakmem --help lists them");
    const char *name = arguments[1];
    if (is_help(name) || strcmp(name, "help") == 0)
        return finish(print_help());
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
        return finish(printf("hakmem %s\n", HAKMEM_VERSION_TEXT) > 0 ? EXIT_DONE : EXIT_FAILED);
    const struct command *command = find_command(name);
    if (command == NULL)
        return complain_command(name);
    if (is_help(arguments[2]))
        return finish(print_usage(command));
    return finish(command->run(argument_count - 1, arguments + 1));
}
