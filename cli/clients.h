/* SPDX-License-Identifier: MIT */
/* cli/clients.h - connections that each send one request and take one answer, several at once.
 *
 * Owns        a fixed number of connections, each with its request and its answer.
 * Invariants  no call waits for one of them. Each has CLIENT_MS for its whole request, and again
 *             for taking the answer. When all places are taken, a new one gets that of the oldest
 *             that has not sent its request; where each takes an answer it waits.
 * Threads     one.
 * Tests       tests/preload/top_preload.py
 */
#ifndef HAKMEM_CLI_CLIENTS_H
#define HAKMEM_CLI_CLIENTS_H

#include "collect.h"

enum { CLIENTS_MOST = 16, CLIENT_MS = 2000 };

/* Writes all that answers a request up to its blank line; NULL: it ended before, or is longer than
 * any should be. An answer that is short of memory, or empty, is not sent. */
typedef void client_answer(struct document *answer, const char *request, void *context);

/* Waits until one of them, or a new one at `listener`, has something to do. */
void clients_wait(int listener, int most_ms);

/* Does what the last wait found. */
void clients_serve(int listener, client_answer *answer, void *context);

/* Closes them. */
void clients_end(void);

#endif
