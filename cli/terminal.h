/* SPDX-License-Identifier: MIT */
/* cli/terminal.h - a whole terminal for a while, and its keys.
 *
 * Owns        the terminal's settings, which are as before at the end, after a signal too.
 * Invariants  a key that sends several bytes is one word.
 * Threads     one.
 * Tests       tests/preload/top_preload.py
 */
#ifndef HAK_CLI_TERMINAL_H
#define HAK_CLI_TERMINAL_H

#include "view.h"

/* Letters are themselves. */
enum terminal_key {
    KEY_NONE = 0, /* the time is over */
    KEY_ENTER = '\n',
    KEY_ESCAPE = 27,
    KEY_DELETE = 127,
    KEY_UP = 256,
    KEY_DOWN,
    KEY_PAGE_UP,
    KEY_PAGE_DOWN,
    KEY_RESIZED,
    KEY_END, /* a signal: the program is to end */
};

bool terminal_is_utf8(void);

/* How large it is, 40 columns and 10 lines at least; without one, 80 columns or what COLUMNS
 * says. */
void terminal_measure(struct view *view);

/* The same, before each picture; false: it is smaller, and says so instead. */
bool terminal_has_room(struct view *view);

void terminal_take(void);
void terminal_restore(void);

/* True if it can show a picture: it is one, and moves its cursor. */
bool terminal_is_there(void);

/* Waits for a key. */
int terminal_key(uint32_t most_ms);

/* Ends the program by the signal that came, if one did. */
void terminal_end_by_signal(void);

/* Begins and ends one picture. */
void terminal_begin_picture(void);
void terminal_end_picture(void);

#endif
