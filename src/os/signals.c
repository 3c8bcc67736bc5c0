/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "os/confine.h"
#include "os/os.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel's set of signals has 64 bits on the machines supported; libc's wrappers
 * would leave out its own two, and one of them carries cancellation. */
#define SIGNAL_COUNT 64
#define SIGNAL_BIT(number) (1ull << ((number) - 1))
/* Raised by an instruction, not from outside: blocked, they would kill. */
#define FAULT_SIGNALS                                                                              \
    (SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGBUS) | SIGNAL_BIT(SIGFPE) | SIGNAL_BIT(SIGILL) |          \
     SIGNAL_BIT(SIGTRAP) | SIGNAL_BIT(SIGSYS) | SIGNAL_BIT(SIGABRT))
/* With it libc changes the identity of every thread; its handler neither allocates nor jumps. */
#define SETXID_SIGNAL 33

uint64_t hak_os_block_signals(void)
{
    uint64_t wanted = ~FAULT_SIGNALS;
    uint64_t before = 0;
    int saved = errno;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &wanted, &before, sizeof before);
    errno = saved;
    return before;
}

void hak_os_restore_signals(uint64_t blocked)
{
    int saved = errno;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &blocked, NULL, sizeof blocked);
    errno = saved;
}

static _Atomic uintptr_t front_handler;

void hak_os_note_front(uintptr_t handler)
{
    hak_store_relaxed(&front_handler, handler);
}

/* Some handler of the program's runs on the alternate stack of its thread, if that has one. */
static bool has_handler_on_stack(void)
{
    bool is_found = false;
    for (int number = 1; number <= SIGNAL_COUNT && !is_found; number++) {
        uintptr_t action[8] = {0}; /* the second word: flags */
        if (number != SETXID_SIGNAL &&
            syscall(SYS_rt_sigaction, number, NULL, action, sizeof(uint64_t)) == 0)
            is_found = action[0] != (uintptr_t)SIG_DFL && action[0] != (uintptr_t)SIG_IGN &&
                       action[0] != hak_load_relaxed(&front_handler) &&
                       (action[1] & SA_ONSTACK) != 0;
    }
    return is_found;
}

/* While a handler runs on a stack of the kind SS_AUTODISARM, the kernel says that there is none. */
bool hak_os_may_be_on_signal_stack(void)
{
    stack_t stack = {0};
    int saved = errno;
    if (!hak_os_ask_begin())
        return true;
    if (sigaltstack(NULL, &stack) != 0)
        stack.ss_flags = SS_DISABLE;
    bool may_be = (stack.ss_flags & SS_ONSTACK) != 0 ||
                  ((stack.ss_flags & SS_DISABLE) != 0 && has_handler_on_stack());
    hak_os_ask_end();
    errno = saved;
    return may_be;
}
