/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "os/crash.h"

#include "base/atomic.h"
#include "base/limits.h"
#include "os/home.h"
#include "os/os.h"

#include <errno.h>
#include <signal.h>
#include <stdalign.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A thread that crashes while another one reports ends the process so much later at most. */
#define PATIENCE_MS 1000

/* For the report's tables, and the signal frame of processors with large registers. */
#define STACK_BYTES (64 * HAK_KIB)

static const struct {
    int number;
    const char *name;
} signals[] = {{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGABRT, "SIGABRT"}};
#define SIGNALS (sizeof signals / sizeof *signals)

static struct sigaction before[SIGNALS];
static void (*reporter)(const struct crash *crash);
static _Atomic uint32_t has_reported;
static _Atomic uint32_t is_told;           /* the report is complete */
static _Atomic(const void *) is_reporting; /* the thread that reports, by where its own_stack is */
static alignas(16) char stack[STACK_BYTES];
HAK_AT_HAND static _Atomic uint32_t is_listening;
/* The calling thread's, behind a guard page; NULL: it has none of hakmem's. */
static HAK_TLS char *own_stack;

/* The program dies of the signal as if nobody had listened: by the faulting instruction, which runs
 * again, or by the signal sent anew, which waits until this handler returns. */
static void die(int number, bool is_fault)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigaction(number, &action, NULL);
    if (!is_fault)
        syscall(SYS_tgkill, hak_os_pid(), (pid_t)syscall(SYS_gettid), number);
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

static void await_report(void)
{
    uint64_t deadline_ms = hak_os_clock_ms() + PATIENCE_MS;
    /* acquire: partner is the release in report_once */
    while (hak_load_acquire(&is_told) == 0 && hak_os_clock_ms() < deadline_ms)
        hak_os_yield();
}

/* A fault in the report itself ends it. */
static void report_once(const struct crash *crash)
{
    if (hak_flag_take(&has_reported)) { /* for good */
        hak_store_relaxed(&is_reporting, &own_stack);
        reporter(crash);
        hak_store_release(&is_told, 1); /* partner: the acquire in await_report */
    } else if (hak_load_relaxed(&is_reporting) != (const void *)&own_stack) {
        await_report();
    }
}

static void on_crash(int number, siginfo_t *about, void *context)
{
    int saved = errno;
    size_t at = 0;
    while (at < SIGNALS - 1 && signals[at].number != number)
        at++;
    struct crash crash = {.signal = number,
                          .name = signals[at].name,
                          .is_fault = about->si_code > 0 && number != SIGABRT,
                          .is_refused = number == SIGSEGV && about->si_code == SEGV_ACCERR};
    hak_os_fault_read(&crash.fault, context);
    if (crash.is_fault)
        crash.fault.address = about->si_addr;
    report_once(&crash);
    errno = saved;
    pass_on(&before[at], number, about, context);
}

static bool has_stack_aside(void)
{
    stack_t now;
    return sigaltstack(NULL, &now) != 0 || (now.ss_flags & SS_DISABLE) == 0;
}

static bool set_stack_aside(char *start)
{
    stack_t own = {.ss_sp = start, .ss_size = STACK_BYTES};
    return sigaltstack(&own, NULL) == 0;
}

static void give_stack(char *start)
{
    hak_os_release(start - hak_os_page_bytes(), hak_os_page_bytes() + STACK_BYTES);
}

static void begin(void)
{
    if (own_stack != NULL || has_stack_aside())
        return;
    char *reserved = hak_os_reserve(hak_os_page_bytes() + STACK_BYTES);
    if (reserved == NULL)
        return;
    char *start = reserved + hak_os_page_bytes();
    if (hak_os_commit(start, STACK_BYTES) && set_stack_aside(start))
        own_stack = start;
    else
        give_stack(start);
}

static void end(void)
{
    char *start = own_stack;
    stack_t none = {.ss_flags = SS_DISABLE, .ss_size = STACK_BYTES}, now;
    own_stack = NULL;
    if (start == NULL || sigaltstack(NULL, &now) != 0)
        return;
    /* A thread that ends in a handler stands on it. */
    if (now.ss_sp == start && sigaltstack(&none, NULL) != 0)
        return;
    give_stack(start);
}

void hak_os_crash_thread_begin(void)
{
    if (HAK_LIKELY(hak_load_relaxed(&is_listening) == 0))
        return;
    int saved = errno;
    begin();
    errno = saved;
}

void hak_os_crash_thread_end(void)
{
    int saved = errno;
    end();
    errno = saved;
}

bool hak_os_crash_listen(void (*report)(const struct crash *crash))
{
    int saved = errno;
    struct sigaction action = {.sa_sigaction = on_crash,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    bool is_set = true;
    reporter = report;
    /* A fault because the first thread's stack is full is then told, too. */
    if (!has_stack_aside())
        set_stack_aside(stack);
    hak_store_relaxed(&is_listening, 1);
    for (size_t i = 0; i < SIGNALS; i++)
        is_set = sigaction(signals[i].number, &action, &before[i]) == 0 && is_set;
    errno = saved;
    return is_set;
}
