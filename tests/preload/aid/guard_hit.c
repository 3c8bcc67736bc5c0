/* SPDX-License-Identifier: MIT */
/* tests/preload/aid/guard_hit.c WAY - meets the guard of a sampled block in some way, or does with
 * the action of SIGSEGV what programs do. Its exit status says what went wrong: 40 and above. */
#define _GNU_SOURCE
#include "ways.h"

#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#define BYTES 64

static int can_read(const char *address)
{
    static int ends[2] = {-1, -1};
    if (ends[0] < 0 && pipe(ends) != 0)
        _exit(90);
    char byte;
    return write(ends[1], address, 1) == 1 && read(ends[0], &byte, 1) == 1;
}

/* A block with a page without access behind it; NULL: none of many is. */
__attribute__((noinline)) static char *find_guarded(void)
{
    static char *held[20000];
    int count = 0;
    char *found = NULL;
    while (found == NULL && count < 20000) {
        char *block = hidden(malloc(BYTES));
        if ((uintptr_t)(block + BYTES) % 4096 == 0 && !can_read(block + BYTES))
            found = block;
        else
            held[count++] = block;
    }
    while (count > 0)
        free(held[--count]);
    return found;
}

static char *take_guarded(void)
{
    char *block = find_guarded();
    if (block == NULL)
        _exit(91);
    return block;
}

static char *take_freed(void)
{
    char *block = take_guarded();
    free(block);
    return block;
}

static void say(const char *text)
{
    if (write(2, text, strlen(text)) < 0)
        _exit(92);
}

static char own_stack[65536];
static char *expected;

static void handle(int number, siginfo_t *about, void *context)
{
    char here;
    sigset_t blocked;
    sigprocmask(SIG_SETMASK, NULL, &blocked);
    if (number != SIGSEGV || about->si_addr != expected || context == NULL)
        _exit(41);
    if (&here < own_stack || &here >= own_stack + sizeof own_stack)
        _exit(42);
    if (!sigismember(&blocked, SIGUSR1) || sigismember(&blocked, SIGUSR2))
        _exit(43);
    say("handled\n");
    _exit(40);
}

static void set_handler(void)
{
    stack_t stack = {.ss_sp = own_stack, .ss_size = sizeof own_stack};
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_ONSTACK}, old;
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGUSR1);
    sigaltstack(&stack, NULL);
    if (sigaction(SIGSEGV, &action, &old) != 0 || old.sa_handler != SIG_DFL)
        _exit(44);
    if (sigaction(SIGSEGV, NULL, &old) != 0 || old.sa_sigaction != handle ||
        (old.sa_flags & (SA_SIGINFO | SA_ONSTACK)) != (SA_SIGINFO | SA_ONSTACK) ||
        !sigismember(&old.sa_mask, SIGUSR1))
        _exit(45);
}

/* Of the kernel: the bit of SIGSEGV in a line of /proc/self/status. */
static int is_in(const char *set)
{
    char line[256];
    int is = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        if (strncmp(line, set, strlen(set)) == 0)
            is = (int)(strtoull(line + strlen(set), NULL, 16) >> (SIGSEGV - 1) & 1);
    if (status != NULL)
        fclose(status);
    return is;
}

static void handle_plainly(int number)
{
    say(number == SIGSEGV ? "handled\n" : "?\n");
    _exit(40);
}

/* Deprecated, and still called. */
extern void (*old_set(int number, void (*handler)(int)))(int) __asm__("sigset");

static void ask(void)
{
    take_guarded();
    if (!is_in("SigCgt:"))
        _exit(46); /* nothing is tested */
    struct sigaction old;
    if (sigaction(SIGSEGV, NULL, &old) != 0 || old.sa_handler != SIG_DFL)
        _exit(47);
    take_guarded();
    if (signal(SIGSEGV, handle_plainly) != SIG_DFL)
        _exit(48);
    take_guarded();
    if (sysv_signal(SIGSEGV, SIG_IGN) != handle_plainly)
        _exit(49);
    take_guarded();
    if (is_in("SigCgt:") || !is_in("SigIgn:"))
        _exit(50); /* over an ignored signal there is no front: exec hands that on */
    if (old_set(SIGSEGV, SIG_DFL) != SIG_IGN || signal(SIGUSR1, handle_plainly) != SIG_DFL)
        _exit(51);
}

static sigjmp_buf back;
static void jump(int number)
{
    siglongjmp(back, number);
}

static void recover(void)
{
    struct sigaction action = {.sa_handler = jump};
    sigaction(SIGSEGV, &action, NULL);
    char *block = take_guarded();
    for (volatile int i = 0; i < 20; i++)
        if (sigsetjmp(back, 1) == 0)
            put(block + BYTES + 16 * i);
    free(take_guarded());
    say("went on\n");
}

static void *hit_in_thread(void *unused)
{
    prctl(PR_SET_NAME, "worker");
    put(take_freed() + 3);
    return unused;
}

