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

static void double_free_at_once(void)
{
    char *block = take(bytes);
    give(block);
    give(block);
    go_on();
}

static void double_free_interleaved(void)
{
    char *block = take(bytes), *other = take(bytes);
    give(block);
    give(other);
    give(block);
    go_on();
}

static void double_free_delayed(void)
{
    char *block = take(bytes);
    give(block);
    for (int i = 0; i < 100; i++)
        give(take(bytes));
    give(block);
    go_on();
}

static void double_free_after_reuse(void)
{
    char *block = take(bytes);
    give(block);
    for (int i = 0; i < 20; i++)
        kept[i] = take(bytes);
    give(block);
    go_on();
}

static void *free_twice(void *block)
{
    give(block);
    give(block);
    return NULL;
}

static void *free_once(void *block)
{
    give(block);
    return NULL;
}

/* To the end of the thread. */
static void run_thread(void *(*work)(void *), void *block)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, block) != 0 || pthread_join(thread, NULL) != 0)
        exit(3);
}

static void double_free_in_a_thread(void)
{
    run_thread(free_twice, take(bytes));
    go_on();
}

static void double_free_by_two_threads(void)
{
    char *block = take(bytes);
    give(block);
    run_thread(free_once, block);
    go_on();
}

static void double_free_of_a_list(void)
{
    char *blocks[8];
    for (int i = 0; i < 8; i++)
        blocks[i] = take(bytes);
    for (int i = 0; i < 16; i++)
        give(blocks[i % 8]);
    go_on();
}

static void *resize(void *block, size_t wanted)
{
    void *volatile hidden = block;
    return realloc(hidden, wanted);
}

static void realloc_freed(void)
{
    char *block = take(bytes);
    give(block);
    kept[0] = resize(block, 2 * bytes + 100);
    go_on();
}

static void realloc_old_pointer(void)
{
    char *block = take(bytes);
    kept[0] = resize(block, 2 * bytes + 100);
    if (kept[0] == block)
        block = NULL, give(kept[0]), give(kept[0]);
    give(block);
    go_on();
}

static void realloc_to_nothing_then_free(void)
{
    char *block = take(bytes);
    kept[0] = resize(block, 0);
    give(block);
    go_on();
}

static void realloc_interior(void)
{
    kept[0] = resize(take(bytes + 16) + 16, 2 * bytes + 100);
    go_on();
}

static void free_interior(void)
{
    give(take(bytes + 16) + 16);
    go_on();
}

static void free_unaligned(void)
{
    give(take(bytes) + 1);
    go_on();
}

static void free_stack(void)
{
    _Alignas(16) char variable[64] = "";
    give(variable);
    go_on();
}

/* Deep calls and large arrays lie between the two. */
static void free_far_up_the_stack(void)
{
    _Alignas(16) char variable[64] = "";
    volatile char large[200000];
    large[0] = 'x';
    give(variable);
    large[1] = large[0];
    go_on();
}

static void free_stack_of_another_thread(void)
{
    _Alignas(16) char variable[64] = "";
    run_thread(free_once, variable);
    go_on();
}

static void free_own_data(void)
{
    static _Alignas(16) char data[64] = "x";
    give(data);
    go_on();
}

static void free_code(void)
{
    give((void *)(uintptr_t)((uintptr_t)go_on & ~(uintptr_t)15));
    go_on();
}

static void free_data_of_a_library(void)
{
    give(stderr);
    go_on();
}

static void free_code_of_a_library(void)
{
    give((void *)((uintptr_t)strtoul & ~(uintptr_t)15));
    go_on();
}

static void free_mapping(void)
{
    char *pages = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    give(pages + 4096);
    go_on();
}

static void usable_size_of_data(void)
{
    static _Alignas(16) char data[64] = "x";
    void *volatile hidden = data;
    exit(malloc_usable_size(hidden) == 0 ? 1 : 0);
}

static void free_near_null(void)
{
    give((void *)(uintptr_t)1);
}

static void free_far(void)
{
    give((void *)((uintptr_t)take(bytes) ^ (uintptr_t)1 << 46));
    go_on();
}

static void write_around(ptrdiff_t from, size_t count)
{
    for (int i = 0; i < 50; i++) {
        volatile char *block = take(bytes);
        for (size_t at = 0; at < count; at++)
            block[from < 0 ? -1 - (ptrdiff_t)at : (ptrdiff_t)(bytes + at)] = 'x';
        give((void *)block);
    }
    go_on();
}

static void overflow_1(void)
{
    write_around(1, 1);
}

static void overflow_32(void)
{
    write_around(1, 32);
}

static void overflow_1_mib(void)
{
    write_around(1, MIB);
}

static void underflow_1(void)
{
    write_around(-1, 1);
}

static void underflow_32(void)
{
    write_around(-1, 32);
}

static void underflow_1_mib(void)
{
    write_around(-1, MIB);
}

static void write_after_free(void)
{
    volatile char *block = take(bytes);
    give((void *)block);
    for (size_t i = 0; i < 8; i++)
        block[i] = 'x';
    go_on();
}

static void read_after_free(void)
{
    volatile char *block = take(bytes);
    memset((void *)block, 'x', bytes);
    give((void *)block);
    for (size_t i = 0; i < bytes; i++)
        if (block[i] == 'x')
            exit(0);
    exit(1);
}

static void read_uninitialised(void)
{
    char *block = take(bytes);
    memset(block, 'x', bytes);
    give(block);
    for (int i = 0; i < 100; i++) {
        volatile char *next = take(bytes);
        for (size_t at = 0; at < bytes; at++)
            if (next[at] == 'x')
                exit(0);
    }
    exit(1);
}

static void reuse_at_once(void)
{
    char *block = take(bytes);
    give(block);
    for (int i = 0; i < 20; i++)
        if (take(bytes) == block)
            exit(0);
    exit(1);
}

static void write_no_bytes(void)
{
    volatile char *block = take(0);
    block[0] = 'x';
    give((void *)block);
    go_on();
}

static void impossible_size(void)
{
    void *volatile block = malloc(SIZE_MAX - bytes);
    exit(block == NULL ? 1 : 0);
}

static const struct misuse {
    const char *name;
    void (*run)(void);
} misuses[] = {
#define X(function) {#function, function},
    X(double_free_at_once) X(double_free_interleaved) X(double_free_delayed)
        X(double_free_after_reuse) X(double_free_in_a_thread) X(double_free_by_two_threads)
            X(double_free_of_a_list) X(realloc_freed) X(realloc_old_pointer)
                X(realloc_to_nothing_then_free) X(realloc_interior) X(usable_size_of_data)
                    X(free_interior) X(free_unaligned) X(free_stack) X(free_far_up_the_stack)
                        X(free_stack_of_another_thread) X(free_own_data) X(free_code)
                            X(free_data_of_a_library) X(free_code_of_a_library) X(free_mapping)
                                X(free_near_null) X(free_far) X(overflow_1) X(overflow_32)
                                    X(overflow_1_mib) X(underflow_1) X(underflow_32)
                                        X(underflow_1_mib) X(write_after_free) X(read_after_free)
                                            X(read_uninitialised) X(reuse_at_once) X(write_no_bytes)
                                                X(impossible_size)
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
