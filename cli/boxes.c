/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "boxes.h"

#include "os/shared.h"
#include "process.h"
#include "profile/board.h"
#include "profiles/model.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { FOLDERS_MOST = 256, BOXES_MOST = 4096 };

struct search {
    struct boxes *boxes;
    struct {
        dev_t device;
        ino_t inode;
    } folders[FOLDERS_MOST];
    uint32_t folder_count;
};

static bool is_box_name(const char *name)
{
    size_t prefix_bytes = strlen(HAK_BOARD_NAME);
    if (strncmp(name, HAK_BOARD_NAME, prefix_bytes) != 0)
        return false;
    name += prefix_bytes;
    size_t digits = strspn(name, "0123456789");
    return digits > 0 && (name[digits] == '\0' || strcmp(name + digits, HAK_SHARED_LAST) == 0);
}

static void add(struct search *search, const char *where, const char *name,
                const struct shared_file *file)
{
    struct boxes *boxes = search->boxes;
    const struct board_head *head = file->head;
    uint64_t after_ms =
        head->refreshed_ms > head->start_ms ? head->refreshed_ms - head->start_ms : 0;
    if (boxes->count == BOXES_MOST)
        return;
    boxes->start = grow(boxes->start, boxes->count + 1u, sizeof *boxes->start);
    struct box *box = &boxes->start[boxes->count++];
    *box =
        (struct box){.pid = head->pid,
                     .heard_unix_ms = head->start_unix_ms + after_ms,
                     .is_alive = !hak_os_shared_is_left(file, head->pid_space, head->start_ticks)};
    snprintf(box->path, sizeof box->path, "%.63s/%.48s", where, name);
    snprintf(box->name, sizeof box->name, "%.*s", (int)sizeof head->name - 1, head->name);
    for (char *letter = box->name; *letter != '\0'; letter++)
        if ((unsigned char)*letter < ' ' || *letter == 0x7f)
            *letter = '?';
}

static void look_at_file(struct search *search, int folder, const char *where, const char *name)
{
    struct stat about;
    struct board_head head;
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode) &&
        pread(fd, &head, sizeof head, 0) == (ssize_t)sizeof head && head.magic == HAK_BOARD_MAGIC &&
        head.version == HAK_BOARD_VERSION && head.is_kept != 0)
        add(search, where, name,
            &(struct shared_file){.head = &head, .number = (uint32_t)head.pid, .fd = fd});
    close(fd);
}

/* One folder is seen by many processes. */
static bool is_known(struct search *search, int folder)
{
    struct stat about;
    if (fstat(folder, &about) != 0 || search->folder_count == FOLDERS_MOST)
        return true;
    for (uint32_t i = 0; i < search->folder_count; i++)
        if (search->folders[i].device == about.st_dev && search->folders[i].inode == about.st_ino)
            return true;
    search->folders[search->folder_count].device = about.st_dev;
    search->folders[search->folder_count++].inode = about.st_ino;
    return false;
}

static void look_in(struct search *search, int folder, const char *where)
{
    int fd = folder < 0 || is_known(search, folder)
                 ? -1
                 : openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = fd < 0 ? NULL : fdopendir(fd);
    for (struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;)
        if (is_box_name(entry->d_name))
            look_at_file(search, folder, where, entry->d_name);
    if (entries != NULL)
        closedir(entries);
    else if (fd >= 0)
        close(fd);
}

/* The boxes of a process's container are where it finds its own. */
static void look_beside(int pid, void *context)
{
    struct process process;
    char where[64];
    if (!process_find(&process, pid))
        return;
    snprintf(where, sizeof where, "/proc/%d/root" HAK_BOARD_FOLDER, pid);
    look_in(context, process.folder, where);
    process_leave(&process);
}

static int compare(const void *left, const void *right)
{
    const struct box *first = left, *second = right;
    if (first->is_alive != second->is_alive)
        return first->is_alive ? 1 : -1;
    return first->heard_unix_ms > second->heard_unix_ms   ? -1
           : first->heard_unix_ms < second->heard_unix_ms ? 1
                                                          : strcmp(first->path, second->path);
}

void boxes_find(struct boxes *boxes)
{
    static struct search search;
    search = (struct search){.boxes = boxes};
    *boxes = (struct boxes){0};
    int ours = open(HAK_BOARD_FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    look_in(&search, ours, HAK_BOARD_FOLDER);
    if (ours >= 0)
        close(ours);
    processes_visit(look_beside, &search);
    if (boxes->count > 0)
        qsort(boxes->start, boxes->count, sizeof *boxes->start, compare);
}

void boxes_end(struct boxes *boxes)
{
    free(boxes->start);
    *boxes = (struct boxes){0};
}

const struct box *boxes_named(const struct boxes *boxes, const char *name)
{
    for (uint32_t i = 0; i < boxes->count; i++)
        if (strcmp(boxes->start[i].name, name) == 0)
            return &boxes->start[i];
    return NULL;
}

char *utc_text(char text[32], uint64_t unix_ms)
{
    time_t seconds = (time_t)(unix_ms / 1000);
    struct tm utc;
    *text = '\0';
    if (gmtime_r(&seconds, &utc) != NULL)
        strftime(text, 32, "%Y-%m-%d %H:%M:%S UTC", &utc);
    return text;
}

void boxes_print(const struct boxes *boxes)
{
    char when[32];
    bool is_any = false;
    for (uint32_t i = 0; i < boxes->count && !boxes->start[i].is_alive; i++) {
        const struct box *box = &boxes->start[i];
        if (!is_any)
            puts("last update              process  program           file");
        printf("%-23s %8" PRIu64 "  %-16s  %s\n", utc_text(when, box->heard_unix_ms), box->pid,
               box->name, box->path);
        is_any = true;
    }
    if (!is_any)
        puts("no process left a black box; those that run with HAKMEM_BLACKBOX=on do");
}
