/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "ask.h"
#include "command.h"
#include "conf/conf.h"
#include "profiles/formats.h"
#include "profiles/source.h"
#include "serving.h"
#include "words.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* As many files of statistics of one process may lie in one folder. */
#define DUMPS_MOST 1000
#define WAIT_MOST_SECONDS 3600

static bool write_heap_v2(struct profile *profile, FILE *to)
{
    heap_v2_write(profile, to);
    return true;
}

static bool write_folded(struct profile *profile, FILE *to)
{
    folded_write(profile, VALUE_LIVE_BYTES, to);
    return true;
}

static bool write_json(struct profile *profile, FILE *to)
{
    json_write(profile, to);
    return true;
}

/* What a process writes, on which words, and, of its heap profile, what the command writes itself
 * where the process does not answer. */
static const struct dump {
    const char *option; /* NULL: none */
    const char *words;
    const char *suffix;
    bool (*write)(struct profile *profile, FILE *to);
} dumps[] = {
    {NULL, "dump", "json", NULL},
    {"--pprof", "profile dump", "pprof", pprof_write},
    {"--heap-v2", "profile dump heap_v2", "heap", write_heap_v2},
    {"--folded", "profile dump folded", "folded", write_folded},
    {"--profile-json", "profile dump json", "profile.json", write_json},
};

struct order {
    int pid;
    uint32_t wait_ms;
    char words[HAK_REQUEST_WORDS_BYTES];
    bool is_for_later;       /* a process that does not answer may do it when it works again */
    const struct dump *dump; /* what is written; NULL: nothing */
    const char *file;        /* of a dump; NULL: a new one */
};

struct dump_file {
    char name[4096];
    int fd;
    bool is_new; /* made by this command */
};

static int open_new(const char *name)
{
    return open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

static void open_named(struct dump_file *file, const char *name)
{
    snprintf(file->name, sizeof file->name, "%s", name);
    file->fd = open_new(name);
    file->is_new = file->fd >= 0;
    if (!file->is_new && errno == EEXIST)
        file->fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0600);
}

/* Of a name that no file has yet. */
static void open_unnamed(struct dump_file *file, const struct order *order)
{
    file->fd = -1;
    for (int i = 1; file->fd < 0 && i <= DUMPS_MOST; i++) {
        if (i == 1)
            snprintf(file->name, sizeof file->name, "hakmem.%d.%s", order->pid,
                     order->dump->suffix);
        else
            snprintf(file->name, sizeof file->name, "hakmem.%d.%d.%s", order->pid, i,
                     order->dump->suffix);
        file->fd = open_new(file->name);
        if (file->fd < 0 && errno != EEXIST)
            break;
    }
    file->is_new = file->fd >= 0;
}

/* A file that is not there yet, or the one that was named; "-": standard output. */
static void open_dump(struct dump_file *file, const struct order *order)
{
    if (order->file == NULL)
        open_unnamed(file, order);
    else if (strcmp(order->file, "-") != 0)
        open_named(file, order->file);
    else
        *file = (struct dump_file){.name = "-", .fd = STDOUT_FILENO};
}

/* What is not whole is removed, if this command made it; false: errno says why it is not. */
static bool close_dump(const struct dump_file *file, bool is_saved)
{
    if (is_saved && file->fd != STDOUT_FILENO)
        is_saved = close(file->fd) == 0;
    int error = errno;
    if (!is_saved && file->is_new)
        unlink(file->name);
    errno = error;
    return is_saved;
}

static volatile sig_atomic_t is_pipe_closed;

static void on_closed_pipe(int number)
{
    (void)number;
    is_pipe_closed = 1;
}

/* A reader that has gone ends this command only when its request is removed, unless it does not end
 * it at all. */
static void outlive_closed_pipe(void)
{
    struct sigaction action = {.sa_handler = on_closed_pipe}, before;
    if (sigaction(SIGPIPE, NULL, &before) == 0 && before.sa_handler == SIG_DFL)
        sigaction(SIGPIPE, &action, NULL);
}

