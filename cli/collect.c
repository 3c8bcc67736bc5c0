/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "collect.h"

#include "stats/emit.h"
#include "target.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROCESSES_MOST = 1024 };

#define FOLDER "/dev/shm"
#define PREFIX "hakmem."
#define TYPE "# TYPE "
#define END "# EOF\n"

/* The samples of one process, and its labels. */
struct part {
    struct document text;
    char labels[128];
};

void document_add(struct document *document, const char *piece, size_t bytes)
{
    /* One byte more: the texts are searched as strings. */
    size_t wanted = document->bytes + bytes + 1;
    if (wanted > document->room) {
        size_t room = wanted * 2;
        char *larger = realloc(document->start, room);
        document->is_short |= larger == NULL;
        if (larger == NULL)
            return;
        document->start = larger;
        document->room = room;
    }
    memcpy(document->start + document->bytes, piece, bytes);
    document->bytes += bytes;
    document->start[document->bytes] = '\0';
}

static void write_part(void *part, const char *piece, size_t bytes)
{
    document_add(&((struct part *)part)->text, piece, bytes);
}

static bool read_part(struct part *part, int pid)
{
    static struct target target;
    const char *why;
    memset(part, 0, sizeof *part);
    if (!target_read(&target, pid, &why))
        return false;
    for (char *letter = target.name; *letter != '\0'; letter++)
        if (*letter == '"' || *letter == '\\')
            *letter = '?';
    snprintf(part->labels, sizeof part->labels, "pid=\"%d\",program=\"%s\"", pid, target.name);
    hak_emit_openmetrics(&target.page.snapshot, write_part, part);
    return part->text.start != NULL && !part->text.is_short;
}

static int read_parts(struct part *parts)
{
    int count = 0;
    DIR *folder = opendir(FOLDER);
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        char *end;
        if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) != 0)
            continue;
        long pid = strtol(entry->d_name + strlen(PREFIX), &end, 10);
        if (pid <= 0 || pid > 1 << 30 || *end != '\0' || count == PROCESSES_MOST)
            continue;
        if (read_part(&parts[count], (int)pid))
            count++;
        else
            free(parts[count].text.start);
    }
    if (folder != NULL)
        closedir(folder);
    return count;
}

static const char *line_end(const char *line)
{
    const char *end = strchr(line, '\n');
    return end == NULL ? line + strlen(line) : end + 1;
}

/* The samples of a family, which begin after its lines of comment, with the part's labels. */
static void add_samples(struct document *document, const struct part *part, const char *family)
{
    for (const char *line = family, *end; *line != '\0'; line = end) {
        end = line_end(line);
        if (*line == '#' && line != family &&
            (strncmp(line, TYPE, strlen(TYPE)) == 0 || strcmp(line, END) == 0))
            return;
        if (*line == '#')
            continue;
        size_t name_bytes = strcspn(line, "{ ");
        bool has_labels = line[name_bytes] == '{';
        const char *rest = line + name_bytes + has_labels;
        document_add(document, line, name_bytes);
        document_add(document, "{", 1);
        document_add(document, part->labels, strlen(part->labels));
        document_add(document, has_labels ? "," : "}", 1);
        document_add(document, rest, (size_t)(end - rest));
    }
}

/* The start of the metric family with this first line in a part; NULL: it has none. */
static const char *find_family(const struct part *part, const char *type)
{
    char line[256];
    snprintf(line, sizeof line, "%.*s", (int)(line_end(type) - type), type);
    return strstr(part->text.start, line);
}

/* The family that begins at `type` in part `at`, unless an earlier part had it. */
static void add_family(struct document *document, const struct part *parts, int count, int at,
                       const char *type)
{
    for (int i = 0; i < at; i++)
        if (find_family(&parts[i], type) != NULL)
            return;
    for (const char *line = type; *line == '#' && strcmp(line, END) != 0; line = line_end(line)) {
        if (line != type && strncmp(line, TYPE, strlen(TYPE)) == 0)
            break;
        document_add(document, line, (size_t)(line_end(line) - line));
    }
    for (int i = at; i < count; i++) {
        const char *found = find_family(&parts[i], type);
        if (found != NULL)
            add_samples(document, &parts[i], found);
    }
}

void collect_all(struct document *document)
{
    static struct part parts[PROCESSES_MOST];
    int count = read_parts(parts);
    for (int i = 0; i < count; i++)
        for (const char *line = parts[i].text.start; *line != '\0'; line = line_end(line))
            if (strncmp(line, TYPE, strlen(TYPE)) == 0)
                add_family(document, parts, count, i, line);
    document_add(document, END, strlen(END));
    for (int i = 0; i < count; i++)
        free(parts[i].text.start);
}
