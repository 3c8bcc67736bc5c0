/* SPDX-License-Identifier: MIT */
/* tests/unit/heap/route_test.c - which call sites are diverted, and what the hot path finds for the
 * sizes of their classes. */
#include "heap/route.h"

#include "check.h"
#include "heap/cpu_cache.h"
#include "os/os.h"

#include <pthread.h>

#define CLASS 8u /* blocks of 128 bytes */
#define SITE 0x401234u
#define ABOVE 0x405678u
#define DISTANT 0x409abcu

static uint8_t bin_for(size_t bytes)
{
    return hak_hot_sizes[(bytes + hak_hot_size_step - 1) / hak_hot_size_step];
}

static enum hak_partition find(uintptr_t address)
{
    return hak_route_find(CLASS, (struct os_caller){.address = address});
}

TEST(without_a_route_nothing_is_diverted)
{
    CHECK(!hak_route_is_on());
    CHECK_EQ(find(SITE), PARTITION_ORDINARY);
    CHECK_EQ(bin_for(128), HAK_BIN_OF_CLASS(CLASS));
}

TEST(a_class_with_a_site_is_closed_to_the_hot_path_and_no_other)
{
    struct route route = {.frames = {SITE}, .class_index = CLASS, .kind = ROUTE_LONG};
    CHECK_EQ(hak_size_classes[CLASS].block_bytes, 128);
    CHECK_EQ(hak_route_publish(&route, 1), 1);
    CHECK(hak_route_is_on());
    CHECK(hak_route_has(CLASS));
    CHECK(!hak_route_has(CLASS + 1));
    CHECK_EQ(bin_for(0), 0); /* the slow path has a range for them */
    for (size_t bytes = 1; bytes <= 4096; bytes++)
        CHECK_EQ(bin_for(bytes),
                 hak_class_of(bytes) == CLASS ? 0 : (uint8_t)HAK_BIN_OF_CLASS(hak_class_of(bytes)));
    CHECK_EQ(find(SITE), PARTITION_LONG);
    CHECK_EQ(hak_load_relaxed(&hak_route_sites), 1);
    CHECK_EQ(find(SITE + 1), PARTITION_ORDINARY);
    CHECK_EQ(hak_route_find(CLASS + 1, (struct os_caller){.address = SITE}), PARTITION_ORDINARY);
    hak_route_publish(NULL, 0);
    CHECK(!hak_route_is_on());
    CHECK_EQ(hak_load_relaxed(&hak_route_sites), 0);
    CHECK_EQ(find(SITE), PARTITION_ORDINARY);
    for (size_t bytes = 1; bytes <= 4096; bytes++)
        CHECK_EQ(bin_for(bytes), HAK_BIN_OF_CLASS(hak_class_of(bytes)));
}

TEST(the_smallest_and_the_largest_class_are_closed_whole)
{
    struct route routes[] = {
        {.frames = {SITE}, .class_index = 0, .kind = ROUTE_LONG},
        {.frames = {SITE}, .class_index = HAK_LONG_CLASS_COUNT - 1, .kind = ROUTE_LONG}};
    CHECK_EQ(hak_route_publish(routes, 2), 2);
    CHECK_EQ(bin_for(0), 0);
    CHECK_EQ(bin_for(8), 0);
    CHECK_EQ(bin_for(9), HAK_BIN_OF_CLASS(1));
    CHECK_EQ(bin_for(4096), 0);
    CHECK_EQ(bin_for(4097), HAK_BIN_OF_CLASS(HAK_LONG_CLASS_COUNT));
}

static const enum hak_partition held_partitions[][3] = {
    /* HOLD_NONE, HOLD_HALF, HOLD_ALL */
    [ROUTE_LONG] = {PARTITION_LONG, PARTITION_LONG, PARTITION_ORDINARY},
    [ROUTE_HALF] = {PARTITION_LONG, PARTITION_ORDINARY, PARTITION_ORDINARY},
    [ROUTE_ALWAYS] = {PARTITION_LONG, PARTITION_LONG, PARTITION_LONG},
};

