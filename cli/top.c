/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "command.h"

#include "serve.h"
#include "stats/emit.h"
#include "target.h"
#include "view.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define INTERVAL_LEAST_MS 250
#define INTERVAL_MOST_MS 64000

enum way { WAY_TERMINAL, WAY_ONCE, WAY_JSON, WAY_SERVE };

struct wish {
    enum way way;
    int pid;
    int port;
    bool is_all;
    uint32_t interval_ms;
};

static struct termios before;
static volatile sig_atomic_t was_resized, must_end;
static bool has_terminal;

static int fail(const char *why)
{
    return complain(EXIT_FAILED, "top: %s", why);
}

static void restore_terminal(void)
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

static void take_terminal(void)
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
    atexit(restore_terminal);
    fputs("\033[?1049h\033[?25l\033[2J", stdout);
}

static bool is_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (int i = 0; i < 3; i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && *value != '\0')
            return strcasestr(value, "utf-8") != NULL || strcasestr(value, "utf8") != NULL;
    }
    return false;
}

static void measure(struct view *view)
{
    struct winsize size = {0};
    const char *columns = getenv("COLUMNS");
    view->columns = 80;
    view->rows = 24;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        view->columns = size.ws_col;
        view->rows = size.ws_row;
    } else if (columns != NULL && atoi(columns) > 0) {
        view->columns = atoi(columns);
    }
    /* The last column stays free: a terminal may wrap there. */
    view->columns = view->columns < 40 ? 40 : view->columns - 1;
    view->rows = view->rows < 10 ? 10 : view->rows - 1;
}

/* Does what a key says; false: quit. */
static bool obey(struct view *view, char key)
{
    switch (key) {
    case 'q':
        return false;
    case 's':
        view->order = (view->order + 1) % ORDER_COUNT;
        break;
    case '+':
        view->interval_ms *= view->interval_ms < INTERVAL_MOST_MS ? 2 : 1;
        break;
    case '-':
        view->interval_ms /= view->interval_ms > INTERVAL_LEAST_MS ? 2 : 1;
        break;
    case 'h':
    case '?':
        view->shows_help = !view->shows_help;
        break;
    default:
        break;
    }
    return true;
}

/* Waits for the next look; *is_key: a key came, and no new numbers are needed. */
static bool await_look(struct view *view, bool *is_key)
{
    char key;
    struct pollfd keys = {.fd = STDIN_FILENO, .events = POLLIN};
    int ready = poll(&keys, 1, (int)view->interval_ms);
    *is_key = ready > 0 || was_resized;
    was_resized = 0;
    if (must_end)
        return false;
    if (ready <= 0)
        return true;
    return read(STDIN_FILENO, &key, 1) == 1 && obey(view, key);
}

static void show(struct view *view, const struct target *now, const struct target *last)
{
    measure(view);
    fputs("\033[H", stdout);
    view_print(view, now, last, stdout);
    fputs("\033[J", stdout);
    fflush(stdout);
}

static int run_terminal(const struct wish *wish)
{
    static struct target looks[2];
    struct view view = {.is_ascii = !is_utf8(), .interval_ms = wish->interval_ms};
    const char *why;
    int now = 0;
    bool has_last = false, is_key;
    if (!target_read(&looks[0], wish->pid, &why))
        return fail(why);
    take_terminal();
    for (;;) {
        show(&view, &looks[now], has_last ? &looks[1 - now] : NULL);
        if (!await_look(&view, &is_key))
            break;
        if (is_key)
            continue;
        now = 1 - now;
        has_last = true;
        if (!target_read(&looks[now], wish->pid, &why)) {
            restore_terminal();
            return fail(why);
        }
    }
    restore_terminal();
    if (must_end) {
        signal(must_end, SIG_DFL);
        raise(must_end);
    }
    return 0;
}

static void write_out(void *unused, const char *piece, size_t bytes)
{
    (void)unused;
    fwrite(piece, 1, bytes, stdout);
}

