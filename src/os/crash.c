/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "os/crash.h"

#include "base/atomic.h"
#include "base/limits.h"

#include <errno.h>
#include <signal.h>
#include <stdalign.h>
#include <sys/syscall.h>
#include <unistd.h>

/* For the report's tables, and what processors with large registers put there. */
#define STACK_BYTES (64 * HAK_KIB)

static const struct {
    int number;
    const char *name;
} signals[] = {{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGABRT, "SIGABRT"}};
#define SIGNALS (sizeof signals / sizeof *signals)

static struct sigaction before[SIGNALS];
static void (*reporter)(const struct crash *crash);
static _Atomic uint32_t has_reported;
static alignas(16) char stack[STACK_BYTES];

/* The program dies of the signal as if nobody had listened: by the faulting instruction, which runs
 * again, or by the signal sent anew, which waits until this handler returns. */
static void die(int number, bool is_fault)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigaction(number, &action, NULL);
    if (!is_fault)
        syscall(SYS_tgkill, getpid(), (pid_t)syscall(SYS_gettid), number);
}

static void pass_on(const struct sigaction *to, int number, siginfo_t *about, void *context)
{
    if (to->sa_flags & SA_SIGINFO)
        to->sa_sigaction(number, about, context);
    else if (to->sa_handler != SIG_DFL && to->sa_handler != SIG_IGN)
        to->sa_handler(number);
    else if (to->sa_handler == SIG_DFL || about->si_code > 0)
        die(number, about->si_code > 0);
}

static void on_crash(int number, siginfo_t *about, void *context)
{
    int saved = errno;
    size_t at = 0;
    uint32_t expected = 0;
    while (at < SIGNALS - 1 && signals[at].number != number)
        at++;
    struct crash crash = {.signal = number,
                          .name = signals[at].name,
                          .is_fault = about->si_code > 0 && number != SIGABRT,
                          .is_refused = number == SIGSEGV && about->si_code == SEGV_ACCERR};
    if (crash.is_fault)
        crash.address = about->si_addr;
    /* acquire: no partner is needed, the exchange only elects one thread */
    if (hak_cas_acquire(&has_reported, &expected, 1))
        reporter(&crash);
    errno = saved;
    pass_on(&before[at], number, about, context);
}

/* The first thread's, unless it has one; a fault because its stack is full is then told, too. */
static void set_stack_aside(void)
{
    stack_t own = {.ss_sp = stack, .ss_size = sizeof stack}, now;
    if (sigaltstack(NULL, &now) == 0 && (now.ss_flags & SS_DISABLE) != 0)
        sigaltstack(&own, NULL);
}

bool hak_os_crash_listen(void (*report)(const struct crash *crash))
{
    int saved = errno;
    struct sigaction action = {.sa_sigaction = on_crash,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    bool is_set = true;
    reporter = report;
    set_stack_aside();
    for (size_t i = 0; i < SIGNALS; i++)
        is_set = sigaction(signals[i].number, &action, &before[i]) == 0 && is_set;
    errno = saved;
    return is_set;
}