TEST(what_is_held_back_is_ordinary_for_that_time)
{
    for (int kind = ROUTE_LONG; kind <= ROUTE_ALWAYS; kind++) {
        struct route route = {
            .frames = {SITE}, .class_index = CLASS, .kind = (enum route_kind)kind};
        hak_route_publish(&route, 1);
        for (int hold = HOLD_NONE; hold <= HOLD_ALL; hold++) {
            hak_route_hold((enum route_hold)hold);
            CHECK_EQ(find(SITE), held_partitions[kind][hold]);
        }
        hak_route_hold(HOLD_NONE);
        CHECK_EQ(find(SITE), PARTITION_LONG);
    }
}

TEST(a_few_ordinary_blocks_of_the_watched_class_are_noted)
{
    static char blocks[64 * HAK_ROUTE_NOTED_BYTES / 128];
    void *taken[HAK_ROUTE_NOTED_MOST];
    uint32_t step = HAK_ROUTE_NOTED_BYTES / 128;
    hak_route_note(CLASS, PARTITION_ORDINARY, &blocks[0]);
    CHECK_EQ(hak_route_take_noted(taken), 0);
    hak_route_watch(CLASS);
    hak_route_note(CLASS + 1, PARTITION_ORDINARY, &blocks[0]);
    hak_route_note(CLASS, PARTITION_LONG, &blocks[0]);
    hak_route_note(CLASS, PARTITION_ORDINARY, NULL);
    CHECK_EQ(hak_route_take_noted(taken), 0);
    for (uint32_t i = 0; i <= step; i++)
        hak_route_note(CLASS, PARTITION_ORDINARY, &blocks[i]);
    CHECK_EQ(hak_route_take_noted(taken), 2);
    CHECK(taken[0] == &blocks[0]);
    CHECK(taken[1] == &blocks[step]);
    for (uint32_t i = step + 1; i < sizeof blocks; i++)
        hak_route_note(CLASS, PARTITION_ORDINARY, &blocks[i]);
    CHECK_EQ(hak_route_take_noted(taken), HAK_ROUTE_NOTED_MOST - 2);
    CHECK_EQ(hak_route_watched, HAK_LONG_CLASS_COUNT);
    hak_route_watch(CLASS);
    hak_route_note(CLASS, PARTITION_ORDINARY, &blocks[0]);
    hak_route_watch(HAK_LONG_CLASS_COUNT);
    CHECK_EQ(hak_route_take_noted(taken), 0);
}

/* Under qemu-user the program may lie right below its stack. */
static void skip_if_a_stack(uintptr_t address)
{
    if (is_emulated() && hak_os_is_on_main_stack(address))
        SKIP("variables are taken for the main thread's stack");
}

TEST(a_wrapper_is_split_by_the_caller_that_the_stack_shows)
{
    static _Alignas(4096) uintptr_t stack[1024]; /* two pages */
    skip_if_a_stack((uintptr_t)stack);
    struct route routes[] = {
        {.frames = {SITE}, .class_index = CLASS, .kind = ROUTE_SPLIT, .distance = 24},
        {.frames = {SITE, ABOVE}, .class_index = CLASS, .kind = ROUTE_LONG}};
    CHECK_EQ(hak_route_publish(routes, 2), 2);
    CHECK_EQ(hak_load_relaxed(&hak_route_sites), 1); /* a split is none */
    struct os_caller caller = {SITE, (uintptr_t)&stack[10]};
    CHECK_EQ(hak_route_find(CLASS, caller), PARTITION_ORDINARY);
    stack[10 + 2 + 3] = ABOVE;
    CHECK_EQ(hak_route_find(CLASS, caller), PARTITION_LONG);
    stack[10 + 2 + 3] = ABOVE + 1;
    CHECK_EQ(hak_route_find(CLASS, caller), PARTITION_ORDINARY);
    /* Beyond the page that the frame ends in nothing is read. */
    caller.frame = (uintptr_t)&stack[512 - 3];
    stack[512 + 2] = ABOVE;
    CHECK_EQ(hak_route_find(CLASS, caller), PARTITION_ORDINARY);
}

