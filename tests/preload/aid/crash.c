/* SPDX-License-Identifier: MIT */
/* tests/preload/aid/crash.c WAY - dies in some way, after a known use of memory. */
#define _GNU_SOURCE
#include "ways.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define PAGE 4096u

/* Forbids the page of an address, then writes there. */
static void forbid_and_put(char *address)
{
    mprotect((void *)((uintptr_t)address & ~(uintptr_t)(PAGE - 1)), PAGE, PROT_NONE);
    put(address);
}

static void handle(int number)
{
    static const char said[] = "handled\n";
    if (write(2, said, sizeof said - 1) > 0)
        _exit(number == SIGSEGV ? 40 : 41);
}

/* Before hakmem's start where the order of constructors allows: through the preinit array. */
static void handle_early(int argument_count, char **arguments)
{
    if (argument_count == 2 && strcmp(arguments[1], "early") == 0)
        signal(SIGSEGV, handle);
}
__attribute__((section(".preinit_array"), used)) static void (*early)(int, char **) = handle_early;

static void *dive_here(void *unused)
{
    free(hidden(malloc(100)));
    return (void *)(uintptr_t)dive(unused != NULL);
}

static void *end_after_malloc(void *unused)
{
    free(hidden(malloc(100)));
    return unused;
}

/* A stack of its own comes first: it stays. */
static void *keep_own_stack(void *unused)
{
    static char own[65536];
    stack_t stack = {.ss_sp = own, .ss_size = sizeof own}, now;
    sigaltstack(&stack, NULL);
    free(hidden(malloc(100)));
    sigaltstack(NULL, &now);
    if (now.ss_sp != own || now.ss_flags != 0)
        _exit(50);
    return dive_here(unused);
}

/* A stack of its own replaces what hakmem set: it stays, too, past the thread's end. */
static void *replace_stack(void *unused)
{
    static char own[65536];
    stack_t stack = {.ss_sp = own, .ss_size = sizeof own}, now;
    free(hidden(malloc(100)));
    sigaltstack(NULL, &now);
    if (now.ss_sp == NULL || (now.ss_flags & SS_DISABLE) != 0)
        _exit(51); /* hakmem set none */
    sigaltstack(&stack, NULL);
    return unused;
}

static void *crash_after_first_line(void *unused)
{
    struct stat about;
    while (fstat(2, &about) == 0 && about.st_size == 0)
        continue;
    put((char *)16);
    return unused;
}

/* Another thread crashes while the crash is being reported. */
static void crash_twice(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, crash_after_first_line, NULL) == 0)
        put((char *)8);
}

static int mapping_count(void)
{
    char line[512];
    int count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL)
        count++;
    if (maps != NULL)
        fclose(maps);
    return count;
}

/* What threads set aside goes with them. */
static int run_many(void)
{
    for (int i = 0; i < 10; i++)
        run(end_after_malloc, NULL);
    int before = mapping_count();
    for (int i = 0; i < 200; i++)
        run(i % 2 == 0 ? end_after_malloc : replace_stack, NULL);
    return mapping_count() < before + 20 ? 0 : 53;
}

int main(int argument_count, char **arguments)
{
    const char *way = argument_count == 2 ? arguments[1] : "";
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    char *block = malloc(40000);
    char *large = malloc(1 << 20);
    char *freed[64];
    for (int i = 0; i < 64; i++)
        freed[i] = malloc(40000);
    for (int i = 0; i < 64; i++)
        free(freed[i]);
    ON("null", put((char *)8))
    ON("empty", put((char *)malloc((size_t)hidden(NULL)) + 5))
    ON("live", forbid_and_put(block + 20000))
    ON("freed", forbid_and_put(freed[1] + 20000))
    ON("large", forbid_and_put(large + 700000))
    ON("foreign", forbid_and_put(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)))
    ON("beyond", put(block + ((size_t)1 << 38)))
    ON("stack", return dive(0))
    ON("thread", run(dive_here, NULL))
    ON("own", run(keep_own_stack, NULL))
    ON("twice", crash_twice())
    ON("many", return run_many())
    ON("abort", abort())
    ON("sent", kill(getpid(), SIGSEGV))
    ON("misuse", free(hidden(large + 64)))
    ON("early", put((char *)8))
    ON("late", signal(SIGSEGV, handle); put((char *)8))
    return strcmp(way, "well") == 0 ? 0 : 2;
}
