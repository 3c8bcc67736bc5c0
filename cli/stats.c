/* SPDX-License-Identifier: MIT */
#include "command.h"
#include "profiles/patience.h"
#include "statistics.h"
#include "stats/emit.h"
#include "words.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* No file of statistics is larger than this, and no reader waits for one that has no end. */
#define FILE_BYTES_MOST ((size_t)256 << 20)

static void write_out(void *unused, const char *piece, size_t bytes)
{
    (void)unused;
    fwrite(piece, 1, bytes, stdout);
}

/* A report for people; it may come from anywhere, so control characters become '?'. */
static void print_text(const struct report *report)
{
    for (size_t i = 0; i < report->text_bytes; i++) {
        unsigned char letter = (unsigned char)report->text[i];
        putchar((letter < ' ' && letter != '\n') || letter == 0x7f ? '?' : letter);
    }
}

static void print_unknown(const struct report *report)
{
    bool is_first = true;
    for (size_t i = 0; i < report->count; i++) {
        const struct number *number = &report->numbers[i];
        if (number->is_known)
            continue;
        if (is_first)
            puts("\nNot known to this version");
        is_first = false;
        printf("%-24s %10" PRIu64 "\n", number->name, number->value);
    }
}

static void print_report(struct report *report, enum emit_detail detail)
{
    static struct snapshot snapshot;
    if (report->text != NULL) {
        print_text(report);
        return;
    }
    report_to_snapshot(report, &snapshot);
    hak_emit_tables(&snapshot, detail, write_out, NULL);
    print_unknown(report);
}

/* The whole file, in a block that the caller frees; NULL: said why. */
static char *read_file(const char *path, size_t *bytes)
{
    bool is_input = strcmp(path, "-") == 0;
    int fd = is_input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    size_t room = 1 << 16;
    char *start = fd < 0 ? NULL : malloc(room);
    *bytes = 0;
    for (ssize_t got;
         start != NULL && (got = read_patiently(fd, start + *bytes, room - *bytes)) != 0;) {
        if (got > 0)
            *bytes += (size_t)got;
        bool is_too_large = *bytes == FILE_BYTES_MOST;
        char *larger = start;
        if (got > 0 && !is_too_large && *bytes == room)
            larger = realloc(start, room *= 2);
        if (is_too_large)
            errno = EFBIG;
        if (got < 0 || is_too_large || larger == NULL) {
            free(start);
            larger = NULL;
        }
        start = larger;
    }
    if (start == NULL)
        complain(0, "%.200s: %s", shown_name(path), strerror(errno));
    if (fd >= 0)
        close(fd);
    return start;
}

static int show(const char *path, struct reader *reader, enum emit_detail detail)
{
    int reports = 0;
    struct report report = {0};
    for (; report_read(reader, &report); reports++) {
        printf("%s", reports > 0 ? "\n" : "");
        print_report(&report, detail);
        report.count = 0;
        report.text = NULL;
    }
    free(report.numbers);
    if (reader->wrong != NULL)
        return complain(EXIT_FAILED, "%.200s: line %u %s", path, reader->line, reader->wrong);
    if (reports == 0)
        return complain(EXIT_FAILED, "%.200s: the file is empty", path);
    return EXIT_DONE;
}

int command_stats(int argument_count, char **arguments)
{
    (void)argument_count;
    bool is_all = false;
    char **words = arguments + 1;
    const struct word_option options[] = {{"--all", &is_all, NULL}, {0}};
    int understood = words_read("stats", words, options);
    if (understood != EXIT_DONE)
        return understood;
    if (words[0] == NULL)
        return complain_usage("stats");
    if (words[1] != NULL)
        return complain_word("stats", words[1]);
    const char *path = words[0];
    size_t bytes;
    char *text = read_file(path, &bytes);
    if (text == NULL)
        return EXIT_FAILED;
    struct reader reader = {.at = text, .end = text + bytes, .line = 1};
    int status = show(path, &reader, is_all ? EMIT_WHOLE : EMIT_SHORT);
    free(text);
    return status;
}
