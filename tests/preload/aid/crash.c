/* SPDX-License-Identifier: MIT */
/* tests/preload/aid/crash.c WAY - dies in some way, after a known use of memory. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define PAGE 4096u

/* The compiler does not know where it leads. */
static char *hidden(uintptr_t address)
{
    __asm__("" : "+r"(address));
    return (char *)address;
}

static void touch(uintptr_t address)
{
    *(volatile char *)hidden(address) = 1;
}

/* Forbids the page of an address, then writes there. */
static void forbid_and_touch(char *address)
{
    mprotect((void *)((uintptr_t)address & ~(uintptr_t)(PAGE - 1)), PAGE, PROT_NONE);
    touch((uintptr_t)address);
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

static int dive(int depth)
{
    volatile char frame[1024];
    memset((char *)frame, depth, sizeof frame);
    return depth < 1 << 30 ? dive(depth + 1) + frame[0] : 0;
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
    if (strcmp(way, "null") == 0)
        touch(8);
    else if (strcmp(way, "live") == 0)
        forbid_and_touch(block + 20000);
    else if (strcmp(way, "freed") == 0)
        forbid_and_touch(freed[1] + 20000);
    else if (strcmp(way, "large") == 0)
        forbid_and_touch(large + 700000);
    else if (strcmp(way, "foreign") == 0)
        forbid_and_touch(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    else if (strcmp(way, "beyond") == 0)
        touch((uintptr_t)block + ((size_t)1 << 38));
    else if (strcmp(way, "stack") == 0)
        return dive(0);
    else if (strcmp(way, "abort") == 0)
        abort();
    else if (strcmp(way, "sent") == 0)
        kill(getpid(), SIGSEGV);
    else if (strcmp(way, "misuse") == 0)
        free(hidden((uintptr_t)large + 64));
    else if (strcmp(way, "early") == 0)
        touch(8);
    else if (strcmp(way, "late") == 0) {
        signal(SIGSEGV, handle);
        touch(8);
    }
    return strcmp(way, "well") == 0 ? 0 : 2;
}