static int run_once(const struct wish *wish)
{
    static struct target target;
    struct view view = {.is_plain = true, .is_ascii = !is_utf8()};
    const char *why;
    bool is_read = target_read(&target, wish->pid, &why);
    if (!is_read && target.has_ended)
        is_read = target_read_left(&target, wish->pid, &why);
    if (!is_read)
        return fail(why);
    if (target.has_ended)
        fprintf(stderr, "hakmem top: process %d has ended: its last numbers\n", wish->pid);
    if (wish->way == WAY_JSON) {
        hak_emit_json(&target.page.snapshot, write_out, NULL);
    } else {
        measure(&view);
        view.rows = 0;
        view_print(&view, &target, NULL, stdout);
    }
    return fflush(stdout) == 0 ? 0 : fail(strerror(errno));
}

/* A whole number from `least` to `most`; -1: it is none. */
static int number_from(const char *text, long least, long most)
{
    char *end;
    errno = 0;
    long number = text == NULL ? -1 : strtol(text, &end, 10);
    if (number < least || number > most || errno != 0 || *end != '\0' || end == text)
        return -1;
    return (int)number;
}

static uint32_t interval_from(const char *text)
{
    char *end;
    double seconds = text == NULL ? 0 : strtod(text, &end);
    if (!(seconds >= 0.25 && seconds <= 64) || *end != '\0')
        return 0;
    return (uint32_t)(seconds * 1000);
}

static bool refuse(const char *format, const char *word)
{
    complain(EXIT_USAGE, format, word == NULL ? "nothing" : word);
    return false;
}

static bool understand_pid(struct wish *wish, const char *word)
{
    if (*word == '-' && (word[1] < '0' || word[1] > '9'))
        return refuse("top: there is no argument '%.60s'; hakmem top --help", word);
    if (wish->pid != 0)
        return refuse("top: one process at a time, not also '%.60s'", word);
    wish->pid = number_from(word, 1, 1 << 30);
    return wish->pid > 0 || refuse("top: '%.60s' is not the number of a process", word);
}

/* One argument, and the next one if it takes it; false: it is wrong, which has been said. */
static bool understand(struct wish *wish, char ***arguments)
{
    const char *word = *(*arguments)++;
    if (strcmp(word, "--once") == 0) {
        wish->way = WAY_ONCE;
    } else if (strcmp(word, "--json") == 0) {
        wish->way = WAY_JSON;
    } else if (strcmp(word, "--all") == 0) {
        wish->is_all = true;
    } else if (strcmp(word, "--serve") == 0) {
        wish->way = WAY_SERVE;
        wish->port = number_from(**arguments, 0, 65535);
        if (wish->port < 0)
            return refuse("top: --serve takes a port, 0 to 65535, not '%.60s'", **arguments);
        (*arguments)++;
    } else if (strcmp(word, "--interval") == 0) {
        wish->interval_ms = interval_from(**arguments);
        if (wish->interval_ms == 0)
            return refuse("top: --interval takes 0.25 to 64 seconds, not '%.60s'", **arguments);
        (*arguments)++;
    } else {
        return understand_pid(wish, word);
    }
    return true;
}

int command_top(int argument_count, char **arguments)
{
    (void)argument_count;
    struct wish wish = {.interval_ms = 1000};
    for (char **next = arguments + 1; *next != NULL;)
        if (!understand(&wish, &next))
            return EXIT_USAGE;
    if (wish.is_all && (wish.way != WAY_SERVE || wish.pid != 0))
        return complain(EXIT_USAGE, "top: --all goes with --serve, and without a process");
    if (wish.pid == 0 && !wish.is_all)
        return complain(EXIT_USAGE, "top: the process is missing; hakmem top --help");
    hak_shm_remove_left((uint32_t)wish.pid);
    if (wish.way == WAY_SERVE) {
        static struct target target;
        const char *why;
        bool is_read = wish.is_all || target_read(&target, wish.pid, &why);
        return fail(is_read ? serve(wish.pid, wish.port) : why);
    }
    if (wish.way != WAY_TERMINAL)
        return run_once(&wish);
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return fail("this is no terminal: --once, --json or --serve");
    return run_terminal(&wish);
}
