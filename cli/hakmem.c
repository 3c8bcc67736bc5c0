/* SPDX-License-Identifier: MIT */
/* cli/hakmem.c - the command `hakmem`: finds the subcommand. */
#include "top.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int (*run)(int argument_count, char **arguments);
    const char *meaning;
} commands[] = {
    {"top", top_main, "shows where the memory of a running process is"},
};
#define COMMAND_COUNT (sizeof commands / sizeof *commands)

static void print_usage(FILE *to)
{
    fputs("usage: hakmem COMMAND ARGUMENTS\n", to);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        fprintf(to, "  %-8s %s\n", commands[i].name, commands[i].meaning);
}

int main(int argument_count, char **arguments)
{
    const char *name = argument_count > 1 ? arguments[1] : "";
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(commands[i].name, name) == 0)
            return commands[i].run(argument_count - 1, arguments + 1);
    bool is_help = strcmp(name, "--help") == 0 || strcmp(name, "help") == 0;
    print_usage(is_help ? stdout : stderr);
    return is_help ? 0 : 2;
}
