/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "target.h"

#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define READ_TRIES 100

static struct reason reason;

static bool read_text(int pid, const char *what, char *text, size_t bytes)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, what);
    FILE *file = fopen(path, "re");
    size_t got = file == NULL ? 0 : fread(text, 1, bytes - 1, file);
    if (file != NULL)
        fclose(file);
    text[got] = '\0';
    return got > 0;
}

/* proc(5): fields of /proc/PID/stat; the name in parentheses may hold anything. */
static bool read_stat(struct target *target, uint64_t *faults)
{
    char line[1024];
    if (!read_text(target->pid, "stat", line, sizeof line))
        return false;
    char *open = strchr(line, '('), *close = strrchr(line, ')');
    if (open == NULL || close == NULL || close[1] != ' ' || close[2] == 'Z' || close[2] == 'X')
        return false;
    snprintf(target->name, sizeof target->name, "%.*s", (int)(close - open - 1), open + 1);
    for (char *i = target->name; *i != '\0'; i++)
        if (*i < ' ' || *i > '~')
            *i = '?';
    uint64_t fields[23] = {0};
    char *at = close + 3;
    for (int field = 4; field < 23 && *at != '\0'; field++)
        fields[field] = strtoull(at, &at, 10);
    *faults = fields[10] + fields[12];
    return true;
}

static int open_board(struct target *target, const struct process *process, const char *path)
{
    const char *name = strrchr(path, '/') + 1;
    int fd = process->folder < 0
                 ? -1
                 : openat(process->folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0)
        return fd;
    target->is_silent = process->folder >= 0 && errno == ENOENT;
    if (target->is_silent)
        refuse(&reason, "process %d does not publish statistics: start it with HAKMEM_STATS_SHM=1",
               target->pid);
    else
        refuse(&reason, "%s cannot be read: %s", path, strerror(errno));
    return -1;
}

/* The same steps as hak_shm_read, except that the kernel copies: the fences order this thread's
 * reads, also those that the kernel makes for it. */
static bool read_page(int fd, struct shm_page *page)
{
    const off_t at = offsetof(struct stats_shm, published);
    for (int tries = 0; tries < READ_TRIES; tries++) {
        uint64_t before, after;
        if (pread(fd, &before, sizeof before, at) != sizeof before || before == 0)
            return false;
        atomic_thread_fence(memory_order_seq_cst);
        off_t from = (off_t)(offsetof(struct stats_shm, pages) + before % 2 * sizeof *page);
        if (pread(fd, page, sizeof *page, from) != sizeof *page)
            return false;
        atomic_thread_fence(memory_order_seq_cst);
        if (pread(fd, &after, sizeof after, at) == sizeof after && after == before)
            return page->snapshot.class_count <= HAK_SNAPSHOT_CLASSES;
    }
    return false;
}

/* Start ticks 0: the process has ended, and its start time is unknown. */
static bool read_board(struct target *target, const struct process *process, int fd,
                       const char *path)
{
    struct shm_head head = {0};
    struct stat about;
    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode))
        return refuse(&reason, "%s is not a file", path);
    if (pread(fd, &head, sizeof head, 0) != sizeof head || head.magic != HAK_SHM_MAGIC)
        return refuse(&reason, "%s does not hold statistics of hakmem", path);
    if (head.layout != hak_shm_layout())
        return refuse(&reason, "%s is of another version of hakmem", path);
    if (process->pid_space != 0 && head.pid_space != process->pid_space)
        return refuse(&reason,
                      "%s is of a process of another PID namespace: process %d does not publish "
                      "statistics",
                      path, target->pid);
    if (head.pid != process->own_pid ||
        (process->start_ticks != 0 && head.start_ticks != process->start_ticks))
        return refuse(&reason,
                      "%s is of an earlier process: process %d does not publish statistics", path,
                      target->pid);
    if (about.st_size != sizeof(struct stats_shm) || !read_page(fd, &target->page))
        return refuse(&reason, "%s is cut short", path);
    target->start_ticks = head.start_ticks;
    target->window_start = head.window_start;
    target->block_start = head.block_start;
    target->record_start = head.record_start;
    target->record_end = head.record_end;
    return true;
}

