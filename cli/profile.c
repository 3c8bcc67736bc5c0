/* SPDX-License-Identifier: MIT */
#include "command.h"
#include "profiles/formats.h"
#include "profiles/rows.h"
#include "profiles/source.h"
#include "profiles/symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum print { PRINT_TABLE, PRINT_FOLDED, PRINT_JSON, PRINT_LEAKS, PRINT_NONE };

struct wish {
    enum print print;
    enum value value; /* of folded stacks */
    bool is_all;
    const char *pprof, *heap_v2, *flame;
    const char *words[2];
    int word_count;
};

static const uint64_t minute_ns = UINT64_C(60000000000);

/* The option that takes a file, or NULL. */
static const char **file_option(struct wish *wish, const char *word)
{
    if (strcmp(word, "--pprof") == 0)
        return &wish->pprof;
    if (strcmp(word, "--heap-v2") == 0)
        return &wish->heap_v2;
    return strcmp(word, "--flame") == 0 ? &wish->flame : NULL;
}

static bool understand_flag(struct wish *wish, const char *word)
{
    if (strcmp(word, "--folded") == 0)
        wish->print = PRINT_FOLDED;
    else if (strcmp(word, "--json") == 0)
        wish->print = PRINT_JSON;
    else if (strcmp(word, "--leaks") == 0)
        wish->print = PRINT_LEAKS;
    else if (strcmp(word, "--live") == 0)
        wish->value = VALUE_LIVE_BYTES;
    else if (strcmp(word, "--allocated") == 0)
        wish->value = VALUE_ALLOCATED_BYTES;
    else if (strcmp(word, "--all") == 0)
        wish->is_all = true;
    else
        return false;
    return true;
}

/* Standard input, or standard output. */
static bool is_standard(const char *path)
{
    return strcmp(path, "-") == 0;
}

static bool is_option(const char *word)
{
    return *word == '-' && !is_standard(word);
}

static int understand(struct wish *wish, char **arguments, int most)
{
    for (; *arguments != NULL; arguments++) {
        const char **file = file_option(wish, *arguments), *next = arguments[1];
        if (file != NULL && (next == NULL || *next == '\0' || is_option(next)))
            return complain(EXIT_USAGE, "profile: %s takes the name of a file", *arguments);
        if (file != NULL)
            *file = *++arguments;
        else if (is_option(*arguments) && !understand_flag(wish, *arguments))
            return complain(EXIT_USAGE,
                            "profile: there is no option '%.60s'; hakmem profile --help",
                            *arguments);
        else if (!is_option(*arguments) && wish->word_count == most)
            return complain(EXIT_USAGE, "profile: not also '%.60s'; hakmem profile --help",
                            *arguments);
        else if (!is_option(*arguments))
            wish->words[wish->word_count++] = *arguments;
    }
    return EXIT_DONE;
}

/* An incomplete file is removed, but not a device. */
static void remove_file(const char *path)
{
    struct stat about;
    if (!is_standard(path) && lstat(path, &about) == 0 && S_ISREG(about.st_mode))
        unlink(path);
}

/* A new file is for its owner alone, as those of the library are: it names what a program does. */
static FILE *open_file(const char *path)
{
    int fd = is_standard(path) ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
                               : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    return fd < 0 ? NULL : fdopen(fd, "w");
}

static int write_file(struct profile *profile, const char *path,
                      bool (*write)(struct profile *profile, FILE *to))
{
    FILE *to = open_file(path);
    if (to == NULL)
        return complain(EXIT_FAILED, "profile: %.200s: %s", path, strerror(errno));
    errno = 0;
    bool is_written = write(profile, to) && ferror(to) == 0;
    int error = errno;
    if (fclose(to) == 0 && is_written)
        return EXIT_DONE;
    error = error == 0 ? errno : error;
    remove_file(path);
    return complain(EXIT_FAILED, "profile: %.200s %s%s%s", path,
                    *profile->wrong != '\0' ? profile->wrong : "cannot be written",
                    error == 0 ? "" : ": ", error == 0 ? "" : strerror(error));
}

static bool write_heap_v2(struct profile *profile, FILE *to)
{
    heap_v2_write(profile, to);
    return true;
}

static bool write_flame(struct profile *profile, FILE *to)
{
    flame_write(profile, to);
    return true;
}

/* Old is a block of a minute, or of half of a profile that is shorter. */
static uint64_t old_ns(const struct profile *profile)
{
    uint64_t half = profile->duration_ns / 2;
    return half < minute_ns ? half : minute_ns;
}

