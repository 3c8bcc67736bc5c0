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

#define FOLDER "/dev/shm"
#define PREFIX "hakmem.profile."
enum { FOLDERS_MOST = 256, BOXES_MOST = 4096 };

/* A process that runs. */
struct running {
    uint64_t pid, pid_space, start_ticks;
};

struct search {
    struct boxes *boxes;
    struct running *running;
    uint32_t running_count;
    struct {
        dev_t device;
        ino_t inode;
    } folders[FOLDERS_MOST];
    uint32_t folder_count;
};

static bool is_running(const struct search *search, const struct board_head *head)
{
    for (uint32_t i = 0; i < search->running_count; i++) {
        const struct running *one = &search->running[i];
        if (one->pid == head->pid && one->pid_space == head->pid_space &&
            one->start_ticks == head->start_ticks)
            return true;
    }
    return false;
}

static bool is_box_name(const char *name)
{
    size_t prefix_bytes = strlen(PREFIX);
    if (strncmp(name, PREFIX, prefix_bytes) != 0)
        return false;
    name += prefix_bytes;
    size_t digits = strspn(name, "0123456789");
    return digits > 0 && (name[digits] == '\0' || strcmp(name + digits, HAK_SHARED_LAST) == 0);
}

static bool read_head(int folder, const char *name, struct board_head *head)
{
    struct stat about;
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool is_read = fd >= 0 && fstat(fd, &about) == 0 && S_ISREG(about.st_mode) &&
                   pread(fd, head, sizeof *head, 0) == (ssize_t)sizeof *head;
    if (fd >= 0)
        close(fd);
    return is_read && head->magic == HAK_BOARD_MAGIC && head->version == HAK_BOARD_VERSION &&
           head->is_kept != 0;
}

static void add(struct search *search, const char *where, const char *name,
                const struct board_head *head)
{
    struct boxes *boxes = search->boxes;
    uint64_t after_ms =
        head->refreshed_ms > head->start_ms ? head->refreshed_ms - head->start_ms : 0;
    if (boxes->count == BOXES_MOST)
        return;
    boxes->start = grow(boxes->start, boxes->count + 1u, sizeof *boxes->start);
    struct box *box = &boxes->start[boxes->count++];
    *box = (struct box){.pid = head->pid,
                        .heard_unix_ms = head->start_unix_ms + after_ms,
                        .is_alive = is_running(search, head)};
    snprintf(box->path, sizeof box->path, "%.63s/%.48s", where, name);
    snprintf(box->name, sizeof box->name, "%.*s", (int)sizeof head->name, head->name);
    for (char *letter = box->name; *letter != '\0'; letter++)
        if ((unsigned char)*letter < ' ' || *letter == 0x7f)
            *letter = '?';
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
    struct board_head head;
    int fd = folder < 0 || is_known(search, folder)
                 ? -1
                 : openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = fd < 0 ? NULL : fdopendir(fd);
    for (struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;)
        if (is_box_name(entry->d_name) && read_head(folder, entry->d_name, &head))
            add(search, where, entry->d_name, &head);
    if (entries != NULL)
        closedir(entries);
    else if (fd >= 0)
        close(fd);
}

/* All processes: those that run, or where the boxes of their containers are. */
static void visit(struct search *search, void (*use)(struct search *search, struct process *one))
{
    DIR *folder = opendir("/proc");
    struct process process;
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        int pid = atoi(entry->d_name);
        if (pid <= 0 || !process_find(&process, pid))
            continue;
        use(search, &process);
        process_leave(&process);
    }
    if (folder != NULL)
        closedir(folder);
}

static void note_running(struct search *search, struct process *one)
{
    search->running = grow(search->running, search->running_count + 1u, sizeof *search->running);
    search->running[search->running_count++] =
        (struct running){one->own_pid, one->pid_space, one->start_ticks};
}

static void look_beside(struct search *search, struct process *one)
{
    char where[64];
    snprintf(where, sizeof where, "/proc/%d/root" FOLDER, one->pid);
    look_in(search, one->folder, where);
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
    visit(&search, note_running);
    int ours = open(FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    look_in(&search, ours, FOLDER);
    if (ours >= 0)
        close(ours);
    visit(&search, look_beside);
    free(search.running);
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
