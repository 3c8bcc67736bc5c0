/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "command.h"

#include "colours.h"
#include "ps.h"
#include "serve.h"
#include "stats/emit.h"
#include "target.h"
#include "terminal.h"
#include "view.h"
#include "watch.h"
#include "words.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define INTERVAL_LEAST_MS 250
#define INTERVAL_MOST_MS 64000
#define ROWS_MOST 512

/* The list of processes is made anew so often. */
#define LIST_MS 2000u

enum way { WAY_TERMINAL, WAY_ONCE, WAY_JSON, WAY_SERVE };

struct wish {
    enum way way;
    int pid;
    int port;
    bool is_all;
    uint32_t interval_ms;
};

static int fail(const char *why)
{
    return complain(EXIT_FAILED, "top: %s", why);
}

/* A letter of the filter; the end of typing. */
static void type(struct view *view, int key)
{
    size_t used = strlen(view->filter);
    if (key == KEY_ENTER || key == KEY_ESCAPE) {
        view->is_typing = false;
        if (key == KEY_ESCAPE)
            view->filter[0] = '\0';
    } else if (key == KEY_DELETE && used > 0) {
        view->filter[used - 1] = '\0';
    } else if (key > ' ' && key < KEY_DELETE && used < sizeof view->filter - 1) {
        view->filter[used] = (char)key;
        view->filter[used + 1] = '\0';
    }
    view->first = 0;
}

/* Lines that a key moves by; 0: it is another one. */
static int step_of(const struct view *view, int key)
{
    switch (key) {
    case 'k':
    case KEY_UP:
        return -1;
    case 'j':
    case KEY_DOWN:
        return 1;
    case KEY_PAGE_UP:
        return -view->rows / 2;
    case KEY_PAGE_DOWN:
        return view->rows / 2;
    default:
        return 0;
    }
}

static void scroll(struct view *view, int step)
{
    view->first += step;
    int most = view->shows_sites ? (int)view->sites.row_count : HAK_SNAPSHOT_CLASSES;
    if (view->first < 0 || view->first > most)
        view->first = view->first < 0 ? 0 : most;
}

static void sort_rows(struct view *view)
{
    if (view->shows_sites)
        view->sites_order = (view->sites_order + 1) % SITES_ORDER_COUNT;
    else
        view->order = (view->order + 1) % ORDER_COUNT;
    sites_sort(&view->sites, view->sites_order);
}

/* Sizes or call sites; what was filtered and scrolled was the other. */
static void change_table(struct view *view)
{
    view->shows_sites = !view->shows_sites;
    view->first = 0;
    view->filter[0] = '\0';
}

/* Executes a key; false: quit. */
static bool obey(struct view *view, int key)
{
    switch (key) {
    case 'q':
    case KEY_END:
        return false;
    case 's':
        sort_rows(view);
        break;
    case 'c':
        change_table(view);
        break;
    case '+':
        view->interval_ms *= view->interval_ms < INTERVAL_MOST_MS ? 2 : 1;
        break;
    case '-':
        view->interval_ms /= view->interval_ms > INTERVAL_LEAST_MS ? 2 : 1;
        break;
    case 'p':
    case ' ':
        view->is_paused = !view->is_paused;
        break;
    case '/':
        view->is_typing = true;
        view->filter[0] = '\0';
        break;
    case 'h':
    case '?':
        view->shows_help = !view->shows_help;
        break;
    default:
        scroll(view, step_of(view, key));
    }
    return true;
}

static void show(struct view *view, const struct target *now, const struct target *last)
{
    if (!terminal_has_room(view))
        return;
    terminal_begin_picture();
    view_print(view, now, last, stdout);
    terminal_end_picture();
}

static void look_at_sites(struct view *view, int pid)
{
    sites_look(&view->sites, pid);
    sites_sort(&view->sites, view->sites_order);
}

static void remember(struct view *view, const struct target *now)
{
    if (view->shows_sites)
        look_at_sites(view, now->pid);
    history_add(&view->resident, now->heap_bytes + now->record_bytes + now->other_bytes);
    history_add(&view->live, now->page.snapshot.live_bytes);
}

/* Shows it until the user, a signal or the process ends it; NULL, or a message. */
static const char *watch_target(struct view *view, struct watch *watch, struct target *looks,
                                int pid)
{
    const char *why;
    int now = 0;
    bool has_last = false;
    for (;;) {
        if (!has_last)
            remember(view, &looks[now]);
        show(view, &looks[now], has_last ? &looks[1 - now] : NULL);
        int key = terminal_key(view->interval_ms);
        if (view->is_typing && key != KEY_END && key != KEY_NONE)
            type(view, key);
        else if (!obey(view, key))
            return NULL;
        if (key == 'c' && view->shows_sites)
            look_at_sites(view, pid);
        watch_go_on(watch, pid);
        if (key != KEY_NONE || view->is_paused)
            continue;
        now = 1 - now;
        has_last = true;
        if (!watch_read(watch, &looks[now], pid, &why))
            return why;
        remember(view, &looks[now]);
    }
}

