/* SPDX-License-Identifier: MIT */
/* tests/preload/exit.c - the ends of a process: exit with handlers that allocate, _exit,
 * quick_exit, exit under the feet of other threads. If this fails, programs crash after their work
 * is done, and their exit status is lost. */
#include "program.h"

static char *block_of_main;

static void allocate_at_exit(void)
{
    unsigned state = 4;
    for (unsigned i = 0; i < 2000; i++) {
        size_t bytes = random_bytes(&state);
        char *block = malloc(bytes);
        if (block == NULL)
            _exit(99);
        block[0] = block[bytes - 1] = 1;
        free(block);
    }
    if (!is_filled(block_of_main, 5000, 2))
        _exit(98);
    free(block_of_main);
    block_of_main = malloc(5000);
    fill(block_of_main, 5000, 2);
}

static void prepare(void)
{
    block_of_main = malloc(5000);
    fill(block_of_main, 5000, 2);
}

static void exit_with_handlers(void)
{
    prepare();
    for (unsigned i = 0; i < 40; i++) /* more than fit into libc's first array */
        atexit(allocate_at_exit);
    exit(21);
}

static void quick_exit_with_handlers(void)
{
    prepare();
    for (unsigned i = 0; i < 40; i++)
        at_quick_exit(allocate_at_exit);
    atexit(abort); /* not for quick_exit */
    quick_exit(22);
}

#define KEPT 200
static char *kept[KEPT];

/* The last of the program's own functions that run. */
__attribute__((destructor(101))) static void look_at_what_was_kept(void)
{
    for (unsigned i = 0; i < KEPT && kept[0] != NULL; i++) {
        if (!is_filled(kept[i], i * 1000 + 1, i))
            _exit(97);
        free(kept[i]);
        free(hidden(malloc(i * 1000 + 1)));
    }
}

static void exit_with_blocks(void)
{
    for (unsigned i = 0; i < KEPT; i++) {
        kept[i] = malloc(i * 1000 + 1);
        fill(kept[i], i * 1000 + 1, i);
    }
    exit(24);
}

/* C17 7.22.3: the lifetime of a block ends when it is freed; an allocator that tidies up at exit
 * takes it from code that runs later. */
TEST(blocks_live_until_the_process_is_gone)
{
    CHECK_EXITS(exit_with_blocks(), 24);
}

TEST(handlers_of_exit_can_allocate)
{
    check_is_served();
    time_limit(300);
    CHECK_EXITS(exit_with_handlers(), 21);
}

TEST(handlers_of_quick_exit_can_allocate)
{
    time_limit(300);
    CHECK_EXITS(quick_exit_with_handlers(), 22);
}

TEST(an_immediate_exit_runs_no_handlers)
{
    CHECK_EXITS((atexit(abort), _exit(23)), 23);
}

static void *stay_busy(void *argument)
{
    unsigned state = (unsigned)(uintptr_t)argument;
    char *blocks[100] = {NULL};
    for (;;) {
        unsigned at = next_random(&state) % 100;
        free(blocks[at]);
        blocks[at] = malloc(random_bytes(&state));
    }
    return NULL;
}

static void exit_under_busy_threads(void)
{
    prepare();
    atexit(allocate_at_exit);
    for (uintptr_t i = 1; i < 5; i++)
        start_thread(stay_busy, (void *)i);
    sleep_ms(2);
    exit(24);
}

TEST(a_process_ends_well_while_threads_allocate)
{
    time_limit(500);
    for (unsigned i = 0; i < 40; i++)
        CHECK_EXITS(exit_under_busy_threads(), 24);
}

static void *exit_from_thread(void *argument)
{
    exit(25);
    return argument;
}

TEST(another_thread_than_the_first_can_end_the_process)
{
    CHECK_EXITS((prepare(), atexit(allocate_at_exit), in_thread(exit_from_thread, NULL)), 25);
}

/* Programs that close what they did not open, or write to what a daemon closed. */
TEST(a_process_without_any_file_open_ends_well)
{
    CHECK_EXITS((prepare(), close(0), close(1), close(2), allocate_at_exit(), exit(26)), 26);
}

PART(what_leaves_statistics)
{
    CHECK(hidden(malloc(100)) != NULL);
}

TEST(statistics_are_left_once)
{
    int fd;
    char lines[16384] = "";
    run_with_statistics("what_leaves_statistics", &fd);
    CHECK_EQ(counter_in(fd, "threads_started"), 1);
    CHECK_EQ(counter_in(fd, "fallback"), 0);
    CHECK(pread(fd, lines, sizeof lines - 1, 0) > 0);
    char *first = strstr(lines, "threads_started: ");
    CHECK(first != NULL && strstr(first + 1, "threads_started: ") == NULL);
}