static int end_or_return(int status)
{
    struct sigaction now;
    if (is_pipe_closed)
        end_by_signal(SIGPIPE);
    if (sigaction(SIGPIPE, NULL, &now) == 0 && now.sa_handler == on_closed_pipe)
        signal(SIGPIPE, SIG_DFL);
    return status;
}

/* Copies the process's output behind the request; false: errno says why not. */
static bool copy_dump(int from, int to)
{
    char piece[4096];
    ssize_t bytes;
    off_t at = sizeof(struct control_request);
    while ((bytes = pread(from, piece, sizeof piece, at)) > 0) {
        ssize_t written = write(to, piece, (size_t)bytes); /* less, at the end of the room */
        if (written <= 0)
            return false;
        at += written;
    }
    return bytes == 0;
}

/* The heap profile of a process that does not answer, from its shared memory; false: errno says why
 * not. */
static bool write_board(const struct order *order, struct source *source, int to)
{
    int copy = dup(to);
    FILE *file = copy < 0 ? NULL : fdopen(copy, "w");
    source_name(source, order->dump->write == pprof_write ? NAMES_WHERE_KNOWN : NAMES_FOR_ALL);
    errno = 0;
    bool is_written = file != NULL && order->dump->write(&source->profile, file);
    return file != NULL && fclose(file) == 0 && is_written;
}

/* From what the process wrote, or from its board, where that is not NULL. */
static int save_dump(const struct order *order, const struct ask *ask, struct source *board)
{
    struct dump_file file;
    open_dump(&file, order);
    bool is_saved = file.fd >= 0 && (board != NULL ? write_board(order, board, file.fd)
                                                   : copy_dump(ask->fd, file.fd));
    if (!close_dump(&file, is_saved))
        return is_pipe_closed ? EXIT_FAILED
                              : complain(EXIT_FAILED, "ctl: %.200s cannot be written: %s",
                                         file.name, strerror(errno));
    if (file.fd == STDOUT_FILENO)
        return EXIT_DONE;
    printf("process %d: %s in %s%s\n", order->pid,
           order->dump->write != NULL ? "profile" : "statistics", file.name,
           board != NULL ? ", from its shared memory: the process itself does not answer" : "");
    return EXIT_DONE;
}

/* A process that sleeps has its heap profile in shared memory; what else is asked of it needs code
 * that runs inside it. */
static int do_without_answer(const struct order *order, const char *why)
{
    char pid[16];
    struct source source;
    snprintf(pid, sizeof pid, "%d", order->pid);
    if (order->dump == NULL || order->dump->write == NULL)
        return complain(EXIT_FAILED, "ctl: %s", why);
    int status = source_try(&source, pid) && source.is_alive
                     ? save_dump(order, NULL, &source)
                     : complain(EXIT_FAILED, "ctl: %s", why);
    source_end(&source);
    return status;
}

static int carry_out_later(const struct order *order)
{
    struct ask ask;
    const char *answer;
    if (!ask_or_leave(&ask, order->pid, order->words, order->wait_ms, &answer))
        return complain(EXIT_FAILED, "ctl: %s", answer);
    printf("process %d: %s\n", order->pid, answer);
    return EXIT_DONE;
}

static int carry_out(const struct order *order)
{
    struct ask ask;
    const char *answer;
    int status = EXIT_DONE;
    const char *obstacle = serving_obstacle(order->pid);
    if (obstacle != NULL)
        return complain(EXIT_FAILED, "ctl: %s", obstacle);
    if (order->is_for_later)
        return carry_out_later(order);
    if (!ask_and_wait(&ask, order->pid, order->words, order->wait_ms, &answer))
        return do_without_answer(order, answer);
    outlive_closed_pipe();
    if (order->dump != NULL)
        status = save_dump(order, &ask, NULL);
    else
        printf("process %d: %s\n", order->pid, answer);
    ask_end(&ask);
    return end_or_return(status);
}

