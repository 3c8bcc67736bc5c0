/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "os/shared.h"

#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int create(const char *path)
{
    int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int fd = open(path, flags, 0600);
    if (fd < 0 && errno == EEXIST && unlink(path) == 0)
        fd = open(path, flags, 0600);
    return fd;
}

/* With memory behind all of it, so that a full /dev/shm is told here and not by a signal later. */
static void *map(int fd, size_t bytes)
{
    if (fchmod(fd, 0600) != 0 || fallocate(fd, 0, 0, (off_t)bytes) != 0)
        return MAP_FAILED;
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

void *hak_os_shared_create(const char *path, size_t bytes, int *error)
{
    int saved = errno;
    void *start = MAP_FAILED;
    int fd = create(path);
    if (fd >= 0)
        start = map(fd, bytes);
    *error = errno;
    if (fd >= 0 && start == MAP_FAILED)
        unlink(path);
    if (fd >= 0)
        close(fd);
    errno = saved;
    return start == MAP_FAILED ? NULL : start;
}

void hak_os_shared_remove(const char *path)
{
    int saved = errno;
    unlink(path);
    errno = saved;
}

/* proc(5): the 22nd field, and the second one may hold anything up to its last parenthesis. */
uint64_t hak_os_start_ticks(void)
{
    char line[1024];
    uint64_t ticks = 0;
    hak_os_read_text("/proc/self/stat", line, sizeof line);
    const char *at = strrchr(line, ')');
    for (int field = 2; at != NULL && field < 22; field++)
        at = strchr(at + 1, ' ');
    for (at = at == NULL ? "" : at + 1; *at >= '0' && *at <= '9'; at++)
        ticks = ticks * 10 + (uint64_t)(*at - '0');
    return ticks;
}
