/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "command.h"
#include "conf/conf_text.h"
#include "conf/conf_value.h"
#include "program.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Where a library is, seen from the folder of this program: beside it, as it is built, or where it
 * is installed. */
struct library {
    const char *built;
    const char *installed;
};
static const struct library allocator = {"libhakmem.so", HAK_LIBRARY_FROM_PROGRAM};
static const struct library checked_copies = {"libhakmem-bounds.so", HAK_BOUNDS_FROM_PROGRAM};

/* The library's path; false: there is none, which has been said. */
static bool find_library(const struct library *library, char *path)
{
    char own[PATH_MAX], wanted[2 * PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    if (length <= 0) {
        complain(0, "cannot determine the path of this program: %s", strerror(errno));
        return false;
    }
    own[length] = '\0';
    own[strrchr(own, '/') - own] = '\0';
    const char *const places[] = {library->built, library->installed};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(wanted, sizeof wanted, "%s/%s", own, places[i]);
        char *found = realpath(wanted, path);
        if (found != NULL && access(found, R_OK) == 0)
            return true;
    }
    complain(0, "%s is neither in %s nor at %s/%s", library->built, own, own, library->installed);
    return false;
}

/* Adds a library before those preloaded already. */
static bool preload(const char *library)
{
    if (strpbrk(library, " :") != NULL) {
        complain(0, "LD_PRELOAD cannot hold a path with a space or a colon: %s", library);
        return false;
    }
    const char *others = getenv("LD_PRELOAD");
    bool is_alone = others == NULL || *others == '\0';
    char *both = NULL;
    bool is_set =
        asprintf(&both, "%s%s%s", library, is_alone ? "" : ":", is_alone ? "" : others) >= 0 &&
        setenv("LD_PRELOAD", both, 1) == 0;
    free(both);
    if (!is_set)
        complain(0, "no memory");
    return is_set;
}

/* Sets one option in the environment; false: it is wrong, which has been said. */
static bool set_option(const char *name, size_t name_bytes, const char *value)
{
    enum conf_option option = hak_conf_find_bytes(name, name_bytes);
    if (option == CONF_COUNT) {
        complain_option(name, name_bytes);
        return false;
    }
    const struct conf_row *row = &hak_conf_rows[option];
    int64_t number;
    if (!hak_conf_parse(row, value, strlen(value), &number)) {
        char range[256];
        struct text text = {.start = range, .bytes = sizeof range - 1};
        hak_conf_add_range(&text, row);
        range[text.used] = '\0';
        complain(0, "%s: bad value '%.60s', accepted: %s", row->name, value, range);
        return false;
    }
    char variable[64] = "HAKMEM_";
    for (size_t i = 0; row->name[i] != '\0'; i++)
        variable[strlen("HAKMEM_") + i] = (char)toupper((unsigned char)row->name[i]);
    return setenv(variable, value, 1) == 0;
}

/* The value of an argument that takes one, in the same word or the next; NULL: it is not `name`, or
 * has none. */
static const char *value_of(const char *name, char **arguments, int *at)
{
    size_t bytes = strlen(name);
    if (strncmp(arguments[*at], name, bytes) != 0)
        return NULL;
    const char *rest = arguments[*at] + bytes;
    if (*rest == '\0' && arguments[*at + 1] != NULL)
        return arguments[++*at];
    if (name[1] == '-')
        return *rest == '=' ? rest + 1 : NULL;
    return *rest != '\0' ? rest : NULL;
}

struct wishes {
    bool is_strict;
    bool checks_copies;
};

/* Takes one argument of hakmem's own; false: wrong, which has been said. */
static bool take_argument(char **arguments, int *at, struct wishes *wishes)
{
    if (strcmp(arguments[*at], "--strict") == 0)
        return wishes->is_strict = true;
    if (strcmp(arguments[*at], "--bounds") == 0)
        return wishes->checks_copies = true;
    const char *mode = value_of("--mode", arguments, at);
    if (mode != NULL)
        return set_option("mode", strlen("mode"), mode);
    const char *setting = value_of("-o", arguments, at);
    if (setting == NULL) {
        if (strcmp(arguments[*at], "--mode") == 0 || strcmp(arguments[*at], "-o") == 0)
            complain(0, "run: nothing follows %s", arguments[*at]);
        else
            complain_word("run", arguments[*at]);
        return false;
    }
    struct conf_pair pair;
    if (!hak_conf_split(setting, setting + strlen(setting), &pair) || pair.value == NULL) {
        complain(0, "-o takes NAME=VALUE, not '%.60s'", setting);
        return false;
    }
    char value[HAK_CONF_TEXT_BYTES + 1];
    snprintf(value, sizeof value, "%.*s", (int)(pair.value_bytes & INT_MAX), pair.value);
    return set_option(pair.name, pair.name_bytes, value);
}

/* Looks at the program's file before it runs; false: it is not to run without hakmem, which has
 * been said. */
static bool look_at(const char *program, bool is_strict)
{
    const char *obstacle = program_obstacle(program);
    if (obstacle != NULL)
        complain(0, "%.200s %s: %s", program, obstacle,
                 is_strict ? "not run (--strict)" : "it runs without hakmem");
    return obstacle == NULL || !is_strict;
}

static bool preload_wished(const struct wishes *wishes)
{
    char library[PATH_MAX];
    if (wishes->checks_copies && !(find_library(&checked_copies, library) && preload(library)))
        return false;
    return find_library(&allocator, library) && preload(library);
}

int command_run(int argument_count, char **arguments)
{
    int at = 1;
    struct wishes wishes = {.is_strict = false};
    for (; at < argument_count && arguments[at][0] == '-'; at++) {
        if (strcmp(arguments[at], "--") == 0) {
            at++;
            break;
        }
        if (!take_argument(arguments, &at, &wishes))
            return EXIT_USAGE;
    }
    if (at >= argument_count)
        return complain(EXIT_USAGE, "run: the program is missing");
    if (program_bears_preload(arguments[at]) && !preload_wished(&wishes))
        return EXIT_FAILED;
    if (!look_at(arguments[at], wishes.is_strict))
        return EXIT_NOT_EXECUTABLE;
    execvp(arguments[at], arguments + at);
    int status = errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
    return complain(status, "%.200s: %s", shown_name(arguments[at]), strerror(errno));
}
