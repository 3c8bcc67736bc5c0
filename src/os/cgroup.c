/* SPDX-License-Identifier: MIT */
#include "os/cgroup.h"

#include "base/bits.h"
#include "base/limits.h"
#include "base/text.h"
#include "os/os.h"
#include "os/os_file.h"

#include <string.h>

#define LINE_BYTES 256
#define MOST_CPUS 65536u

/* Reads a small file whole; false: it cannot be read, or is no small one. */
static bool read_small(const char *path, char *text, size_t bytes)
{
    long count = hak_os_read_text(path, text, bytes);
    return count > 0 && (size_t)count < bytes - 1;
}

/* Reads a number at the start of *text and moves *text behind it; SIZE_MAX if it is too large.
 * False: there is none. */
static bool take_number(const char **text, size_t *number)
{
    const char *at = *text;
    size_t value = 0;
    if (*at < '0' || *at > '9')
        return false;
    for (; *at >= '0' && *at <= '9'; at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (size_t)(*at - '0'), &value))
            value = SIZE_MAX / 16; /* and stays above everything real */
    *text = at;
    *number = value;
    return true;
}

static bool is_end(char letter)
{
    return letter == '\n' || letter == '\0';
}

/* "max", or bytes. */
static size_t read_bytes(const char *path)
{
    char line[LINE_BYTES];
    const char *at = line;
    size_t bytes;
    if (!read_small(path, line, sizeof line) || !take_number(&at, &bytes) || !is_end(*at) ||
        bytes >= SIZE_MAX / 16)
        return SIZE_MAX;
    return bytes;
}

/* "max 100000", or microseconds of CPU time in each period of so many. */
static uint32_t read_cpus(const char *path)
{
    char line[LINE_BYTES];
    const char *at = line;
    size_t quota_us, period_us;
    if (!read_small(path, line, sizeof line) || !take_number(&at, &quota_us) || *at != ' ')
        return 0;
    at++;
    if (!take_number(&at, &period_us) || !is_end(*at) || period_us == 0 || quota_us == 0)
        return 0;
    size_t cpus = quota_us / period_us + (quota_us % period_us != 0);
    return cpus > MOST_CPUS ? 0 : (uint32_t)cpus;
}

/* Where a group's file is; false: the path is too long. */
static bool join(char *path, const char *folder, size_t folder_bytes, const char *name)
{
    struct text text = {.start = path, .bytes = HAK_CGROUP_PATH_BYTES};
    hak_text_add_bytes(&text, folder, folder_bytes);
    hak_text_add(&text, name);
    if (text.used == HAK_CGROUP_PATH_BYTES)
        return false;
    path[text.used] = '\0';
    return true;
}

static bool can_be_read(const char *path)
{
    char first;
    return hak_os_read_file(path, &first, 1) == 1;
}

/* What is done with each group; its folder is no string. */
typedef void visit_group(void *context, const char *folder, size_t folder_bytes);

/* Adds the limits of the group in the folder to those of the groups below it. */
static void add_group(void *context, const char *folder, size_t folder_bytes)
{
    struct cgroup *cgroup = context;
    char path[HAK_CGROUP_PATH_BYTES];
    if (join(path, folder, folder_bytes, "/memory.high"))
        cgroup->high_bytes = hak_least(cgroup->high_bytes, read_bytes(path));
    if (join(path, folder, folder_bytes, "/memory.max"))
        cgroup->max_bytes = hak_least(cgroup->max_bytes, read_bytes(path));
    uint32_t cpus = join(path, folder, folder_bytes, "/cpu.max") ? read_cpus(path) : 0;
    if (cpus != 0 && (cgroup->cpus == 0 || cpus < cgroup->cpus))
        cgroup->cpus = cpus;
    if (cgroup->pressure_path[0] == '\0' && join(path, folder, folder_bytes, "/memory.pressure") &&
        can_be_read(path))
        memcpy(cgroup->pressure_path, path, sizeof path);
}

/* The line "0::/path" of /proc/self/cgroup; NULL: there is none, or it was cut. */
static const char *find_group(char *lines)
{
    for (char *line = lines; line != NULL && *line != '\0';) {
        char *end = strchr(line, '\n');
        if (end == NULL)
            return NULL;
        if (strncmp(line, "0::/", 4) == 0) {
            *end = '\0';
            return line + 3;
        }
        line = end + 1;
    }
    return NULL;
}