/* The processes whose name contains the filter, or whose PID it is. */
static int find_rows(const struct view *view, struct process_row *rows)
{
    char number[16];
    int kept = 0, count = processes_find(rows, ROWS_MOST);
    for (int i = 0; i < count; i++) {
        snprintf(number, sizeof number, "%d", rows[i].pid);
        if (strstr(rows[i].name, view->filter) != NULL || strstr(number, view->filter) != NULL)
            rows[kept++] = rows[i];
    }
    return kept;
}

/* The process that the user chooses; 0: none. */
static int choose(struct view *view)
{
    static struct process_row rows[ROWS_MOST];
    int count = find_rows(view, rows);
    for (;;) {
        view->first = view->first >= count ? count - 1 : view->first;
        view->first = view->first < 0 ? 0 : view->first;
        if (terminal_has_room(view)) {
            terminal_begin_picture();
            view_print_list(view, rows, count, view->first, stdout);
            terminal_end_picture();
        }
        int key = terminal_key(LIST_MS);
        if (key == KEY_END || (key == 'q' && !view->is_typing))
            return 0;
        if (view->is_typing && key != KEY_NONE)
            type(view, key);
        else if ((key == KEY_ENTER || key == '\r') && count > 0)
            return rows[view->first].pid;
        else if (key == '/')
            obey(view, key);
        else
            view->first += step_of(view, key);
        count = find_rows(view, rows);
    }
}

static int run_terminal(const struct wish *wish)
{
    static struct target looks[2];
    struct view view = {.is_plain = !colours_are_wanted(),
                        .is_ascii = !terminal_is_utf8(),
                        .interval_ms = wish->interval_ms};
    struct watch watch = WATCH_NONE;
    const char *why = NULL;
    int pid = wish->pid;
    /* Errors are reported before the terminal is taken. */
    if (pid != 0 && !watch_read(&watch, &looks[0], pid, &why))
        return fail(why);
    terminal_take();
    if (pid == 0) {
        pid = choose(&view);
        view.first = 0;
        view.filter[0] = '\0';
        if (pid != 0 && !watch_read(&watch, &looks[0], pid, &why))
            pid = 0;
    }
    if (pid != 0)
        why = watch_target(&view, &watch, looks, pid);
    sites_end(&view.sites);
    watch_end(&watch);
    terminal_restore();
    terminal_end_by_signal();
    return why == NULL ? EXIT_DONE : fail(why);
}

static void write_out(void *unused, const char *piece, size_t bytes)
{
    (void)unused;
    fwrite(piece, 1, bytes, stdout);
}

static int run_once(const struct wish *wish)
{
    static struct target target;
    struct view view = {.is_plain = true, .is_ascii = !terminal_is_utf8()};
    const char *why;
    struct watch watch = WATCH_NONE;
    bool is_read = watch_read(&watch, &target, wish->pid, &why);
    if (!is_read && target.has_ended)
        is_read = target_read_left(&target, wish->pid, &why);
    if (!is_read)
        return fail(why);
    if (target.has_ended)
        fprintf(stderr, "hakmem top: process %d has ended: its last statistics\n", wish->pid);
    if (wish->way == WAY_JSON) {
        hak_emit_json(&target.page.snapshot, write_out, NULL);
    } else {
        terminal_measure(&view);
        view.rows = 0;
        if (!target.has_ended)
            look_at_sites(&view, wish->pid);
        view_print(&view, &target, NULL, stdout);
        sites_end(&view.sites);
    }
    return EXIT_DONE;
}

static uint32_t interval_from(const char *text)
{
    char *end;
    double seconds = text == NULL ? 0 : strtod(text, &end);
    if (!(seconds >= 0.25 && seconds <= 64) || *end != '\0')
        return 0;
    return (uint32_t)(seconds * 1000);
}

static bool refuse_word(const char *format, const char *word)
{
    complain(EXIT_USAGE, format, word == NULL ? "nothing" : word);
    return false;
}

static bool understand_pid(struct wish *wish, const char *word)
{
    if (*word == '-' && (word[1] < '0' || word[1] > '9'))
        return refuse_word("top: there is no argument '%.60s'; hakmem top --help", word);
    if (wish->pid != 0)
        return refuse_word("top: one process at a time, not also '%.60s'", word);
    wish->pid = process_number_from(word);
    return wish->pid != 0 || refuse_word("top: '%.60s' is not a process id", word);
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
            return refuse_word("top: --serve takes a port, 0 to 65535, not '%.60s'", **arguments);
        (*arguments)++;
    } else if (strcmp(word, "--interval") == 0) {
        wish->interval_ms = interval_from(**arguments);
        if (wish->interval_ms == 0)
            return refuse_word("top: --interval takes 0.25 to 64 seconds, not '%.60s'",
                               **arguments);
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
    bool is_terminal = terminal_is_there();
    if (wish.pid == 0 && !wish.is_all && (wish.way != WAY_TERMINAL || !is_terminal))
        return complain(EXIT_USAGE, "top: the process is missing; hakmem top --help");
    hak_shm_remove_left((uint32_t)wish.pid);
    if (wish.way == WAY_SERVE)
        return fail(serve(wish.pid, wish.port));
    if (wish.way != WAY_TERMINAL)
        return run_once(&wish);
    if (!is_terminal)
        return fail("not a terminal: use --once, --json or --serve");
    return run_terminal(&wish);
}
