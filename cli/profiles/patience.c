/* SPDX-License-Identifier: MIT */
#include "profiles/patience.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

ssize_t read_patiently(int fd, void *to, size_t bytes)
{
    struct pollfd input = {.fd = fd, .events = POLLIN};
    ssize_t got;
    while ((got = read(fd, to, bytes)) < 0 && errno == EAGAIN)
        if (poll(&input, 1, -1) < 0 && errno != EINTR)
            return -1;
    return got;
}
