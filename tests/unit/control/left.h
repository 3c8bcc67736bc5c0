/* SPDX-License-Identifier: MIT */
/* tests/unit/control/left.h - a request file for this process, as `hakmem ctl` leaves it. */
#ifndef TESTS_UNIT_CONTROL_LEFT_H
#define TESTS_UNIT_CONTROL_LEFT_H

#include "check.h"
#include "control/request.h"
#include "os/os.h"
#include "os/shared.h"
#include "stats/shm.h"

#include <sys/stat.h>

static char left_path[64];

/* What would be left for this process. */
static inline struct control_request left_request(const char *words)
{
    struct control_request request = {
        .magic = HAK_REQUEST_MAGIC,
        .pid = (uint64_t)getpid(),
        .pid_space = hak_os_pid_space(),
        .start_ticks = hak_os_start_ticks(0),
        .deadline_ms = hak_os_clock_ms() + 60000,
    };
    snprintf(left_path, sizeof left_path, HAK_SHM_PATH "%d" HAK_REQUEST_SUFFIX, (int)getpid());
    snprintf(request.words, sizeof request.words, "%s", words);
    return request;
}

static inline void left_write(const void *bytes, size_t count)
{
    unlink(left_path);
    int fd = open(left_path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    CHECK(fd >= 0 && fchmod(fd, 0600) == 0);
    CHECK_EQ(write(fd, bytes, count), (long)count);
    close(fd);
}

static inline void left_leave(const char *words)
{
    struct control_request request = left_request(words);
    left_write(&request, sizeof request);
}

static inline struct control_request left_read(void)
{
    struct control_request request;
    int fd = open(left_path, O_RDONLY);
    CHECK(fd >= 0);
    CHECK_EQ(read(fd, &request, sizeof request), (long)sizeof request);
    close(fd);
    return request;
}

#endif
