/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "terminal.h"

#include "command.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

/* What a picture takes, without the last column and line. */
#define COLUMNS_LEAST 39
#define ROWS_LEAST 9

/* The bytes of one key come together. */
#define KEY_BYTES_MS 20

static struct termios before;
static volatile sig_atomic_t was_resized, must_end;
static bool has_terminal;

void terminal_restore(void)
{
    static const char leave[] = "\033[?25h\033[?1049l";
    if (!has_terminal)
        return;
    has_terminal = false;
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
    if (write(STDOUT_FILENO, leave, sizeof leave - 1) < 0)
        return;
}

static void on_end(int number)
{
    must_end = number;
}

static void on_resize(int number)
{
    (void)number;
    was_resized = 1;
}

void terminal_take(void)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct sigaction action = {.sa_handler = on_end};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        sigaction(ends[i], &action, NULL);
    action.sa_handler = on_resize;
    sigaction(SIGWINCH, &action, NULL);
    tcgetattr(STDIN_FILENO, &before);
    struct termios raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw);
    has_terminal = true;
    atexit(terminal_restore);
    fputs("\033[?1049h\033[?25l\033[2J", stdout);
}

bool terminal_is_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (int i = 0; i < 3; i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && *value != '\0')
            return strcasestr(value, "utf-8") != NULL || strcasestr(value, "utf8") != NULL;
    }
    return false;
}

/* The last column and line stay free: a terminal may wrap there. */
static void measure(struct view *view)
{
    struct winsize size = {0};
    const char *columns = getenv("COLUMNS");
    view->columns = 80;
    view->rows = 24;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        view->columns = size.ws_col;
        view->rows = size.ws_row > 0 ? size.ws_row : 24;
    } else if (columns != NULL && atoi(columns) > 0) {
        view->columns = atoi(columns);
    }
    view->columns--;
    view->rows--;
}

void terminal_measure(struct view *view)
{
    measure(view);
    view->columns = view->columns < COLUMNS_LEAST ? COLUMNS_LEAST : view->columns;
    view->rows = view->rows < ROWS_LEAST ? ROWS_LEAST : view->rows;
}

bool terminal_has_room(struct view *view)
{
    measure(view);
    if (view->columns >= COLUMNS_LEAST && view->rows >= ROWS_LEAST)
        return true;
    terminal_begin_picture();
    printf("%.*s", view->columns, "the terminal is too small");
    terminal_end_picture();
    return false;
}

bool terminal_is_there(void)
{
    const char *kind = getenv("TERM");
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) &&
           (kind == NULL || strcmp(kind, "dumb") != 0);
}

/* The rest of an escape sequence; unknown ones are ignored. */
static int read_sequence(void)
{
    static const struct {
        const char *bytes;
        int key;
    } keys[] = {{"[A", KEY_UP},   {"[B", KEY_DOWN},     {"OA", KEY_UP},
                {"OB", KEY_DOWN}, {"[5~", KEY_PAGE_UP}, {"[6~", KEY_PAGE_DOWN}};
    char bytes[8] = "";
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    size_t used = 0;
    while (used < sizeof bytes - 1 && poll(&input, 1, KEY_BYTES_MS) > 0 &&
           read(STDIN_FILENO, bytes + used, 1) == 1) {
        used++;
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            if (strcmp(bytes, keys[i].bytes) == 0)
                return keys[i].key;
        if (used > 1 && bytes[used - 1] >= '@') /* a whole one */
            return KEY_RESIZED;
    }
    return used == 0 ? KEY_ESCAPE : KEY_RESIZED;
}

int terminal_key(uint32_t most_ms)
{
    unsigned char key;
    struct pollfd keys = {.fd = STDIN_FILENO, .events = POLLIN};
    int ready = poll(&keys, 1, (int)most_ms);
    if (must_end)
        return KEY_END;
    if (was_resized) {
        was_resized = 0;
        return KEY_RESIZED;
    }
    if (ready <= 0)
        return KEY_NONE;
    if (read(STDIN_FILENO, &key, 1) != 1)
        return KEY_END;
    if (key == KEY_ESCAPE)
        return read_sequence();
    return key == '\b' ? KEY_DELETE : key;
}

void terminal_end_by_signal(void)
{
    if (must_end)
        end_by_signal(must_end);
}

void terminal_begin_picture(void)
{
    fputs("\033[H", stdout);
}

void terminal_end_picture(void)
{
    fputs("\033[J", stdout);
    fflush(stdout);
}
