/* SPDX-License-Identifier: MIT */
/* cli/pane.h - lines of a view, beside or below each other.
 *
 * Owns        struct pane.
 * Invariants  no line is wider than its pane; lines beyond PANE_LINES are left out. Colours end
 *             with their line.
 * Threads     one.
 * Tests       tests/preload/top_preload.py
 */
#ifndef HAK_CLI_PANE_H
#define HAK_CLI_PANE_H

#include "view.h"

#define PANE_LINES 160
#define PANE_LINE_BYTES 640
/* Columns between panes beside each other. */
#define PANE_GAP 3

struct pane {
    const struct view *view;
    int columns;
    int count;
    char lines[PANE_LINES][PANE_LINE_BYTES];
};

struct pane_bar {
    char text[400];
};

#define GREEN "\033[32m"
#define YELLOW "\033[33m"
#define BLUE "\033[34m"
#define GREY "\033[90m"

/* A line. */
void pane_add(struct pane *pane, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A text in as many lines as it takes, each after `before`: an indentation, or a colour. No escape
 * sequence of the text has a space between its beginning and its end. */
void pane_add_words(struct pane *pane, const char *before, const char *text);
void pane_add_title(struct pane *pane, const char *title);

/* The escape sequence, or nothing where there are no colours. */
const char *pane_style(const struct view *view, const char *code);

/* `part` of `whole` in at most so many columns. */
struct pane_bar pane_bar(const struct view *view, uint64_t part, uint64_t whole, int columns);

/* Leaves its first lines, at most so many. */
void pane_keep(struct pane *pane, int most);

void pane_print(const struct pane *pane, FILE *to);
void pane_print_beside(const struct pane *left, const struct pane *right, FILE *to);

#endif