TEST(a_wrapper_behind_a_wrapper_is_split_by_the_caller_above_both)
{
    static _Alignas(4096) uintptr_t stack[1024]; /* two pages */
    skip_if_a_stack((uintptr_t)stack);
    struct route routes[] = {
        {.frames = {SITE}, .class_index = CLASS, .kind = ROUTE_SPLIT, .distance = 24},
        {.frames = {SITE, ABOVE}, .class_index = CLASS, .kind = ROUTE_SPLIT, .distance = 16},
        {.frames = {SITE, ABOVE, DISTANT}, .class_index = CLASS, .kind = ROUTE_LONG},
        {.frames = {SITE, ABOVE + 1}, .class_index = CLASS, .kind = ROUTE_LONG}};
    CHECK_EQ(hak_route_publish(routes, 4), 4);
    CHECK_EQ(hak_load_relaxed(&hak_route_sites), 2);
    struct os_caller caller = {SITE, (uintptr_t)&stack[10]};
    stack[10 + 2 + 3] = ABOVE;
    CHECK_EQ(hak_route_find(CLASS, caller), PARTITION_ORDINARY);
    stack[10 + 2 + 3 + 1 + 2] = DISTANT;
    CHECK_EQ(hak_route_find(CLASS, caller), PARTITION_LONG);
    stack[10 + 2 + 3 + 1 + 2] = DISTANT + 1;
    CHECK_EQ(hak_route_find(CLASS, caller), PARTITION_ORDINARY);
    /* A caller that is no wrapper counts by itself. */
    stack[10 + 2 + 3] = ABOVE + 1;
    CHECK_EQ(hak_route_find(CLASS, caller), PARTITION_LONG);
    stack[10 + 2 + 3] = DISTANT;
    CHECK_EQ(hak_route_find(CLASS, caller), PARTITION_ORDINARY);
    /* The first caller is in the page that the frame ends in, the second one is not. */
    caller.frame = (uintptr_t)&stack[512 - 6];
    stack[512 - 6 + 2 + 3] = ABOVE;
    stack[512 + 2] = DISTANT;
    CHECK_EQ(hak_route_find(CLASS, caller), PARTITION_ORDINARY);
}

/* A frame at the end of a page of this thread's stack, with the caller in the next page. */
__attribute__((no_sanitize("address"))) static enum hak_partition find_across_pages(void)
{
    _Alignas(4096) volatile uintptr_t stack[1024];
    stack[512 + 2] = ABOVE;
    return hak_route_find(CLASS, (struct os_caller){SITE, (uintptr_t)&stack[512 - 3]});
}

static void *find_in_thread(void *found)
{
    *(enum hak_partition *)found = find_across_pages();
    return NULL;
}

TEST(a_caller_in_the_next_page_of_the_stack_counts_in_the_main_thread_alone)
{
    struct route routes[] = {
        {.frames = {SITE}, .class_index = CLASS, .kind = ROUTE_SPLIT, .distance = 24},
        {.frames = {SITE, ABOVE}, .class_index = CLASS, .kind = ROUTE_LONG}};
    CHECK_EQ(hak_route_publish(routes, 2), 2);
#ifdef __GLIBC__
    CHECK_EQ(find_across_pages(), PARTITION_LONG);
#else
    CHECK_EQ(find_across_pages(), PARTITION_ORDINARY);
#endif
    pthread_t thread;
    enum hak_partition found = PARTITION_LONG;
    CHECK_EQ(pthread_create(&thread, NULL, find_in_thread, &found), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(found, PARTITION_ORDINARY);
}

TEST(what_finds_no_room_is_ordinary)
{
    static struct route routes[1024];
    uint32_t found = 0;
    for (uint32_t i = 0; i < 1024; i++)
        routes[i] =
            (struct route){.frames = {SITE + 5 * i}, .class_index = CLASS, .kind = ROUTE_LONG};
    uint32_t entered = hak_route_publish(routes, 1024);
    CHECK(entered > 500 && entered < 1024);
    for (uint32_t i = 0; i < 1024; i++)
        found += find(routes[i].frames[0]) == PARTITION_LONG;
    CHECK_EQ(found, entered);
}
