/* SPDX-License-Identifier: MIT */
/* tests/attack/heap_wrong_test.c - blocks of one heap are given to another, and what is no heap. */
#include "attack.h"
#include "hakmem/hakmem.h"

static void *sink;

TEST(a_heap_takes_no_block_of_another)
{
    hakmem_heap *mine = hakmem_heap_new(), *other = hakmem_heap_new();
    void *small = hakmem_heap_malloc(other, 100), *large = hakmem_heap_malloc(other, LARGE_BYTES);
    void *none = hak_malloc(100);
    const char *said = "a block of another heap\n";
    CHECK_ABORTS(hakmem_heap_free(mine, small), said);
    CHECK_ABORTS(hakmem_heap_free(mine, large), said);
    CHECK_ABORTS(hakmem_heap_free(mine, none), "hakmem: invalid heap free: pointer 0x");
    CHECK_ABORTS(sink = hakmem_heap_realloc(mine, small, 5000), said);
    CHECK_ABORTS(sink = hakmem_heap_realloc(mine, large, 5000), said);
    CHECK_ABORTS(sink = hakmem_heap_realloc(mine, none, 5000), "hakmem: invalid heap realloc: ");
}

TEST(a_heap_takes_nothing_that_is_no_block)
{
    static char foreign[64];
    hakmem_heap *heap = hakmem_heap_new();
    char *block = hakmem_heap_malloc(heap, 100);
    CHECK_ABORTS(hakmem_heap_free(heap, foreign), "not from hakmem\n");
    CHECK_ABORTS(hakmem_heap_free(heap, block + 16), "not the start of a block\n");
}

TEST(what_is_no_heap_is_not_taken_for_one)
{
    static uint64_t words[64];
    CHECK_ABORTS(sink = hakmem_heap_malloc(NULL, 10), "not a heap\n");
    CHECK_ABORTS(sink = hakmem_heap_malloc((hakmem_heap *)(void *)words, 10), "not a heap\n");
    CHECK_ABORTS(sink = hakmem_heap_malloc(hak_malloc(64), 10), "not a heap\n");
}

static void free_twice(size_t bytes, bool is_remote)
{
    hakmem_heap *heap = hakmem_heap_new();
    void *kept = hakmem_heap_malloc(heap, bytes), *block = hakmem_heap_malloc(heap, bytes);
    hakmem_heap_free(heap, block);
    if (is_remote)
        hak_free(block);
    else
        hakmem_heap_free(heap, block);
    hakmem_heap_free(heap, kept);
    hakmem_heap_trim(heap);
}

TEST(every_second_free_into_a_heap_is_seen)
{
    CHECK_ABORTS(free_twice(100, false), "hakmem: double free: pointer 0x");
    CHECK_ABORTS(free_twice(100, true), "hakmem: double free: pointer 0x");
    CHECK_ABORTS(free_twice(LARGE_BYTES, false),
                 "nothing is allocated there: freed before, or never allocated\n");
    CHECK_ABORTS(free_twice(LARGE_BYTES, true),
                 "nothing is allocated there: freed before, or never allocated\n");
}
