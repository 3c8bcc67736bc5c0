/* SPDX-License-Identifier: MIT */
/* tests/preload/dlopen.c - libraries loaded late: those that use hakmem as all do, those that would
 * insist on libc's malloc, by RTLD_DEEPBIND, and do not where hakmem is preloaded, and those that
 * may, by option `deepbind`: blocks of libc's that come to hakmem are counted and left alone. If
 * this fails, PHP, a browser, an NSS module or a database driver loaded so takes the program down.
 *
 * Where the option is on, or hakmem is linked, a block of hakmem's that such a library frees goes
 * to libc without passing by hakmem: nothing is promised or tested. */
#include "program.h"

#define FOREIGN_BLOCKS 500

static char *(*deep_take)(size_t bytes, int value);
static void (*deep_give)(void *block);
static char *(*deep_copy)(const char *text);

static void *load(int flags)
{
    void *library = load_beside("libpreload_deep.so", RTLD_NOW | flags);
    deep_take = (char *(*)(size_t, int))dlsym(library, "deep_take");
    deep_give = (void (*)(void *))dlsym(library, "deep_give");
    deep_copy = (char *(*)(const char *))dlsym(library, "deep_copy");
    CHECK(deep_take != NULL && deep_give != NULL && deep_copy != NULL);
    return library;
}

TEST(blocks_cross_between_program_and_library_both_ways)
{
    check_is_served();
    void *library = load(RTLD_LOCAL);
    for (unsigned i = 1; i < 2000; i++) {
        char *theirs = deep_take(i, 'x');
        CHECK_EQ(theirs[i - 1], 'x');
        free(theirs);
        deep_give(malloc(i));
    }
    free(deep_copy("text"));
    CHECK_EQ(dlclose(library), 0);
}

TEST(a_library_that_would_use_libcs_malloc_uses_hakmem)
{
    if (dlsym(RTLD_DEFAULT, "dlopen") == dlsym(RTLD_NEXT, "dlopen"))
        SKIP("hakmem is linked");
    void *library = load(RTLD_LOCAL | RTLD_DEEPBIND);
    for (unsigned i = 1; i < 2000; i++) {
        deep_give(malloc(i));
        free(deep_take(i, 'x'));
    }
    deep_give(strdup("text"));
    free(deep_copy("text"));
    CHECK_EQ(dlclose(library), 0);
}

/* The search goes by the caller of dlopen: this program's RUNPATH is where it stands. */
TEST(a_library_is_searched_for_where_the_program_says)
{
    void *library = dlopen("libpreload_deep.so", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        CHECK_FAILED("%s", dlerror());
    CHECK_EQ(dlclose(library), 0);
}

TEST(a_library_can_be_loaded_and_unloaded_again_and_again)
{
    time_limit(300);
    char *blocks[50];
    for (unsigned i = 0; i < 50; i++) {
        void *library = load(RTLD_LOCAL);
        blocks[i] = deep_take(100, (int)i);
        CHECK_EQ(dlclose(library), 0);
    }
    for (unsigned i = 0; i < 50; i++) {
        CHECK_EQ(blocks[i][99], i);
        free(blocks[i]);
    }
}

PART(what_frees_blocks_of_libc)
{
    load(RTLD_LOCAL | RTLD_DEEPBIND);
    for (unsigned i = 0; i < FOREIGN_BLOCKS; i++) {
        char *foreign = deep_take(i * 100 + 1, 'y');
        free(foreign);
        /* What was not freed is still there: its owner may go on using it. */
        CHECK_EQ(hidden(foreign) == NULL ? 0 : foreign[1 + i], i == 0 ? foreign[1] : 'y');
        deep_give(deep_take(50, 'z'));
    }
    errno = 77;
    free(deep_take(64, 1));
    CHECK_EQ(errno, 77);
}

PART(what_resizes_a_block_of_libc)
{
    load(RTLD_LOCAL | RTLD_DEEPBIND);
    char *foreign = deep_take(100, 'y');
    char *resized = realloc(hidden(foreign), 10000);
    CHECK(resized != NULL && resized[0] == 'y' && resized[99] == 'y');
    resized[9999] = 1;
    deep_give(resized);
}

TEST(blocks_of_libc_are_counted_and_ignored)
{
    int fd;
    setenv("HAKMEM_DEEPBIND", "on", 1);
    run_with_statistics("what_frees_blocks_of_libc", &fd);
    CHECK_EQ(counter_in(fd, "foreign_frees"), FOREIGN_BLOCKS + 1);
    CHECK_EQ(counter_in(fd, "fallback"), 0);
}

/* Only libc knows how long its block is: such a request is passed to it, and counted. */
TEST(a_block_of_libc_is_resized_by_libc)
{
    int fd;
    setenv("HAKMEM_DEEPBIND", "on", 1);
    run_with_statistics("what_resizes_a_block_of_libc", &fd);
    CHECK_EQ(counter_in(fd, "fallback"), 1);
}

PART(what_frees_one_block_of_libc)
{
    load(RTLD_LOCAL | RTLD_DEEPBIND);
    for (unsigned i = 0; i < 1000; i++)
        free(deep_take(100000, 'y'));
    CHECK_PASSED();
}

static void free_one_and_abort(void)
{
    setenv("HAKMEM_FOREIGN", "abort", 1);
    setenv("HAKMEM_DEEPBIND", "on", 1);
    become("what_frees_one_block_of_libc");
}

TEST(who_asks_for_it_dies_of_the_first_block_of_libc)
{
    CHECK_ABORTS(free_one_and_abort(), "hakmem: foreign free: pointer 0x");
}

TEST(who_asks_for_it_has_blocks_of_libc_freed_by_libc)
{
    int fd;
    setenv("HAKMEM_FOREIGN", "forward", 1);
    setenv("HAKMEM_DEEPBIND", "on", 1);
    run_with_statistics("what_frees_one_block_of_libc", &fd);
    CHECK_EQ(counter_in(fd, "foreign_frees"), 1000);
    CHECK_EQ(counter_in(fd, "fallback"), 1000);
}
