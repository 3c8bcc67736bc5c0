/* SPDX-License-Identifier: MIT */
/* tests/preload/early.c - memory before main and after it: in .preinit_array, in constructors, in
 * destructors. If this fails, programs with C++ globals or plugins die before their first line. */
#include "program.h"

#define BLOCKS 64
#define MORE_BYTES 200000

static char *preinit_block;
static char *constructor_blocks[BLOCKS];
static char *zero_block;
static char *aligned_block;
static char *large_block;
static char *thread_block;

/* Runs before the constructors of all libraries, hakmem's and libc's among them. */
static void before_everything(int argument_count, char **arguments, char **environment)
{
    (void)argument_count;
    (void)arguments;
    (void)environment;
    preinit_block = malloc(100);
    fill(preinit_block, 100, 1);
}
__attribute__((section(".preinit_array"),
               used)) static void (*preinit)(int, char **, char **) = before_everything;

static void *allocate_early(void *argument)
{
    char *block = malloc(77);
    fill(block, 77, 2);
    free(hidden(malloc(5000)));
    return memcpy(argument, &block, sizeof block);
}

__attribute__((constructor(101))) static void construct(void)
{
    for (unsigned i = 0; i < BLOCKS; i++) {
        constructor_blocks[i] = malloc(1 + i * 37);
        fill(constructor_blocks[i], 1 + i * 37, i);
    }
    for (unsigned i = 0; i < BLOCKS; i += 2) {
        constructor_blocks[i] = realloc(constructor_blocks[i], 1 + i * 40);
        fill(constructor_blocks[i], 1 + i * 40, i);
    }
    zero_block = calloc(100, 100);
    if (posix_memalign((void **)&aligned_block, 4096, 100) != 0)
        abort();
    large_block = malloc(MORE_BYTES);
    fill(large_block, MORE_BYTES, 3);
    pthread_t thread;
    if (pthread_create(&thread, NULL, allocate_early, &thread_block) != 0)
        abort();
    pthread_join(thread, NULL);
}

/* After main: what is freed here was taken before it. A failure here is an exit status that is
 * wrong. */
__attribute__((destructor)) static void destroy(void)
{
    char *last = malloc(300);
    fill(last, 300, 9);
    if (!is_filled(last, 300, 9))
        _exit(1);
    free(last);
    free(constructor_blocks[BLOCKS - 1]);
    constructor_blocks[BLOCKS - 1] = NULL;
}

TEST(blocks_from_before_all_constructors_are_intact_in_main)
{
    check_is_served();
    CHECK(preinit_block != NULL && is_filled(preinit_block, 100, 1));
    preinit_block = realloc(preinit_block, 10000);
    CHECK(is_filled(preinit_block, 100, 1));
    free(preinit_block);
}

TEST(blocks_from_constructors_are_intact_in_main_and_can_be_freed_there)
{
    for (unsigned i = 0; i < BLOCKS; i++)
        CHECK(is_filled(constructor_blocks[i], 1 + i * (i % 2 ? 37 : 40), i));
    CHECK(is_zero(zero_block, 100 * 100));
    CHECK_EQ((uintptr_t)aligned_block % 4096, 0);
    CHECK(is_filled(large_block, MORE_BYTES, 3));
    for (unsigned i = 0; i + 1 < BLOCKS; i++)
        free(constructor_blocks[i]);
    free(zero_block);
    free(aligned_block);
    free(large_block);
    for (unsigned i = 0; i < BLOCKS; i++)
        CHECK(malloc(1 + i * 37) != NULL);
}

TEST(a_thread_started_before_main_leaves_its_blocks)
{
    CHECK(thread_block != NULL && is_filled(thread_block, 77, 2));
    free(thread_block);
}