static int understand_set(struct order *order, const char *setting)
{
    if (setting == NULL || strchr(setting, '=') == NULL || *setting == '=')
        return complain(EXIT_USAGE, "ctl: set takes NAME=VALUE, not '%.60s'",
                        setting == NULL ? "nothing" : setting);
    size_t name_bytes = strcspn(setting, "=");
    if (hak_conf_find_bytes(setting, name_bytes) == CONF_COUNT)
        return complain_option(setting, name_bytes);
    if ((size_t)snprintf(order->words, sizeof order->words, "set %s", setting) >=
        sizeof order->words)
        return complain(EXIT_USAGE, "ctl: the value is too long");
    return EXIT_DONE;
}

static int understand_dump(struct order *order, char ***rest)
{
    order->dump = &dumps[0];
    for (size_t i = 1; i < sizeof dumps / sizeof *dumps && **rest != NULL; i++)
        if (strcmp(**rest, dumps[i].option) == 0)
            order->dump = &dumps[i];
    *rest += order->dump->option != NULL;
    snprintf(order->words, sizeof order->words, "%s", order->dump->words);
    if (**rest != NULL && strncmp(**rest, "--", 2) == 0)
        return complain(EXIT_USAGE,
                        "ctl: dump takes --pprof, --heap-v2, --folded or --profile-json, not "
                        "'%.60s'",
                        **rest);
    order->file = **rest;
    *rest += **rest != NULL;
    return EXIT_DONE;
}

/* The words of the request, from those of the command; *rest are the remaining ones. */
static int understand_words(struct order *order, char **words, char ***rest)
{
    const char *what = words[0] == NULL ? "nothing" : words[0];
    *rest = words + 1;
    snprintf(order->words, sizeof order->words, "%s", what);
    if (strcmp(what, "trim") == 0)
        return EXIT_DONE;
    if (strcmp(what, "dump") == 0)
        return understand_dump(order, rest);
    if (strcmp(what, "set") == 0) {
        *rest += words[1] != NULL;
        return understand_set(order, words[1]);
    }
    if (strcmp(what, "profile") == 0 && words[1] != NULL &&
        (strcmp(words[1], "on") == 0 || strcmp(words[1], "off") == 0)) {
        snprintf(order->words, sizeof order->words, "profile %s", words[1]);
        ++*rest;
        return EXIT_DONE;
    }
    if (strcmp(what, "profile") == 0)
        return complain(EXIT_USAGE, "ctl: profile takes on or off, not '%.60s'",
                        words[1] == NULL ? "nothing" : words[1]);
    return complain(EXIT_USAGE,
                    "ctl: a process can be asked to trim, dump, set or profile, not '%.60s'", what);
}

/* Takes the options out that do not belong to one request: they may stand anywhere. */
static int understand_options(struct order *order, char **words)
{
    char **left = words;
    for (; *words != NULL; words++) {
        if (strcmp(*words, "--later") == 0) {
            order->is_for_later = true;
        } else if (strcmp(*words, "--wait") != 0) {
            *left++ = *words;
        } else {
            const char *word = *++words;
            int seconds = number_from(word, 1, WAIT_MOST_SECONDS);
            if (seconds < 0)
                return complain(EXIT_USAGE, "ctl: --wait takes 1 to %d seconds, not '%.60s'",
                                WAIT_MOST_SECONDS, word == NULL ? "nothing" : word);
            order->wait_ms = (uint32_t)seconds * 1000;
        }
    }
    *left = NULL;
    return EXIT_DONE;
}

int command_ctl(int argument_count, char **arguments)
{
    (void)argument_count;
    struct order order = {.wait_ms = ASK_WAIT_MS};
    char **rest = arguments + 1;
    int understood = understand_options(&order, rest);
    if (understood != EXIT_DONE)
        return understood;
    if (*rest == NULL)
        return complain_usage("ctl");
    order.pid = process_number_from(*rest);
    if (order.pid == 0)
        return complain(EXIT_USAGE, "ctl: '%.60s' is not a process id", *rest);
    int status = understand_words(&order, rest + 1, &rest);
    if (status != EXIT_DONE)
        return status;
    if (*rest != NULL)
        return complain(EXIT_USAGE, "ctl: one request at a time, not also '%.60s'", *rest);
    if (order.is_for_later && order.dump != NULL)
        return complain(EXIT_USAGE, "ctl: dump waits for its answer and does not take --later");
    return carry_out(&order);
}
