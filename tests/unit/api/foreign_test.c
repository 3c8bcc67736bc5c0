/* SPDX-License-Identifier: MIT */
/* tests/unit/api/foreign_test.c - pointers that are not hakmem's, by option `foreign`. */
#include "api/api.h"
#include "check.h"
#include "conf/conf.h"
#include "process/start.h"
#include "unit/asan.h"

#include <errno.h>
#include <malloc.h>

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
