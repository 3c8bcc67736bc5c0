/* SPDX-License-Identifier: MIT */
/* tests/attack/matrix/misuse.c - one misuse a run, on whatever malloc is preloaded.
 *
 * misuse NAME BYTES. Exit status 0: the misuse had its way; 1: it found nothing to misuse (a read
 * that saw only zeros, an address that did not come back); else the allocator or the kernel ended
 * it. tools/attack_matrix.py runs all of them and writes docs/ATTACKS.md. */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define MIB ((size_t)1 << 20)
#define ROUNDS 2000

static size_t bytes;
static void *kept[ROUNDS];

/* The compiler must not know where it comes from. */
static char *take(size_t wanted)
{
    char *volatile block = malloc(wanted);
    if (block == NULL)
        exit(3);
    return block;
}

static void give(void *block)
{
    void *volatile hidden = block;
    free(hidden);
}

/* What is found out late is found out here. */
static void go_on(void)
{
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < ROUNDS; i++)
            kept[i] = take(bytes);
        for (int i = 0; i < ROUNDS; i++)
            give(kept[i]);
    }
}

static void come_and_go(int count)
{
    for (int i = 0; i < count; i++)
        give(take(bytes));
}

static void keep(int count)
{
    for (int i = 0; i < count; i++)
        kept[i] = take(bytes);
}

static void *free_once(void *block)
{
    give(block);
    return NULL;
}

static void *free_twice(void *block)
{
    give(block);
    return free_once(block);
}

/* To the end of the thread. */
static void run_thread(void *(*work)(void *), void *block)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, block) != 0 || pthread_join(thread, NULL) != 0)
        exit(3);
}

static void free_list_twice(void)
{
    keep(8);
    for (int i = 0; i < 16; i++)
        give(kept[i % 8]);
}

static void *resize(void *block, size_t wanted)
{
    void *volatile hidden = block;
    return realloc(hidden, wanted);
}

static void free_resized(char *block)
{
    char *moved = resize(block, 2 * bytes + 100);
    if (moved == block)
        give(moved);
    give(block);
}

static size_t usable_bytes(void *block)
{
    void *volatile hidden = block;
    return malloc_usable_size(hidden);
}

static void write_around(ptrdiff_t from, size_t count)
{
    for (int i = 0; i < 50; i++) {
        volatile char *block = take(bytes);
        for (size_t at = 0; at < count; at++)
            block[from < 0 ? -1 - (ptrdiff_t)at : (ptrdiff_t)(bytes + at)] = 'x';
        give((void *)block);
    }
}

static char *take_freed(void)
{
    char *block = take(bytes);
    memset(block, 'x', bytes);
    give(block);
    return block;
}

/* The misuse had its way where something is left of what was written. */
static void look(const volatile char *block)
{
    for (size_t i = 0; i < bytes; i++)
        if (block[i] == 'x')
            exit(0);
}

static void look_at_new(int count)
{
    for (int i = 0; i < count; i++)
        look(take(bytes));
}

static void look_for(const char *block)
{
    for (int i = 0; i < 20; i++)
        if (take(bytes) == block)
            exit(0);
}

/* clang-format off: a row a misuse. */
#define MISUSES(X)                                                                                 \
    X(double_free_at_once, char *p = take(bytes); give(p); give(p))                                \
    X(double_free_interleaved, char *p = take(bytes), *q = take(bytes); give(p); give(q); give(p)) \
    X(double_free_delayed, char *p = take(bytes); give(p); come_and_go(100); give(p))              \
    X(double_free_after_reuse, char *p = take(bytes); give(p); keep(20); give(p))                  \
    X(double_free_in_a_thread, run_thread(free_twice, take(bytes)))                                \
    X(double_free_by_two_threads, char *p = take(bytes); give(p); run_thread(free_once, p))        \
    X(double_free_of_a_list, free_list_twice())                                                    \
    X(realloc_freed, char *p = take(bytes); give(p); kept[0] = resize(p, 2 * bytes + 100))         \
    X(realloc_old_pointer, free_resized(take(bytes)))                                              \
    X(realloc_to_nothing_then_free, char *p = take(bytes); kept[0] = resize(p, 0); give(p))        \
    X(realloc_interior, kept[0] = resize(take(bytes + 16) + 16, 2 * bytes + 100))                  \
    X(usable_size_of_data, exit(usable_bytes(data) == 0 ? 1 : 0))                                  \
    X(free_interior, give(take(bytes + 16) + 16))                                                  \
    X(free_unaligned, give(take(bytes) + 1))                                                       \
    X(free_stack, _Alignas(16) char variable[64] = ""; give(variable))                             \
    X(free_far_up_the_stack, _Alignas(16) char variable[64] = ""; volatile char large[200000];     \
      large[0] = 'x'; give(variable); large[1] = large[0])                                         \
    X(free_stack_of_another_thread, _Alignas(16) char variable[64] = "";                           \
      run_thread(free_once, variable))                                                             \
    X(free_own_data, give(data))                                                                   \
    X(free_code, give((void *)((uintptr_t)go_on & ~(uintptr_t)15)))                                \
    X(free_data_of_a_library, give(stderr))                                                        \
    X(free_code_of_a_library, give((void *)((uintptr_t)strtoul & ~(uintptr_t)15)))                 \
    X(free_mapping,                                                                                \
      give((char *)mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) +   \
           4096))                                                                                  \
    X(free_near_null, give((void *)(uintptr_t)1))                                                  \
    X(free_far, give((void *)((uintptr_t)take(bytes) ^ (uintptr_t)1 << 46)))                       \
    X(overflow_1, write_around(1, 1))                                                              \
    X(overflow_32, write_around(1, 32))                                                            \
    X(overflow_1_mib, write_around(1, MIB))                                                        \
    X(underflow_1, write_around(-1, 1))                                                            \
    X(underflow_32, write_around(-1, 32))                                                          \
    X(underflow_1_mib, write_around(-1, MIB))                                                      \
    X(write_after_free, volatile char *p = take(bytes); give((void *)p);                           \
      for (size_t i = 0; i < 8; i++) p[i] = 'x')                                                   \
    X(read_after_free, look(take_freed()); exit(1))                                                \
    X(read_uninitialised, take_freed(); look_at_new(100); exit(1))                                 \
    X(reuse_at_once, char *p = take(bytes); give(p); look_for(p); exit(1))                         \
    X(write_no_bytes, volatile char *p = take(0); p[0] = 'x'; give((void *)p))                     \
    X(impossible_size, void *volatile p = malloc(SIZE_MAX - bytes); exit(p == NULL ? 1 : 0))

static _Alignas(16) char data[64] = "x";

#define X(name, ...)                                                                               \
    static void name(void)                                                                         \
    {                                                                                              \
        __VA_ARGS__;                                                                               \
        go_on();                                                                                   \
    }
MISUSES(X)
#undef X
/* clang-format on */

static const struct misuse {
    const char *name;
    void (*run)(void);
} misuses[] = {
#define X(name, ...) {#name, name},
    MISUSES(X)
#undef X
};

int main(int argument_count, char **arguments)
{
    size_t count = sizeof misuses / sizeof *misuses;
    for (size_t i = 0; argument_count < 3 && i < count; i++)
        puts(misuses[i].name);
    if (argument_count < 3)
        return 0;
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    bytes = strtoul(arguments[2], NULL, 10);
    for (size_t i = 0; i < count; i++)
        if (strcmp(misuses[i].name, arguments[1]) == 0)
            misuses[i].run();
    return 0;
}
