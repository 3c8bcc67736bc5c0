/* SPDX-License-Identifier: MIT */
/* tests/coverage.c - linked into the tests of out/coverage: what ran is written down also by
 * processes that end in abort() or _exit(), as those do that are meant to be stopped. */
#include <signal.h>
#include <unistd.h>

void __gcov_dump(void);
void __real__exit(int status) __attribute__((noreturn));
void __wrap__exit(int status) __attribute__((noreturn));

static void dump(int number)
{
    signal(number, SIG_DFL);
    __gcov_dump();
}

__attribute__((constructor)) static void dump_when_aborted(void)
{
    signal(SIGABRT, dump);
}

void __wrap__exit(int status)
{
    __gcov_dump();
    __real__exit(status);
}