/* All groups from `group` up, below `mount`. */
static void visit_groups(const char *mount, const char *group, visit_group *visit, void *context)
{
    char folder[HAK_CGROUP_PATH_BYTES];
    if (strstr(group, "..") != NULL) /* outside of what this namespace shows */
        group = "";
    if (!join(folder, mount, strlen(mount), group))
        return;
    size_t least = strlen(mount);
    size_t bytes = strlen(folder);
    if (folder[bytes - 1] == '/')
        bytes--;
    for (;;) {
        visit(context, folder, bytes);
        if (bytes <= least)
            return;
        while (folder[--bytes] != '/')
            continue;
    }
}

/* All groups that the process is in, in either place where they may be mounted. */
static void visit_own(const char *root, visit_group *visit, void *context)
{
    static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
    char path[HAK_CGROUP_PATH_BYTES], lines[2048];
    const char *group = NULL;
    if (join(path, root, strlen(root), "/proc/self/cgroup") &&
        read_small(path, lines, sizeof lines))
        group = find_group(lines);
    for (size_t i = 0; group != NULL && i < sizeof mounts / sizeof *mounts; i++)
        if (join(path, root, strlen(root), mounts[i]))
            visit_groups(path, group, visit, context);
}

void hak_cgroup_read(struct cgroup *cgroup, const char *root)
{
    char path[HAK_CGROUP_PATH_BYTES];
    *cgroup = (struct cgroup){.high_bytes = SIZE_MAX, .max_bytes = SIZE_MAX};
    visit_own(root, add_group, cgroup);
    if (cgroup->pressure_path[0] == '\0' &&
        join(path, root, strlen(root), "/proc/pressure/memory") && can_be_read(path))
        memcpy(cgroup->pressure_path, path, sizeof path);
}

/* The number in the line that begins with `name`, of a file that may be longer than what is read of
 * it; `otherwise`: there is none. */
static size_t read_entry(const char *path, const char *name, size_t otherwise)
{
    char lines[4096];
    size_t number;
    if (hak_os_read_text(path, lines, sizeof lines) <= 0)
        return otherwise;
    const char *at = lines;
    for (; strncmp(at, name, strlen(name)) != 0; at++) {
        at = strchr(at, '\n');
        if (at == NULL)
            return otherwise;
    }
    at += strlen(name);
    at += strspn(at, " ");
    return take_number(&at, &number) && (*at == '\n' || *at == ' ') ? number : otherwise;
}

/* What the group may still take: the kernel drops its files first. */
static void add_room(void *context, const char *folder, size_t folder_bytes)
{
    size_t *room = context;
    char path[HAK_CGROUP_PATH_BYTES];
    struct cgroup limits = {.high_bytes = SIZE_MAX, .max_bytes = SIZE_MAX};
    size_t used = 0, files = 0;
    add_group(&limits, folder, folder_bytes);
    size_t most = hak_least(limits.high_bytes, limits.max_bytes);
    if (most == SIZE_MAX)
        return;
    if (join(path, folder, folder_bytes, "/memory.current"))
        used = read_bytes(path);
    if (join(path, folder, folder_bytes, "/memory.stat"))
        files = read_entry(path, "inactive_file ", 0) + read_entry(path, "active_file ", 0);
    *room = hak_least(*room, hak_excess(most, used == SIZE_MAX ? 0 : hak_excess(used, files)));
}

size_t hak_cgroup_room_bytes(const char *root)
{
    char path[HAK_CGROUP_PATH_BYTES];
    size_t room = SIZE_MAX;
    if (join(path, root, strlen(root), "/proc/meminfo"))
        room = read_entry(path, "MemAvailable:", SIZE_MAX);
    room = hak_least(room, SIZE_MAX / HAK_KIB) * HAK_KIB;
    visit_own(root, add_room, &room);
    return room;
}

bool hak_cgroup_stall_us(const char *pressure_path, uint64_t *stall_us)
{
    char lines[LINE_BYTES];
    size_t total;
    if (!read_small(pressure_path, lines, sizeof lines) || strncmp(lines, "some ", 5) != 0)
        return false;
    const char *at = strstr(lines, "total=");
    const char *end = strchr(lines, '\n');
    if (at == NULL || end == NULL || at > end)
        return false;
    at += strlen("total=");
    if (!take_number(&at, &total) || !is_end(*at))
        return false;
    *stall_us = total;
    return true;
}
