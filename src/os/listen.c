/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "os/listen.h"

#include "base/atomic.h"
#include "base/text.h"
#include "os/os.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    int number;
} names[] = {
    {"HUP", SIGHUP},       {"INT", SIGINT},   {"QUIT", SIGQUIT}, {"USR1", SIGUSR1},
    {"USR2", SIGUSR2},     {"PIPE", SIGPIPE}, {"ALRM", SIGALRM}, {"TERM", SIGTERM},
    {"CHLD", SIGCHLD},     {"CONT", SIGCONT}, {"TSTP", SIGTSTP}, {"TTIN", SIGTTIN},
    {"TTOU", SIGTTOU},     {"URG", SIGURG},   {"XCPU", SIGXCPU}, {"XFSZ", SIGXFSZ},
    {"VTALRM", SIGVTALRM}, {"PROF", SIGPROF}, {"IO", SIGIO},     {"PWR", SIGPWR},
    {"WINCH", SIGWINCH},
};

#define KERNEL_SIGNALS_MOST 64
/* libc keeps these to itself. */
#define LIBC_FIRST 32
#define LIBC_LAST 33

/* Signals raised by an instruction, and signals that cannot be handled. */
static bool can_be_listened_to(long number)
{
    static const int not[] = {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE,
                              SIGILL,  SIGTRAP, SIGSYS,  SIGABRT};
    for (size_t i = 0; i < sizeof not/ sizeof *not; i++)
        if (number == not[i])
            return false;
    return number >= 1 && number <= KERNEL_SIGNALS_MOST &&
           (number < LIBC_FIRST || number > LIBC_LAST);
}

static int find_number(const char *text)
{
    size_t length = strlen(text);
    if (length == 0 || length > 2 || strspn(text, "0123456789") != length)
        return 0;
    long number = (long)hak_text_number(text, 10);
    return can_be_listened_to(number) ? (int)number : 0;
}

int hak_os_signal_find(const char *text)
{
    if (strncmp(text, "SIG", 3) == 0)
        text += 3;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i].name, text) == 0)
            return names[i].number;
    return find_number(text);
}

static struct sigaction before;
static void (*listener)(void);

static void on_signal(int number, siginfo_t *about, void *context)
{
    listener();
    if (before.sa_flags & SA_SIGINFO)
        before.sa_sigaction(number, about, context);
    else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
        before.sa_handler(number);
}

bool hak_os_signal_listen(int number, void (*run)(void))
{
    int saved = errno;
    struct sigaction action = {.sa_sigaction = on_signal,
                               .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    bool is_set = sigaction(number, NULL, &before) == 0;
    if (is_set) {
        action.sa_mask = before.sa_mask;
        listener = run;
        is_set = sigaction(number, &action, NULL) == 0;
    }
    errno = saved;
    return is_set;
}
