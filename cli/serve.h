/* SPDX-License-Identifier: MIT */
/* cli/serve.h - a target's numbers, or those of all, over HTTP, for a collector on this machine.
 *
 * Owns        one socket on the loopback address.
 * Invariants  no client holds up another one (cli/clients.h); what is neither a GET nor a HEAD of
 *             the numbers is refused.
 * Threads     one.
 * Tests       tests/preload/top_preload.py
 */
#ifndef HAKMEM_CLI_SERVE_H
#define HAKMEM_CLI_SERVE_H

/* Serves /metrics until the process ends, or, where pid is 0, for all processes without end. Then,
 * or when the port is not available, returns why. */
const char *serve(int pid, int port);

#endif
