/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "clients.h"

#include "process.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct client {
    bool is_open;
    bool is_answered;
    int fd;
    uint64_t due_ms;
    size_t received;
    size_t sent;
    struct document answer;
    char request[4096];
};

static struct client clients[CLIENTS_MOST];
static struct pollfd waiting[CLIENTS_MOST + 1]; /* the last one: the listener */

static void leave(struct client *client)
{
    shutdown(client->fd, SHUT_WR);
    close(client->fd);
    free(client->answer.start);
    *client = (struct client){.is_open = false};
}

/* A free place, or that of the oldest client without a request; NULL: all take their answers. */
static struct client *find_place(void)
{
    struct client *oldest = NULL;
    for (int i = 0; i < CLIENTS_MOST; i++) {
        struct client *client = &clients[i];
        if (!client->is_open)
            return client;
        if (!client->is_answered && (oldest == NULL || client->due_ms < oldest->due_ms))
            oldest = client;
    }
    return oldest;
}

void clients_wait(int listener, int most_ms)
{
    for (int i = 0; i < CLIENTS_MOST; i++) {
        const struct client *client = &clients[i];
        waiting[i] = (struct pollfd){.fd = client->is_open ? client->fd : -1,
                                     .events = client->is_answered ? POLLOUT : POLLIN};
    }
    waiting[CLIENTS_MOST] =
        (struct pollfd){.fd = find_place() == NULL ? -1 : listener, .events = POLLIN};
    poll(waiting, CLIENTS_MOST + 1, most_ms);
}

static bool is_later(void)
{
    return errno == EAGAIN || errno == EINTR;
}

static bool is_whole(const struct client *client)
{
    return memmem(client->request, client->received, "\r\n\r\n", 4) != NULL ||
           memmem(client->request, client->received, "\n\n", 2) != NULL;
}

static void receive(struct client *client, client_answer *answer, void *context)
{
    size_t room = sizeof client->request - 1 - client->received; /* it ends with a zero */
    ssize_t got = recv(client->fd, client->request + client->received, room, 0);
    if (got < 0 && is_later())
        return;
    client->received += got > 0 ? (size_t)got : 0;
    if (!is_whole(client) && got > 0 && (size_t)got < room)
        return;
    answer(&client->answer, is_whole(client) ? client->request : NULL, context);
    if (client->answer.is_short)
        client->answer.bytes = 0;
    client->is_answered = true;
    client->due_ms = shared_clock_ms() + CLIENT_MS;
}

static void send_more(struct client *client)
{
    const struct document *answer = &client->answer;
    ssize_t sent =
        send(client->fd, answer->start + client->sent, answer->bytes - client->sent, MSG_NOSIGNAL);
    if (sent < 0 && is_later())
        return;
    client->sent += sent > 0 ? (size_t)sent : 0;
    if (sent <= 0 || client->sent == answer->bytes)
        leave(client);
}

static void welcome(int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    struct client *place = find_place();
    if (place->is_open)
        leave(place);
    place->is_open = true;
    place->fd = fd;
    place->due_ms = shared_clock_ms() + CLIENT_MS;
}

void clients_serve(int listener, client_answer *answer, void *context)
{
    for (int i = 0; i < CLIENTS_MOST; i++) {
        struct client *client = &clients[i];
        if (waiting[i].revents != 0 && !client->is_answered)
            receive(client, answer, context);
        if (waiting[i].revents != 0 && client->is_answered)
            send_more(client);
        if (client->is_open && shared_clock_ms() >= client->due_ms)
            leave(client);
    }
    if (waiting[CLIENTS_MOST].revents != 0 && find_place() != NULL)
        welcome(listener);
}

void clients_end(void)
{
    for (int i = 0; i < CLIENTS_MOST; i++)
        if (clients[i].is_open)
            leave(&clients[i]);
}
