/* SPDX-License-Identifier: MIT */
/* cli/sites.h - the call sites that hold a process's memory, look by look.
 *
 * Owns        struct sites: what the process's heap profile said at the last looks.
 * Invariants  nothing is asked of the process: its board is read. A row is a line of a function;
 *             its growth is that of the last ten seconds of looks, or of the last two where they
 *             are further apart. Names are looked up once an address.
 * Threads     one.
 * Tests       tests/preload/top_preload.py
 */
#ifndef HAK_CLI_SITES_H
#define HAK_CLI_SITES_H

#include "base/compiler.h"

enum sites_state {
    SITES_UNREAD,
    SITES_ABSENT,  /* the process has never sampled */
    SITES_WRONG,   /* its board cannot be read: `wrong` */
    SITES_STOPPED, /* sampling has stopped: what was sampled before is followed */
    SITES_ON,
};

enum sites_order { SITES_BY_LIVE, SITES_BY_GROWTH, SITES_BY_ALLOCATED, SITES_ORDER_COUNT };

/* Looks that are remembered: those of ten seconds at the fastest pace. */
enum { SITES_LOOKS = 41 };

struct site_row {
    const char *function; /* empty: stacks that found no room */
    const char *callers;  /* "< f < g", from the inside outwards */
    const char *file;     /* the last part of its path, or empty */
    uint32_t line;
    bool is_rough; /* of few samples */
    uint64_t live_bytes, live_blocks, allocated_bytes;
    uint64_t past[SITES_LOOKS]; /* live bytes of earlier looks, the last one first */
    double growth;              /* bytes a second */
};

struct source;

struct sites {
    enum sites_state state;
    char wrong[384];
    uint64_t mean_bytes;
    struct site_row *rows; /* in the order of the last sort */
    uint32_t row_count;
    uint64_t look_ms[SITES_LOOKS]; /* when those looks were; the last one first, of this row's */
    uint32_t look_count;           /* 1: nothing is known of growth */
    struct source *source;         /* where the texts are */
};

/* Reads the board of the process anew; starts anew where it is another process's. */
void sites_look(struct sites *sites, int pid);

void sites_sort(struct sites *sites, enum sites_order order);

/* Whether a row's function, file or callers have these letters. */
bool site_row_has(const struct site_row *row, const char *letters);

void sites_end(struct sites *sites);

#endif
