/* SPDX-License-Identifier: MIT */
/* cli/view.h - a target as lines of a terminal.
 *
 * Owns        the layout: where memory is, rates, decisions, sizes or call sites; beside each other
 *             where the terminal is wide.
 * Invariants  no line is wider than the view, no more lines than it is high.
 * Threads     one.
 * Tests       tests/preload/top_preload.py
 */
#ifndef HAKMEM_CLI_VIEW_H
#define HAKMEM_CLI_VIEW_H

#include "history.h"
#include "ps.h"
#include "sites.h"
#include "target.h"

#include <stdio.h>

enum view_order { ORDER_HELD, ORDER_FREE, ORDER_LIVE, ORDER_SIZE, ORDER_COUNT };

struct view {
    int columns, rows;     /* rows 0: as many as there are */
    bool is_plain;         /* no colours */
    bool is_ascii;         /* no characters beyond ASCII */
    enum view_order order; /* of the sizes */
    bool shows_sites;      /* instead of the sizes */
    enum sites_order sites_order;
    struct sites sites; /* sorted */
    bool shows_help;
    bool is_paused;
    bool is_typing;       /* the filter */
    int first;            /* of the sizes, the sites or the processes */
    char filter[32];      /* only those with these letters */
    uint32_t interval_ms; /* 0: shown once */
    struct history resident, live;
};

/* Writes the view of `now`, with rates since `before` (NULL: none yet). */
void view_print(const struct view *view, const struct target *now, const struct target *before,
                FILE *to);

/* Writes a list of processes to choose from, one of which is marked. */
void view_print_list(const struct view *view, const struct process_row *rows, int count, int marked,
                     FILE *to);

#endif
