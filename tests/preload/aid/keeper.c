/* SPDX-License-Identifier: MIT */
/* tests/preload/aid/keeper.c - bursts of blocks that go, from two call sites, among which a third
 * site keeps one block in fifty for long.
 *
 *   keeper BURSTS WRAPPER    WRAPPER 1: all three sites allocate by one function
 *                            2: by a function that allocates by another one
 *                            3: the same, and the third site has such a function of its own
 *
 * Prints "valley KIB": resident after the bursts of the last third, in the mean. SIGTERM lets it
 * end after the burst that it is in.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BURST 300000u
#define KEPT 60000u
#define BYTES 120u

static void *burst[BURST];
static void *kept[KEPT];
static uint32_t kept_count;
static int wrapper_kind;
static volatile sig_atomic_t is_told_to_end;

__attribute__((noinline)) static void *wrapper(size_t bytes)
{
    void *block = malloc(bytes);
    __asm__ volatile("" ::: "memory");
    return block;
}

__attribute__((noinline)) static void *outer_wrapper(size_t bytes)
{
    void *block = wrapper(bytes);
    __asm__ volatile("" ::: "memory");
    return block;
}

__attribute__((noinline)) static void *keeping_wrapper(size_t bytes)
{
    void *block = wrapper(bytes);
    __asm__ volatile("" ::"i"(1) : "memory");
    return block;
}

/* Functions that differ, which the compiler keeps apart. */
#define SITE(name, number)                                                                         \
    __attribute__((noinline)) static void *name(void)                                              \
    {                                                                                              \
        bool is_kept = (number) == 3;                                                              \
        void *block = wrapper_kind == 0               ? malloc(BYTES)                              \
                      : wrapper_kind == 1             ? wrapper(BYTES)                             \
                      : wrapper_kind == 2 || !is_kept ? outer_wrapper(BYTES)                       \
                                                      : keeping_wrapper(BYTES);                    \
        if (block == NULL)                                                                         \
            abort();                                                                               \
        memset(block, number, BYTES);                                                              \
        return block;                                                                              \
    }
SITE(take_first, 1)
SITE(take_second, 2)
SITE(take_kept, 3)

static void load(void)
{
    for (uint32_t i = 0; i < BURST; i++) {
        burst[i] = i % 2 == 0 ? take_first() : take_second();
        if (i % 50 == 0) {
            void **place = &kept[kept_count++ % KEPT];
            free(*place);
            *place = take_kept();
        }
    }
    for (uint32_t i = 0; i < BURST; i++)
        free(burst[i]);
}

/* A little goes on: it lets hakmem look after its memory. */
static void idle(void)
{
    for (int i = 0; i < 15; i++) {
        usleep(10000);
        for (uint32_t j = 0; j < 2000; j++)
            burst[j] = take_first();
        for (uint32_t j = 0; j < 2000; j++)
            free(burst[j]);
    }
}

static uint64_t resident_kib(void)
{
    unsigned long size, resident;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%lu %lu", &size, &resident) != 2)
        abort();
    fclose(file);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
}

static void tell_to_end(int signal)
{
    (void)signal;
    is_told_to_end = 1;
}

int main(int argc, char **argv)
{
    int bursts = argc > 1 ? atoi(argv[1]) : 1;
    uint64_t sum = 0, count = 0;
    wrapper_kind = argc > 2 ? atoi(argv[2]) : 0;
    signal(SIGTERM, tell_to_end);
    for (int i = 0; i < bursts && !is_told_to_end; i++) {
        load();
        idle();
        if (i < bursts - bursts / 3)
            continue;
        sum += resident_kib();
        count++;
    }
    printf("valley %lu\n", (unsigned long)(count == 0 ? 0 : sum / count));
    return 0;
}
