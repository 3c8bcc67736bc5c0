/* SPDX-License-Identifier: MIT */
/* tests/preload/aid/fence.c WAY - misuses a block of 30 bytes in some way, or does what programs do
 * with many blocks. */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES 30

static char *hidden(void *address)
{
    __asm__("" : "+r"(address));
    return address;
}

static char *take_here(void)
{
    return hidden(malloc(BYTES));
}

static char *take_there(void)
{
    return hidden(malloc(BYTES));
}

static void give(char *block)
{
    free(hidden(block));
}

static char *take_freed(void)
{
    char *block = take_here();
    give(block);
    return hidden(block);
}

static void put(char *address)
{
    *(volatile char *)address = 1;
}

static void get(char *address)
{
    (void)*(volatile char *)address;
}

static void write_over(void)
{
    put(take_here() + 32);
}
static void read_over(void)
{
    get(take_here() + 33);
}
static void write_freed(void)
{
    put(take_freed() + 3);
}
static void read_freed(void)
{
    get(take_freed());
}
static void twice(void)
{
    give(take_freed());
}
static void inner(void)
{
    give(take_here() + 16);
}

static void slack(void)
{
    char *block = take_here();
    put(block + 31);
    give(block);
}

static void under(void)
{
    char *block = take_here();
    put(block - 5);
    give(block);
}

static void copy_over(void)
{
    static char from[40];
    memcpy(take_here(), hidden(from), 33);
}

static void *give_as_worker(void *block)
{
    prctl(PR_SET_NAME, "worker");
    give(block);
    return NULL;
}

static void by_thread(void)
{
    pthread_t thread;
    char *block = take_here();
    pthread_create(&thread, NULL, give_as_worker, block);
    pthread_join(thread, NULL);
    put(block);
}

/* The child lives, and its mistakes are told, too; the parent goes on. */
static void in_child(void)
{
    int status = 0;
    char *block = take_here();
    if (fork() == 0) {
        memset(block, 1, BYTES);
        give(block);
        give(take_there());
        if (fork() == 0)
            put(take_freed());
        _exit(wait(&status) > 0 && WIFSIGNALED(status) ? 0 : 1);
    }
    if (wait(&status) < 0 || status != 0)
        exit(60);
    memset(block, 2, BYTES);
    give(block);
}

/* More live blocks than there may be mappings. */
static void many(void)
{
    enum { COUNT = 120000 };
    static char *blocks[COUNT];
    for (int i = 0; i < COUNT; i++) {
        blocks[i] = malloc(BYTES);
        if (blocks[i] == NULL)
            exit(60);
        memset(blocks[i], i, BYTES);
    }
    for (int i = 0; i < COUNT; i++) {
        if (blocks[i][0] != (char)i || blocks[i][BYTES - 1] != (char)i)
            exit(61);
        free(blocks[i]);
    }
    put(take_freed()); /* fenced again */
}

/* What is named is fenced, what is not is not. */
static void only_here(void)
{
    char *here = take_here(), *there = take_there();
    if (malloc_usable_size(here) != BYTES || (uintptr_t)(here + 32) % 4096 != 0)
        exit(60);
    if ((uintptr_t)(there + 32) % 4096 == 0 && (uintptr_t)(take_there() + 32) % 4096 == 0)
        exit(61);
    put(here + 32);
}

int main(int count, char **words)
{
    static const struct {
        const char *name;
        void (*go)(void);
    } ways[] = {
        {"write-over", write_over}, {"read-over", read_over}, {"write-freed", write_freed},
        {"read-freed", read_freed}, {"twice", twice},         {"inner", inner},
        {"slack", slack},           {"under", under},         {"copy-over", copy_over},
        {"by-thread", by_thread},   {"in-child", in_child},   {"many", many},
        {"only-here", only_here},
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (count > 1 && strcmp(words[1], ways[i].name) == 0)
            ways[i].go();
    return 0;
}