static int print_leaks(const struct table *table, struct rows *rows, const struct source *source)
{
    if (!source->profile.has_ages)
        return complain(EXIT_FAILED, "profile: %.100s does not record when blocks were allocated",
                        source->path);
    table_leaks(table, rows, &source->profile, old_ns(&source->profile));
    return EXIT_DONE;
}

static void say_missing(void)
{
    if (symbols_missing() != NULL)
        printf("without function names: %s\n", symbols_missing());
}

static int print_rows(const struct wish *wish, const struct source *source)
{
    struct table table;
    struct rows rows;
    int status = EXIT_DONE;
    table_begin(&table);
    if (wish->is_all)
        table.rows_most = UINT32_MAX;
    rows_make(&rows, &source->profile, BY_LINE);
    rows_sort(&rows, ORDER_LIVE);
    if (wish->print == PRINT_LEAKS)
        status = print_leaks(&table, &rows, source);
    else
        table_profile(&table, &rows, &source->profile);
    if (status == EXIT_DONE)
        say_missing();
    rows_free(&rows);
    return status;
}

static int print(const struct wish *wish, const struct source *source)
{
    if (wish->print == PRINT_FOLDED)
        folded_write(&source->profile, wish->value, stdout);
    else if (wish->print == PRINT_JSON)
        json_write(&source->profile, stdout);
    else if (wish->print != PRINT_NONE)
        return print_rows(wish, source);
    return EXIT_DONE;
}

static int show(const struct wish *wish, struct source *source)
{
    struct profile *profile = &source->profile;
    int status = EXIT_DONE;
    if (wish->value == VALUE_ALLOCATED_BYTES && !profile->has_allocated)
        return complain(EXIT_FAILED, "profile: %.100s does not record allocated bytes",
                        source->path);
    source_name(source, NAMES_WHERE_KNOWN);
    /* Readers of pprof look up missing names themselves. */
    if (wish->pprof != NULL)
        status = write_file(profile, wish->pprof, pprof_write);
    if (status == EXIT_DONE && wish->heap_v2 != NULL)
        status = write_file(profile, wish->heap_v2, write_heap_v2);
    profile_name_unknown(profile);
    if (status == EXIT_DONE && wish->flame != NULL)
        status = write_file(profile, wish->flame, write_flame);
    return status == EXIT_DONE ? print(wish, source) : status;
}

static int compare(const struct wish *wish)
{
    struct source before, now;
    struct table table;
    bool is_read = source_read(&before, "profile", wish->words[0]);
    if (!is_read || !source_read(&now, "profile", wish->words[1])) {
        source_end(&before);
        if (is_read)
            source_end(&now);
        return EXIT_FAILED;
    }
    source_name(&before, NAMES_FOR_ALL);
    source_name(&now, NAMES_FOR_ALL);
    struct rows before_rows, rows;
    rows_make(&before_rows, &before.profile, BY_FUNCTION);
    rows_make(&rows, &now.profile, BY_FUNCTION);
    rows_compare(&rows, &now.profile, &before_rows, &before.profile);
    rows_sort(&rows, ORDER_GROWTH);
    table_begin(&table);
    if (wish->is_all)
        table.rows_most = UINT32_MAX;
    table_growth(&table, &rows, &now.profile, 0);
    rows_free(&before_rows);
    rows_free(&rows);
    source_end(&before);
    source_end(&now);
    return EXIT_DONE;
}

static int compare_two(char **arguments)
{
    struct wish wish = {0};
    int status = understand(&wish, arguments, 2);
    if (status != EXIT_DONE)
        return status;
    if (wish.word_count != 2 || wish.print != PRINT_TABLE || wish.pprof != NULL ||
        wish.heap_v2 != NULL || wish.flame != NULL)
        return complain(EXIT_USAGE, "profile diff: two profiles, and no option but --all");
    return compare(&wish);
}

int command_profile(int argument_count, char **arguments)
{
    if (argument_count > 1 && strcmp(arguments[1], "diff") == 0)
        return compare_two(arguments + 2);
    struct wish wish = {.value = VALUE_LIVE_BYTES};
    int status = understand(&wish, arguments + 1, 1);
    if (status != EXIT_DONE)
        return status;
    if (wish.word_count == 0)
        return complain(EXIT_USAGE, "profile: the process or the file is missing; "
                                    "hakmem profile --help");
    bool has_file = wish.pprof != NULL || wish.heap_v2 != NULL || wish.flame != NULL;
    if (has_file && wish.print == PRINT_TABLE)
        wish.print = PRINT_NONE;
    struct source source;
    status = source_read(&source, "profile", wish.words[0]) ? show(&wish, &source) : EXIT_FAILED;
    source_end(&source);
    return status;
}
