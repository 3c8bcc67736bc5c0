/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "process.h"

#include "os/shared.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SHM "/dev/shm"

uint64_t shared_clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

bool process_is_own(const struct process *process)
{
    return geteuid() == 0 || geteuid() == process->user;
}

static size_t read_text(int pid, const char *what, char *text, size_t bytes)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, what);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, bytes - 1);
    if (fd >= 0)
        close(fd);
    text[got < 0 ? 0 : got] = '\0';
    return got < 0 ? 0 : (size_t)got;
}

/* What follows `key` in a text of lines; "": it is not there. */
static const char *value_of(const char *text, const char *key)
{
    const char *found = strstr(text, key);
    return found == NULL ? "" : found + strlen(key);
}

/* The last number of a line: the id in the innermost space. */
static uint64_t last_number(const char *line)
{
    uint64_t number = 0;
    while (*line != '\n' && *line != '\0') {
        char *end;
        uint64_t next = strtoull(line, &end, 10);
        if (end == line)
            break;
        number = next;
        line = end;
    }
    return number;
}

static void read_status(struct process *process, const char *text)
{
    unsigned long real, effective;
    const char *name = value_of(text, "Name:\t");
    snprintf(process->name, sizeof process->name, "%.*s", (int)strcspn(name, "\n"), name);
    for (char *letter = process->name; *letter != '\0'; letter++)
        if (*letter < ' ' || *letter > '~')
            *letter = '?';
    process->is_zombie = strchr("ZX", *value_of(text, "\nState:\t")) != NULL;
    process->own_pid = last_number(value_of(text, "\nNSpid:"));
    if (process->own_pid == 0) /* before Linux 4.1 */
        process->own_pid = (uint64_t)process->pid;
    if (sscanf(value_of(text, "\nUid:"), "%lu %lu", &real, &effective) == 2)
        process->user = (uid_t)effective;
    process->resident_bytes = strtoull(value_of(text, "\nVmRSS:"), NULL, 10) << 10;
}

static uint64_t inode_of(int pid, const char *what)
{
    char path[64];
    struct stat about;
    snprintf(path, sizeof path, "/proc/%d/%s", pid, what);
    return stat(path, &about) == 0 ? about.st_ino : 0;
}

static bool has_our_root(int pid)
{
    char path[64];
    struct stat ours, theirs;
    snprintf(path, sizeof path, "/proc/%d/root", pid);
    return stat(path, &theirs) != 0 || /* which the kernel shows to its user and root only */
           (stat("/", &ours) == 0 && ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino &&
            inode_of(pid, "ns/mnt") == inode_of((int)getpid(), "ns/mnt"));
}

static int open_folder(int pid)
{
    char path[64];
    const int step = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    if (has_our_root(pid))
        return open(SHM, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    snprintf(path, sizeof path, "/proc/%d/root", pid);
    int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int devices = root < 0 ? -1 : openat(root, "dev", step);
    int folder =
        devices < 0 ? -1 : openat(devices, "shm", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (devices >= 0)
        close(devices);
    if (root >= 0)
        close(root);
    return folder;
}

bool process_find(struct process *process, int pid)
{
    char text[4096];
    memset(process, 0, sizeof *process);
    process->pid = pid;
    process->folder = -1;
    if (read_text(pid, "status", text, sizeof text) == 0)
        return false;
    read_status(process, text);
    if (process->is_zombie)
        return false;
    process->start_ticks = hak_os_start_ticks((uint32_t)pid);
    process->pid_space = inode_of(pid, "ns/pid");
    process->folder = open_folder(pid);
    return true;
}

void process_leave(struct process *process)
{
    if (process->folder >= 0)
        close(process->folder);
    process->folder = -1;
}

void processes_visit(void (*use)(int pid, void *context), void *context)
{
    DIR *folder = opendir("/proc");
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        int pid = atoi(entry->d_name);
        if (pid > 0)
            use(pid, context);
    }
    if (folder != NULL)
        closedir(folder);
}

bool process_maps(int pid, const char *text, bool if_unreadable)
{
    char path[64], *line = NULL;
    size_t room = 0;
    bool is_found = false;
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return if_unreadable;
    while (!is_found && getline(&line, &room, file) > 0)
        is_found = strstr(line, text) != NULL;
    free(line);
    fclose(file);
    return is_found;
}
