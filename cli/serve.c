/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "serve.h"

#include "clients.h"
#include "collect.h"
#include "command.h"
#include "process.h"
#include "stats/emit.h"
#include "watch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LOOK_MS 1000

/* What is served. */
struct source {
    int pid; /* 0: all processes */
    struct watch watch;
    struct target target;
    uint64_t looked_ms;
    bool is_there;
    const char *why_not;
};

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
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    *address = (struct sockaddr_in){.sin_family = AF_INET,
                                    .sin_port = htons((uint16_t)port),
                                    .sin_addr = {htonl(INADDR_LOOPBACK)}};
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, (struct sockaddr *)address, bytes) != 0 || listen(fd, CLIENTS_MOST) != 0 ||
        getsockname(fd, (struct sockaddr *)address, &bytes) != 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

/* The document is its body; `is_head`: which the client does not want. */
static void write_answer(struct document *answer, bool is_head, const char *status,
                         const char *type)
{
    char head[256];
    int bytes = snprintf(head, sizeof head,
                         "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
                         "Connection: close\r\n\r\n",
                         status, type, document.bytes);
    document_add(answer, head, (size_t)bytes);
    if (!is_head && document.bytes > 0)
        document_add(answer, document.start, document.bytes);
}

/* Goes on behind `start`; false: the text does not begin so. */
static bool skip(const char **text, const char *start)
{
    size_t bytes = strlen(start);
    bool is_there = strncmp(*text, start, bytes) == 0;
    *text += is_there ? bytes : 0;
    return is_there;
}

/* The numbers are at both paths, whatever is asked about them. */
static bool is_path(const char *path)
{
    return (skip(&path, "/metrics") || skip(&path, "/")) && (*path == ' ' || *path == '?');
}

static void look(struct source *source)
{
    source->looked_ms = shared_clock_ms();
    source->is_there = source->pid == 0 ||
                       watch_read(&source->watch, &source->target, source->pid, &source->why_not);
}

static void collect(struct source *source)
{
    look(source);
    if (source->pid == 0)
        collect_all(&document);
    else if (source->is_there)
        hak_emit_openmetrics(&source->target.page.snapshot, append, NULL);
    if (document.is_short)
        document.bytes = 0;
}

static void respond(struct document *answer, const char *request, void *source)
{
    const char *path = request;
    bool is_head = request != NULL && skip(&path, "HEAD ");
    document.bytes = 0;
    document.is_short = false;
    if (request == NULL) {
        write_answer(answer, false, "400 Bad Request", "text/plain");
    } else if (!is_head && !skip(&path, "GET ")) {
        write_answer(answer, false, "405 Method Not Allowed\r\nAllow: GET, HEAD", "text/plain");
    } else if (!is_path(path)) {
        write_answer(answer, is_head, "404 Not Found", "text/plain");
    } else {
        collect(source);
        write_answer(answer, is_head, document.bytes == 0 ? "500 No Numbers" : "200 OK",
                     "application/openmetrics-text; version=1.0.0; charset=utf-8");
    }
}

const char *serve(int pid, int port)
{
    static char why_not[128];
    static struct source source;
    struct sockaddr_in address;
    source = (struct source){.pid = pid, .watch = WATCH_NONE};
    look(&source); /* before the port is taken, and its address printed */
    if (!source.is_there)
        return source.why_not;
    int fd = listen_on(port, &address);
    if (fd < 0) {
        watch_end(&source.watch);
        snprintf(why_not, sizeof why_not, "port %d is not available: %s", port, strerror(errno));
        return why_not;
    }
    printf("http://127.0.0.1:%d/metrics\n", ntohs(address.sin_port));
    fflush(stdout);
    while (source.is_there && ask_interrupted_by() == 0) {
        watch_go_on(&source.watch, pid);
        clients_serve(fd, respond, &source);
        if (shared_clock_ms() - source.looked_ms >= LOOK_MS)
            look(&source);
        if (source.is_there)
            clients_wait(fd, LOOK_MS);
    }
    watch_end(&source.watch);
    if (ask_interrupted_by() != 0)
        end_by_signal(ask_interrupted_by());
    clients_end();
    close(fd);
    return source.why_not;
}
