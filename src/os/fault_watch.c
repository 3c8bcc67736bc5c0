/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "os/fault_watch.h"

#include "base/atomic.h"
#include "os/confine.h"
#include "os/flag.h"
#include "os/home.h"
#include "os/os.h"
#include "os/program.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Actions that the front has stood over and may still be read by a handler under way. */
#define RECORDS 16u

typedef int action_function(int number, const struct sigaction *action, struct sigaction *old);

HAK_AT_HAND static struct os_fault_watch watch;
HAK_AT_HAND static _Atomic(action_function *)
    set_action; /* libc's; NULL: the front is never raised */
static struct sigaction records[RECORDS];
static uint32_t record_count;
static _Atomic(const struct sigaction *) before; /* what the front stands over */
static _Atomic uint32_t turn;                    /* somebody changes the action */
static _Atomic int32_t pause_count;
static _Atomic bool is_raised;         /* unless others than libc's functions meddled */
static _Atomic bool is_over;           /* never again */
static _Atomic uint64_t not_before_ms; /* a library may be starting until then */

static bool is_default(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) == 0 && action->sa_handler == SIG_DFL;
}

static bool is_ignored(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) == 0 && action->sa_handler == SIG_IGN;
}

static int change(const struct sigaction *action, struct sigaction *old)
{
    return hak_load_relaxed(&set_action)(SIGSEGV, action, old);
}

/* Ends the process as the signal's default action would. */
static void die(siginfo_t *about)
{
    const struct sigaction none = {.sa_handler = SIG_DFL};
    change(&none, NULL);
    if (about->si_code <= 0)
        syscall(SYS_rt_tgsigqueueinfo, hak_os_pid(), (pid_t)syscall(SYS_gettid), SIGSEGV, about);
}

static HAK_NOINLINE void tell(const siginfo_t *about, const void *context, bool is_fatal)
{
    struct os_fault fault = {.address = about->si_addr};
    int saved = errno;
    hak_os_fault_read(&fault, context);
    if (watch.unwinds)
        hak_os_fault_unwind(&fault, context);
    watch.tell(&fault, is_fatal);
    errno = saved;
}

/* The last call is a jump: the program's handler runs on the kernel's frame and returns to it. */
HAK_ENDS_IN_JUMP static void front(int number, siginfo_t *about, void *context)
{
    const struct sigaction *next = hak_load_acquire(&before); /* partner: the release in raise */
    if (about->si_code > 0 && watch.is_watched(about->si_addr))
        tell(about, context, is_default(next));
    if (next->sa_flags & SA_SIGINFO)
        next->sa_sigaction(number, about, context);
    else if (is_default(next))
        die(about);
    else
        ((void (*)(int, siginfo_t *, void *))(void (*)(void))next->sa_handler)(number, about,
                                                                               context);
}

static bool is_front(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) != 0 && action->sa_sigaction == front;
}

/* One thread at a time. After too long a wait a thread goes on, since a fork may have left the turn
 * taken. Signals are blocked meanwhile, as handlers may set actions, too. */
static uint64_t take_turn(void)
{
    uint64_t blocked = hak_os_block_signals();
    (void)hak_flag_await(&turn);
    return blocked;
}

static void give_turn(uint64_t blocked)
{
    hak_flag_give(&turn);
    hak_os_restore_signals(blocked);
}

/* The action with the front as its handler. */
static struct sigaction front_of(const struct sigaction *action)
{
    struct sigaction result = *action;
    if (is_default(action))
        result = (struct sigaction){.sa_flags = SA_ONSTACK | SA_RESTART};
    result.sa_flags |= SA_SIGINFO;
    result.sa_sigaction = front;
    return result;
}

static bool is_same(const struct sigaction *a, const struct sigaction *b)
{
    return a->sa_sigaction == b->sa_sigaction && a->sa_flags == b->sa_flags &&
           memcmp(&a->sa_mask, &b->sa_mask, sizeof a->sa_mask) == 0;
}

static void note_before(const struct sigaction *action)
{
    const struct sigaction *last = hak_load_relaxed(&before);
    if (last != NULL && is_same(last, action))
        return;
    struct sigaction *record = &records[record_count++ % RECORDS];
    *record = *action;
    hak_store_release(&before, record); /* partner: the acquire in front */
}

static bool may_raise(const struct sigaction *now)
{
    if (hak_load_relaxed(&pause_count) > 0 || hak_load_relaxed(&is_over) || is_ignored(now) ||
        hak_os_clock_ms() < hak_load_relaxed(&not_before_ms))
        return false;
    if (hak_load_relaxed(&is_raised)) {
        /* The kernel was asked without libc: what was asked may have got the front's address. */
        hak_store_relaxed(&is_over, true);
        return false;
    }
    return !is_default(now) || !hak_os_program_is_go();
}

static void raise_in_turn(void)
{
    struct sigaction now, old;
    if (change(NULL, &now) != 0 || is_front(&now) || !may_raise(&now))
        return;
    for (;;) {
        note_before(&now);
        const struct sigaction action = front_of(&now);
        if (change(&action, &old) != 0)
            return;
        hak_store_relaxed(&is_raised, true);
        hak_os_note_front(is_default(&now) ? (uintptr_t)front : 0);
        if (is_front(&old) || is_same(&old, &now))
            return;
        now = old; /* set in between, without libc */
    }
}

static void lower_in_turn(void)
{
    struct sigaction now;
    if (hak_load_relaxed(&set_action) != NULL && change(NULL, &now) == 0 && is_front(&now))
        change(hak_load_relaxed(&before), NULL);
    hak_store_relaxed(&is_raised, false);
    hak_os_note_front(0);
}

/* Usually it is installed, which takes one system call to see. */
static bool is_there(void)
{
    struct sigaction now;
    bool is = change(NULL, &now) == 0 && is_front(&now);
    if (is)
        hak_store_relaxed(&is_raised, true); /* a child of vfork may have said otherwise */
    return is;
}

static void raise_it(void)
{
    if (is_there())
        return;
    uint64_t blocked = take_turn();
    raise_in_turn();
    give_turn(blocked);
}

void hak_os_fault_watch_raise(void)
{
    /* acquire: partner is the release in hak_os_fault_watch_start */
    if (hak_load_acquire(&set_action) == NULL || hak_load_relaxed(&is_over) || !hak_os_ask_begin())
        return;
    int saved = errno;
    raise_it();
    hak_os_ask_end();
    errno = saved;
}

static void lower(void)
{
    int saved = errno;
    uint64_t blocked = take_turn();
    lower_in_turn();
    give_turn(blocked);
    errno = saved;
}

void hak_os_fault_watch_lower(uint32_t rest_ms)
{
    hak_store_relaxed(&not_before_ms, hak_os_clock_ms() + rest_ms);
    lower();
}

void hak_os_fault_watch_pause(void)
{
    hak_fetch_add_relaxed(&pause_count, 1);
    lower();
}

void hak_os_fault_watch_resume(void)
{
    hak_fetch_sub_relaxed(&pause_count, 1);
}

void hak_os_fault_watch_reset(void)
{
    hak_store_relaxed(&turn, 0);
    hak_store_relaxed(&pause_count, 0);
}

void hak_os_fault_watch_end(void)
{
    hak_store_relaxed(&is_over, true);
    if (hak_load_relaxed(&is_raised))
        lower();
}

void hak_os_fault_watch_start(const struct os_fault_watch *wanted, void *libcs_sigaction)
{
    action_function *function;
    *(void **)&function = libcs_sigaction;
    watch = *wanted;
    hak_store_release(&set_action, function); /* partner: the acquire in hak_os_fault_watch_raise */
}