static int status_of(pid_t child)
{
    int status;
    if (waitpid(child, &status, 0) != child)
        _exit(94);
    return status;
}

static void hit_in_child(void)
{
    char *block = take_guarded();
    pid_t child = fork();
    if (child == 0)
        put(block + BYTES);
    int status = status_of(child);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSEGV)
        _exit(52);
    struct sigaction old;
    if (!is_in("SigCgt:") || sigaction(SIGSEGV, NULL, &old) != 0 || old.sa_handler != SIG_DFL)
        _exit(53);
}

/* Where a stopped child was, and at what address. */
struct stop {
    uint64_t registers[64];
    siginfo_t about;
};

static int wait_for_stop(pid_t child, struct stop *stop)
{
    int status = status_of(child);
    if (!WIFSTOPPED(status))
        return 0;
    struct iovec set = {stop->registers, sizeof stop->registers};
    memset(stop, 0, sizeof *stop);
    if (WSTOPSIG(status) != SIGSEGV || ptrace(PTRACE_GETREGSET, child, (void *)1, &set) != 0 ||
        ptrace(PTRACE_GETSIGINFO, child, NULL, &stop->about) != 0)
        _exit(54);
    return 1;
}

/* What a core shows is what the last stop shows: the instruction and the address are those of the
 * first. */
static void look_at_death(int is_sent)
{
    struct stop first, last, next;
    char *block = take_guarded();
    pid_t child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        if (is_sent)
            sigqueue(getpid(), SIGSEGV, (union sigval){.sival_int = 77});
        else
            put(block + BYTES);
        _exit(0);
    }
    if (!wait_for_stop(child, &first))
        _exit(55);
    int count = 1;
    for (last = first;; last = next, count++) {
        ptrace(PTRACE_CONT, child, NULL, (void *)SIGSEGV);
        if (!wait_for_stop(child, &next))
            break;
    }
    if (count != 2) /* our handler, then the death */
        _exit(57);
    /* A call that a sent signal ended has left other registers. */
    if (!is_sent && memcmp(first.registers, last.registers, sizeof(struct user_regs_struct)) != 0)
        _exit(58);
    if (is_sent ? last.about.si_value.sival_int != 77 || last.about.si_pid != first.about.si_pid
                : last.about.si_addr != block + BYTES || last.about.si_code != SEGV_ACCERR)
        _exit(59);
}

/* The kernel's own, whatever libc's functions say. */
static uintptr_t raw_action(uintptr_t handler)
{
    uintptr_t old[8] = {0}, now[8] = {0};
    if (handler != 0) {
        syscall(SYS_rt_sigaction, SIGUSR1, NULL, now, 8); /* libc's flags and way back */
        now[0] = handler;
    }
    syscall(SYS_rt_sigaction, SIGSEGV, handler != 0 ? now : NULL, old, 8);
    return old[0];
}

/* As Go's runtime: around libc, which then is not meddled with any more. */
static void set_raw(void)
{
    signal(SIGUSR1, handle_plainly);
    char *block = take_guarded();
    uintptr_t front = raw_action((uintptr_t)handle_plainly);
    if (front == 0)
        _exit(60);
    for (int i = 0; i < 5; i++)
        take_guarded();
    if (raw_action(0) != (uintptr_t)handle_plainly)
        _exit(61);
    put(block + BYTES);
}

/* While a library's constructors run, the kernel has the program's action. */
static void load(void)
{
    take_guarded();
    if (raw_action(0) == 0)
        _exit(62);
    void *library = dlopen("libm.so.6", RTLD_NOW);
    if (library == NULL || raw_action(0) != 0)
        _exit(63);
    usleep(400000);
    take_guarded();
    if (raw_action(0) == 0)
        _exit(64);
}

int main(int argument_count, char **arguments)
{
    const char *way = argument_count == 2 ? arguments[1] : "";
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    ON("ask", ask(); return 0)
    ON("recover", recover(); return 0)
    ON("child", hit_in_child(); return 0)
    ON("traced", look_at_death(0); return 0)
    ON("traced-sent", look_at_death(1); return 0)
    ON("raw", set_raw(); return 0)
    ON("load", load(); return 0)
    ON("none", return is_in("SigCgt:") ? 65 : 0)
    ON("write-over", put(take_guarded() + BYTES + 5))
    ON("read-over", get(take_guarded() + BYTES))
    ON("under", put(take_guarded() - 4096))
    ON("write-freed", put(take_freed() + 3))
    ON("read-freed", get(take_freed()))
    ON("twice", free(take_freed()))
    ON("thread", run(hit_in_thread, NULL))
    ON("before", set_handler(); put(expected = take_guarded() + BYTES))
    ON("after", expected = take_guarded() + BYTES; set_handler(); take_guarded(); put(expected))
    ON("null", take_guarded(); put((char *)8))
    ON("sent", take_guarded(); kill(getpid(), SIGSEGV))
    ON("stack", take_guarded(); return dive(0))
    return 3;
}
