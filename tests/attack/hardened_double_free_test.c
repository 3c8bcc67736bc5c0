/* SPDX-License-Identifier: MIT */
/* tests/attack/hardened_double_free_test.c - a block is freed twice; the quarantine keeps it out of
 * use meanwhile. */
#include "hardened.h"

static void free_twice(size_t bytes)
{
    void *block = take_some(bytes);
    hak_free(block);
    hak_free(block);
}

static void free_around_another(size_t bytes)
{
    void *block = take_some(bytes), *other = take_some(bytes);
    hak_free(block);
    hak_free(other);
    hak_free(block);
}

static void free_before_stranger(size_t bytes)
{
    void *block = take_some(bytes);
    hak_free(block);
    free_by_stranger(block);
}

static void free_after_stranger(size_t bytes)
{
    void *block = take_some(bytes);
    free_by_stranger(block);
    hak_free(block);
}

/* What others took after the first free lives on, and the second free is known for what it is. */
static void free_after_others_took(size_t bytes)
{
    void *block = take_some(bytes);
    hak_free(block);
    for (int i = 0; i < 50; i++)
        others[i] = hak_malloc(bytes);
    hak_free(block);
}

static void free_much_later(size_t bytes)
{
    void *block = take_some(bytes);
    hak_free(block);
    for (int i = 0; i < 100; i++)
        hak_free(take_some(bytes));
    hak_free(block);
}

TEST(a_second_free_is_reported)
{
    EACH_SIZE (bytes) {
        CHECK_REPORTS(free_twice(bytes), "double free", ", already free\n");
        CHECK_ABORTS(free_around_another(bytes), "hakmem: double free: pointer 0x");
        CHECK_ABORTS(free_before_stranger(bytes), "hakmem: double free: pointer 0x");
        CHECK_ABORTS(free_after_stranger(bytes), "hakmem: double free: pointer 0x");
        CHECK_ABORTS(free_after_others_took(bytes), "hakmem: double free: pointer 0x");
        CHECK_ABORTS(free_much_later(bytes), " free: pointer 0x");
    }
}

static void reuse(size_t bytes)
{
    for (int i = 0; i < 100; i++) {
        char *block = take_some(bytes);
        hak_free(block);
        for (int j = 0; j < 20; j++)
            if (take_some(bytes) == block)
                _exit(3);
    }
}

TEST(an_address_is_not_handed_out_again_at_once)
{
    EACH_SIZE (bytes) {
        CHECK_EXITS(reuse(bytes), 0);
    }
}
