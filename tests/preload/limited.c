/* SPDX-License-Identifier: MIT */
/* tests/preload/limited.c - a limit of memory that the program sets for itself, long after hakmem
 * started, as judges, `ulimit -v` and Python's resource.setrlimit do, and by a raw system call that
 * nobody can see. What malloc gives, and what it leaves to threads and mappings, is what the limit
 * says. If this fails, such programs cannot start a thread, or use more than they may. */
#include "until_refused.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)
#define THREADS 8

static void set_limit(int resource, size_t bytes)
{
    struct rlimit limit = {bytes, RLIM_INFINITY};
    CHECK_EQ(setrlimit(resource, &limit), 0);
}

static void check_threads_start(void)
{
    pthread_t threads[THREADS];
    start_threads(threads, THREADS, end_at_once);
    join_threads(threads, THREADS);
}

static void check_can_map(size_t bytes)
{
    void *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED)
        CHECK_FAILED("%zu MiB cannot be mapped: %s, %zu MiB are", bytes / MIB, strerror(errno),
                     (status_kib("VmSize") << 10) / MIB);
    CHECK_EQ(munmap(start, bytes), 0);
}

/* All that the limit leaves but a tenth can be had; what was freed is the program's again. */
static void use_up(size_t limit_bytes, size_t block_bytes, const char *counter)
{
    for (int round = 0; round < 2; round++) {
        struct link *list = NULL;
        size_t before = status_kib(counter) << 10;
        unsigned count = allocate_until_refused(&list, block_bytes);
        size_t got = (size_t)count * block_bytes;
        CHECK(status_kib(counter) << 10 <= limit_bytes);
        if (got < (limit_bytes - before) / 10 * 9)
            CHECK_FAILED("round %d: %zu MiB in blocks of %zu bytes, under a limit of %zu", round,
                         got / MIB, block_bytes, limit_bytes / MIB);
        check_and_free(list, block_bytes, count);
        check_threads_start();
        check_can_map((limit_bytes - before) / 10 * 8);
    }
}

static void start_small(void)
{
    time_limit(500);
    check_is_served();
    free(hidden(malloc(100000)));
    free(hidden(malloc(10)));
}

static void check_has_room(size_t bytes)
{
    check_threads_start();
    check_can_map(bytes);
    void *block = hidden(malloc(bytes));
    CHECK(block != NULL);
    free(block);
    CHECK(hidden(malloc(5 * bytes)) == NULL);
}

TEST(after_a_limit_in_main_threads_mappings_and_blocks_have_room)
{
    start_small();
    set_limit(RLIMIT_AS, 4 * GIB);
    check_has_room(3 * GIB);
}

TEST(a_limit_by_a_raw_system_call_is_as_good)
{
    struct rlimit limit = {4 * GIB, 4 * GIB};
    start_small();
    CHECK_EQ(syscall(SYS_prlimit64, 0, RLIMIT_AS, &limit, NULL), 0);
    check_has_room(3 * GIB);
}

TEST(a_limit_of_4_GiB_can_be_used_up_and_comes_back)
{
    start_small();
    set_limit(RLIMIT_AS, 4 * GIB);
    use_up(4 * GIB, 8 * MIB, "VmSize");
    use_up(4 * GIB, 100 << 10, "VmSize");
}

TEST(a_limit_of_512_MiB_can_be_used_up_and_comes_back)
{
    start_small();
    set_limit(RLIMIT_AS, 512 * MIB);
    use_up(512 * MIB, 1 * MIB, "VmSize");
    use_up(512 * MIB, 250 << 10, "VmSize");
    use_up(512 * MIB, 10000, "VmSize");
    use_up(512 * MIB, 1000, "VmSize");
}

TEST(a_limit_of_data_can_be_used_up_and_comes_back)
{
    start_small();
    set_limit(RLIMIT_DATA, 512 * MIB);
    use_up(512 * MIB, 1 * MIB, "VmData");
    use_up(512 * MIB, 1000, "VmData");
}

/* What is larger than all that was free at once. */
TEST(free_memory_makes_room_for_a_larger_block)
{
    static void *blocks[64];
    start_small();
    set_limit(RLIMIT_AS, 1 * GIB);
    for (int i = 0; i < 64; i++)
        CHECK((blocks[i] = malloc(12 * MIB)) != NULL);
    for (int i = 0; i < 64; i++)
        free(blocks[i]);
    void *block = hidden(malloc(900 * MIB));
    CHECK(block != NULL);
    free(block);
}

TEST(a_limit_below_what_is_used_harms_nothing_and_can_be_raised)
{
    static char *blocks[100];
    start_small();
    for (unsigned i = 0; i < 100; i++) {
        CHECK((blocks[i] = malloc(3 * MIB)) != NULL);
        fill(blocks[i], 4096, i);
    }
    set_limit(RLIMIT_AS, 64 * MIB);
    while (hidden(malloc(1 * MIB)) != NULL)
        continue;
    CHECK_EQ(errno, ENOMEM);
    free(hidden(malloc(100)));
    for (unsigned i = 0; i < 100; i++)
        CHECK(is_filled(blocks[i], 4096, i));
    for (unsigned i = 0; i < 100; i += 2)
        free(blocks[i]);
    set_limit(RLIMIT_AS, 2 * GIB);
    for (unsigned i = 0; i < 100; i += 2) {
        CHECK((blocks[i] = calloc(1, 10 * MIB)) != NULL);
        CHECK(is_zero(blocks[i], 4096));
    }
    for (unsigned i = 1; i < 100; i += 2)
        CHECK(is_filled(blocks[i], 4096, i));
    check_threads_start();
}

static void use_up_in_child(void)
{
    use_up(512 * MIB, 1 * MIB, "VmSize");
    use_up(512 * MIB, 1000, "VmSize");
}

TEST(children_live_under_the_limit_too)
{
    struct link *list = NULL;
    start_small();
    set_limit(RLIMIT_AS, 512 * MIB);
    CHECK_EXITS(use_up_in_child(), 0);
    unsigned count = allocate_until_refused(&list, 1 * MIB);
    CHECK_EXITS(check_and_free(list, 1 * MIB, count); use_up_in_child(), 0);
    check_and_free(list, 1 * MIB, count);
    use_up_in_child();
}

static _Atomic int others_end;

static void *allocate_beside(void *argument)
{
    unsigned state = (unsigned)(uintptr_t)argument;
    while (!others_end) {
        size_t bytes = random_bytes(&state) * 10;
        char *block = malloc(bytes);
        if (block == NULL)
            continue;
        fill(block, bytes < 4096 ? bytes : 4096, 3);
        CHECK(is_filled(block, bytes < 4096 ? bytes : 4096, 3));
        free(block);
    }
    return NULL;
}

/* What goes back and is mapped again is not mixed up between threads. */
TEST(threads_allocate_while_one_uses_everything_up)
{
    pthread_t threads[3];
    start_small();
    set_limit(RLIMIT_AS, 700 * MIB);
    start_threads(threads, 3, allocate_beside);
    for (int round = 0; round < 10; round++) {
        struct link *list = NULL;
        size_t bytes = 1 * MIB + (size_t)round * 300000;
        unsigned count = allocate_until_refused(&list, bytes);
        check_and_free(list, bytes, count);
    }
    others_end = 1;
    join_threads(threads, 3);
}
