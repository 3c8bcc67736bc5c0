/* SPDX-License-Identifier: MIT */
/* tests/unit/api/foreign_test.c - pointers that are not hakmem's, by option `foreign`. */
#include "api/api.h"
#include "base/limits.h"
#include "check.h"
#include "conf/conf.h"
#include "process/start.h"
#include "unit/asan.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>

static void start(enum conf_foreign foreign)
{
    CHECK(hak_process_start());
    hak_conf.number[CONF_foreign] = foreign;
}

TEST(a_foreign_free_is_counted_and_ignored)
{
    start(FOREIGN_IGNORE);
    char *block = malloc(100);
    strcpy(block, "still here");
    errno = 77;
    hak_free(block);
    CHECK_EQ(errno, 77);
    CHECK_STR(block, "still here");
    CHECK_EQ(hak_stat_globals.foreign_frees, 1);
    CHECK_EQ(hak_stat_globals.fallback, 0);
    free(block);
}

TEST(a_foreign_free_is_forwarded_to_libc_if_asked)
{
    if (UNDER_ASAN)
        SKIP("malloc is the sanitizer's");
    start(FOREIGN_FORWARD);
    size_t before = mallinfo2().uordblks;
    void *block = malloc(50000);
    CHECK(mallinfo2().uordblks >= before + 50000);
    hak_free(block);
    CHECK(mallinfo2().uordblks < before + 50000);
    CHECK_EQ(hak_stat_globals.fallback, 1);
}

TEST(a_foreign_free_aborts_if_asked)
{
    start(FOREIGN_ABORT);
    void *block = malloc(100);
    CHECK_ABORTS(hak_free(block), "hakmem: foreign free: pointer 0x");
    CHECK_ABORTS(hak_realloc(block, 5), "hakmem: foreign realloc: pointer 0x");
    free(block);
}

TEST(a_foreign_realloc_is_done_by_the_allocator_it_came_from)
{
    if (UNDER_ASAN)
        SKIP("malloc is the sanitizer's");
    start(FOREIGN_IGNORE);
    char *block = malloc(100);
    strcpy(block, "kept");
    block = hak_realloc(block, 100000);
    CHECK_STR(block, "kept");
    CHECK_EQ(hak_malloc_usable_size(block), 0);
    CHECK(malloc_usable_size(block) >= 100000);
    CHECK_EQ(hak_stat_globals.fallback, 1);
    free(block);
}

#define STACK_BYTES (512 * HAK_KIB)
#define ABOVE_BYTES (64 * HAK_KIB)

/* Runs with a stack right above which, in memory of the same mapping, a block could lie. */
static void on_a_stack_below(void *(*routine)(void *), char **above)
{
    pthread_attr_t attributes;
    pthread_t thread;
    char *stack = mmap(NULL, STACK_BYTES + ABOVE_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(stack != MAP_FAILED);
    *above = stack + STACK_BYTES;
    CHECK_EQ(pthread_attr_init(&attributes), 0);
    CHECK_EQ(pthread_attr_setstack(&attributes, stack, STACK_BYTES), 0);
    CHECK_EQ(pthread_create(&thread, &attributes, routine, *above), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

/* As glibc's malloc describes a block: one that the kernel mapped alone, and one of an arena. */
static void *free_what_lies_above(void *above)
{
    size_t *mapped = above, *of_arena = (size_t *)above + 512;
    mapped[1] = 4096 | 2;
    hak_free(mapped + 2);
    of_arena[1] = 64 | 5;
    hak_free(of_arena + 2);
    return NULL;
}

TEST(a_block_of_libc_right_above_the_stack_of_the_thread_is_not_taken_for_a_variable)
{
    char *above;
    start(FOREIGN_IGNORE);
    on_a_stack_below(free_what_lies_above, &above);
    CHECK_EQ(hak_stat_globals.foreign_frees, 2);
}

/* Code may run on a stack of its own, whose end is not known: here that of the main thread. */
TEST(a_block_that_libc_has_mapped_alone_is_not_taken_for_a_variable)
{
#ifdef __GLIBC__
    if (UNDER_ASAN)
        SKIP("malloc is the sanitizer's");
    _Alignas(4096) size_t page[512] = {0, 4096 | 2};
    void *volatile block = page + 2;
    start(FOREIGN_IGNORE);
    hak_free(block);
    CHECK_EQ(hak_stat_globals.foreign_frees, page[1] == (4096 | 2));
#else
    SKIP("not glibc");
#endif
}

static void free_a_variable(void)
{
    _Alignas(16) char variable[64];
    void *volatile block = variable;
    hak_free(block);
}

TEST(nothing_is_said_of_a_pointer_to_the_stack_if_the_option_is_set)
{
    start(FOREIGN_IGNORE);
    CHECK_ABORTS(free_a_variable(), "on the stack of the calling thread\n");
    hak_conf.source[CONF_foreign] = CONF_VARIABLE;
    free_a_variable();
    CHECK_EQ(hak_stat_globals.foreign_frees, 1);
}
