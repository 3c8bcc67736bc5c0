/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "serve.h"

#include "collect.h"
#include "command.h"
#include "stats/emit.h"
#include "watch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define LOOK_MS 1000
#define CLIENT_SECONDS 2

static struct document document; /* its memory serves again and again */

static void append(void *unused, const char *piece, size_t bytes)
{
    (void)unused;
    document_add(&document, piece, bytes);
}

static int listen_on(int port, struct sockaddr_in *address)
{
    int yes = 1;
    socklen_t bytes = sizeof *address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *address = (struct sockaddr_in){.sin_family = AF_INET,
                                    .sin_port = htons((uint16_t)port),
                                    .sin_addr = {htonl(INADDR_LOOPBACK)}};
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, (struct sockaddr *)address, bytes) != 0 || listen(fd, 8) != 0 ||
        getsockname(fd, (struct sockaddr *)address, &bytes) != 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

static void send_all(int fd, const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t sent = send(fd, bytes, count, MSG_NOSIGNAL);
        if (sent <= 0)
            return;
        bytes += sent;
        count -= (size_t)sent;
    }
}

static void answer(int fd, const char *status, const char *type)
{
    char head[256];
    int bytes = snprintf(head, sizeof head,
                         "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
                         "Connection: close\r\n\r\n",
                         status, type, document.bytes);
    send_all(fd, head, (size_t)bytes);
    send_all(fd, document.start, document.bytes);
}

/* The request up to its blank line; false: it did not come, or is longer than any should be. */
static bool receive(int fd, char *request, size_t bytes)
{
    size_t used = 0;
    while (used + 1 < bytes) {
        ssize_t got = recv(fd, request + used, bytes - used - 1, 0);
        if (got <= 0)
            return false;
        used += (size_t)got;
        request[used] = '\0';
        if (strstr(request, "\r\n\r\n") != NULL || strstr(request, "\n\n") != NULL)
            return true;
    }
    return false;
}

static bool begins(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* `target` NULL: all processes. */
static void attend(int fd, const struct target *target)
{
    char request[4096];
    struct timeval limit = {CLIENT_SECONDS, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    document.bytes = 0;
    document.is_short = false;
    if (!receive(fd, request, sizeof request)) {
        answer(fd, "400 Bad Request", "text/plain");
    } else if (!begins(request, "GET ")) {
        answer(fd, "405 Method Not Allowed", "text/plain");
    } else if (!begins(request, "GET /metrics ") && !begins(request, "GET / ")) {
        answer(fd, "404 Not Found", "text/plain");
    } else {
        if (target == NULL)
            collect_all(&document);
        else
            hak_emit_openmetrics(&target->page.snapshot, append, NULL);
        if (document.is_short)
            document.bytes = 0;
        answer(fd, document.bytes == 0 ? "500 No Memory" : "200 OK",
               "application/openmetrics-text; version=1.0.0; charset=utf-8");
    }
    shutdown(fd, SHUT_WR);
    close(fd);
}

const char *serve(int pid, int port)
{
    static char why_not[128];
    struct sockaddr_in address;
    static struct target target;
    struct watch watch = WATCH_NONE;
    const char *why;
    /* Before the port is taken, and its address printed. */
    if (pid != 0 && !watch_read(&watch, &target, pid, &why))
        return why;
    int fd = listen_on(port, &address);
    if (fd < 0) {
        watch_end(&watch);
        snprintf(why_not, sizeof why_not, "port %d is not available: %s", port, strerror(errno));
        return why_not;
    }
    printf("http://127.0.0.1:%d/metrics\n", ntohs(address.sin_port));
    fflush(stdout);
    struct pollfd waiting = {.fd = fd, .events = POLLIN};
    for (;;) {
        poll(&waiting, 1, LOOK_MS);
        if (ask_interrupted_by() != 0) {
            watch_end(&watch);
            end_by_signal(ask_interrupted_by());
        }
        watch_go_on(&watch, pid);
        if (pid != 0 && !watch_read(&watch, &target, pid, &why)) {
            watch_end(&watch);
            close(fd);
            return why;
        }
        int client = waiting.revents & POLLIN ? accept4(fd, NULL, NULL, SOCK_CLOEXEC) : -1;
        if (client >= 0)
            attend(client, pid == 0 ? NULL : &target);
        waiting.revents = 0;
    }
}