static void add_resident(struct target *target, uint64_t start, uint64_t bytes)
{
    uint64_t window_end = target->window_start + target->page.snapshot.window_committed_bytes;
    if (start >= target->block_start && start < window_end)
        target->heap_bytes += bytes;
    else if (start >= target->record_start && start < target->record_end)
        target->record_bytes += bytes;
    else
        target->other_bytes += bytes;
}

static void read_resident(struct target *target)
{
    char path[64], line[512];
    uint64_t start = 0, end, kib;
    target->heap_bytes = target->record_bytes = target->other_bytes = 0;
    snprintf(path, sizeof path, "/proc/%d/smaps", target->pid);
    FILE *file = fopen(path, "re");
    target->has_smaps = false;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &start, &end) == 2)
            continue;
        if (sscanf(line, "Rss: %" SCNu64, &kib) == 1) {
            add_resident(target, start, kib << 10);
            target->has_smaps = true;
        }
    }
    if (file != NULL)
        fclose(file);
    uint64_t pages = 0;
    if (!target->has_smaps && read_text(target->pid, "statm", line, sizeof line) &&
        sscanf(line, "%*u %" SCNu64, &pages) == 1)
        target->other_bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Until `now_ms`, on the clock that ticks are of. */
static void set_up_time(struct target *target, uint64_t now_ms)
{
    uint64_t start_ms = target->start_ticks * 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
    target->up_ms = now_ms > start_ms ? now_ms - start_ms : 0;
}

static uint64_t ms_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static bool read_file(struct target *target, const struct process *process)
{
    char path[64];
    snprintf(path, sizeof path, HAK_SHM_PATH "%" PRIu64, process->own_pid);
    int fd = open_board(target, process, path);
    if (fd < 0)
        return false;
    bool is_read = read_board(target, process, fd, path);
    close(fd);
    return is_read;
}

static bool has_left(int pid)
{
    char path[64];
    snprintf(path, sizeof path, HAK_SHM_PATH "%d", pid);
    return access(path, F_OK) == 0;
}

bool target_read_numbers(struct target *target, const struct process *process, const char **why)
{
    *why = reason.text;
    target->pid = process->pid;
    target->has_ended = target->is_silent = false;
    return read_file(target, process);
}

bool target_read(struct target *target, int pid, const char **why)
{
    struct process process;
    uint64_t faults;
    *why = reason.text;
    target->pid = pid;
    target->has_ended = target->is_silent = false;
    if (!process_find(&process, pid) || !read_stat(target, &faults)) {
        target->has_ended = true;
        return refuse(&reason, "there is no process %d%s", pid,
                      has_left(pid) ? ": --once shows what it left" : "");
    }
    bool is_read = read_file(target, &process);
    process_leave(&process);
    if (!is_read)
        return false;
    target->faults = faults;
    set_up_time(target, ms_of(CLOCK_BOOTTIME));
    read_resident(target);
    return true;
}

bool target_read_left(struct target *target, int pid, const char **why)
{
    struct process process = {.own_pid = (uint64_t)pid};
    *why = reason.text;
    memset(target, 0, sizeof *target);
    target->pid = pid;
    target->has_ended = true;
    snprintf(target->name, sizeof target->name, "ended");
    if (!has_left(pid))
        return refuse(&reason, "there is no process %d", pid);
    process.folder = open("/dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_read = read_file(target, &process);
    process_leave(&process);
    if (!is_read)
        return false;
    /* Its last moment, as if the machine had not slept since. */
    set_up_time(target,
                ms_of(CLOCK_BOOTTIME) + target->page.clock_ms - ms_of(CLOCK_MONOTONIC_COARSE));
    return true;
}
