/* SPDX-License-Identifier: MIT */
/* tests/unit/api/malloc_test.c - malloc, calloc and free, each rule with its source. */
#include "api/api.h"
#include "base/limits.h"
#include "check.h"
#include "conf/conf.h"
#include "hakmem/hakmem.h"
#include "process/start.h"
#include "threads.h"

#include <errno.h>

/* C23 7.24.3: a size of 0 may give a unique pointer; glibc does. */
TEST(malloc_of_0_gives_unique_pointers)
{
    void *first = hak_malloc(0), *second = hak_malloc(0);
    CHECK(first != NULL && second != NULL);
    CHECK(first != second);
    CHECK(hakmem_is_owned(first) && hakmem_object_size(first) == 0);
    CHECK_FAULTS(*(volatile char *)first = 1);
    first = hak_realloc(first, 100);
    memset(first, 1, 100);
    CHECK_EQ(hak_realloc(second, 0), NULL);
    CHECK(!hakmem_is_owned(second));
    CHECK_ABORTS(hak_free(second), "double free");
    CHECK_ABORTS(hak_realloc(second, 10), "invalid realloc");
    hak_free(first);
}

TEST(malloc_of_0_gives_small_blocks_where_the_user_wants_them)
{
    hak_conf.number[CONF_zero_size] = ZERO_SIZE_ORDINARY;
    void *first = hak_malloc(0), *second = hak_malloc(0);
    CHECK(first != second);
    CHECK_EQ(hak_malloc_usable_size(first), 8);
    memset(first, 1, 8);
    hak_free(first);
    hak_free(second);
}

/* glibc manual, "Malloc Examples": 16 on 64-bit systems; C23 lets small blocks have less. */
TEST(blocks_above_8_bytes_are_aligned_to_16_and_others_to_8)
{
    for (size_t bytes = 0; bytes < 3 * HAK_CLASS_BYTES_MAX; bytes += 1 + bytes / 64)
        for (int i = 0; i < 5; i++)
            CHECK_EQ((uintptr_t)hak_malloc(bytes) % (bytes <= 8 ? 8 : 16), 0);
}

TEST(malloc_beyond_all_memory_is_refused_with_enomem_and_malloc_works_on)
{
    void *before = hak_malloc(100);
    errno = 0;
    CHECK_EQ(hak_malloc(PTRDIFF_MAX), NULL);
    CHECK_EQ(errno, ENOMEM);
    errno = 0;
    CHECK_EQ(hak_malloc(HAK_WINDOW_BYTES_MAX), NULL);
    CHECK_EQ(errno, ENOMEM);
    void *after = hak_malloc(100);
    CHECK(after != NULL && after != before);
    CHECK_EQ(hak_stat_globals.out_of_memory, 2);
}

/* A successful malloc leaves errno alone (as glibc; POSIX does not promise it). */
TEST(malloc_that_succeeds_keeps_errno)
{
    errno = 77;
    for (size_t bytes = 1; bytes < 64 * HAK_MIB; bytes *= 2)
        CHECK(hak_malloc(bytes) != NULL);
    CHECK_EQ(errno, 77);
}

/* POSIX.1-2024 free(): errno is preserved. */
TEST(free_keeps_errno)
{
    for (size_t bytes = 1; bytes < 64 * HAK_MIB; bytes *= 2) {
        void *block = hak_malloc(bytes);
        errno = 77;
        hak_free(block);
        CHECK_EQ(errno, 77);
    }
    hak_free(NULL);
    CHECK_EQ(errno, 77);
}

/* C23 7.24.3.3: free of a null pointer does nothing. */
TEST(free_of_null_does_nothing)
{
    for (int i = 0; i < 3; i++)
        hak_free(NULL);
    CHECK(hak_malloc(1) != NULL);
    hak_free(NULL);
    CHECK_EQ(hak_stat_globals.foreign_frees, 0);
}

TEST(a_freed_block_is_the_next_of_its_class)
{
    void *block = hak_malloc(100);
    hak_free(block);
    CHECK_EQ(hak_malloc(100), block);
}

static size_t usable_of(void *block)
{
    CHECK(block != NULL);
    return hak_malloc_usable_size(block);
}

/* docs/adr/0063. A thread's cache stays its own, wherever the thread runs. */
TEST(the_first_blocks_of_short_classes_are_of_their_longest_neighbour)
{
    hak_conf.number[CONF_caches] = CACHES_THREAD;
    hak_conf.number[CONF_guard_rate] = 0;
    uintptr_t least = UINTPTR_MAX, most = 0;
    for (size_t bytes = 16; bytes < 64; bytes += 16)
        for (int i = 0; i < 8; i++) {
            unsigned char *block = hak_malloc(bytes);
            CHECK_EQ(usable_of(block), 64);
            least = hak_least((uintptr_t)block, least);
            most = hak_most((uintptr_t)block, most);
        }
    CHECK(HAK_SLAB_BLOCKS_MAX < 24 || most - least < 4096); /* in one slab, if that has so many */
    for (size_t bytes = 16; bytes < 64; bytes += 16)
        CHECK_EQ(usable_of(hak_malloc(bytes)), bytes);
    CHECK_EQ(usable_of(hak_malloc(65)), 128);
    CHECK_EQ(usable_of(hak_malloc(129)), 192);
    CHECK_EQ(usable_of(hak_malloc(193)), 256);
    CHECK_EQ(usable_of(hak_malloc(513)), 768);
    CHECK_EQ(usable_of(hak_malloc(897)), 1024);
    CHECK_EQ(usable_of(hak_malloc(1025)), 1152);
}

TEST(a_class_that_has_blocks_needs_none_of_others)
{
    hak_conf.number[CONF_caches] = CACHES_THREAD;
    hak_conf.number[CONF_guard_rate] = 0;
    void *aligned = hak_aligned_alloc(32, 96); /* in a slab of its own class */
    CHECK_EQ(usable_of(aligned), 96);
    for (int i = 0; i < 100; i++)
        CHECK_EQ(usable_of(hak_malloc(90)), 96);
}

TEST(a_block_of_a_longer_class_reads_as_zero_where_that_was_asked_for)
{
    hak_conf.number[CONF_caches] = CACHES_THREAD;
    hak_conf.number[CONF_guard_rate] = 0;
    void *block = hak_malloc(64);
    memset(block, 0xff, 64);
    hak_free(block);
    unsigned char *zero = hak_calloc(1, 40);
    CHECK_EQ(usable_of(zero), 64);
    CHECK_EQ(zero, block);
    CHECK_BYTES(zero, 40, 0);
}

TEST(calloc_of_nothing_gives_a_unique_pointer)
{
    void *first = hak_calloc(0, 5), *second = hak_calloc(5, 0);
    CHECK(first != NULL && second != NULL && first != second);
    CHECK(hak_calloc(0, SIZE_MAX) != NULL);
}

static void *blocks[2000];

static void *free_all(void *argument)
{
    (void)argument;
    for (int i = 0; i < 2000; i++)
        hak_free(blocks[i]);
    return NULL;
}

TEST(blocks_freed_by_another_thread_are_used_again)
{
    size_t committed_bytes = 0;
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 2000; i++)
            CHECK((blocks[i] = hak_malloc(200)) != NULL);
        in_thread(free_all, NULL);
        if (round == 1)
            committed_bytes = hak_load_relaxed(&hak_region.committed_bytes);
    }
    CHECK_EQ(hak_load_relaxed(&hak_region.committed_bytes), committed_bytes);
}
