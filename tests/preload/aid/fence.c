/* SPDX-License-Identifier: MIT */
/* tests/preload/aid/fence.c WAY - misuses a block of 30 bytes in some way, or does what programs do
 * with many blocks. */
#define _GNU_SOURCE
#include "ways.h"

#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define BYTES 30

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
    char *block = take_here();
    run(give_as_worker, block);
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
    const char *way = count > 1 ? words[1] : "";
    ON("write-over", put(take_here() + 32))
    ON("read-over", get(take_here() + 33))
    ON("write-freed", put(take_freed() + 3))
    ON("read-freed", get(take_freed()))
    ON("twice", give(take_freed()))
    ON("inner", give(take_here() + 16))
    ON("slack", slack())
    ON("under", under())
    ON("copy-over", copy_over())
    ON("by-thread", by_thread())
    ON("in-child", in_child())
    ON("many", many())
    ON("only-here", only_here())
    return 0;
}
