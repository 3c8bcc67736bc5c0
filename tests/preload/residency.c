/* SPDX-License-Identifier: MIT */
/* tests/preload/residency.c - at the end of programs of several kinds every resident page has a
 * part that it belongs to, and the parts are what the kernel counts. If this fails, nobody can say
 * why a process is as large as it is. */
#include "program.h"

#define HAKMEM_WEAK
#include "hakmem/hakmem.h"

#include "unit/smaps.h"

#define MIB (1ul << 20)
#define BLOCKS 60000

static void *blocks[BLOCKS];

static void *touched(size_t bytes)
{
    void *block = malloc(bytes);
    CHECK(block != NULL);
    return memset(block, 1, bytes);
}

static struct hakmem_residency look(void)
{
    check_is_served();
    CHECK(hakmem_residency_get != NULL);
    return check_residency_adds_up();
}

TEST(after_a_start)
{
    free(hidden(touched(10)));
    struct hakmem_residency at = look();
    CHECK(at.metadata_bytes > 0);
    CHECK(at.live_bytes < 2 * MIB);
}

TEST(after_blocks_of_all_sizes_came_and_went)
{
    unsigned state = 7;
    for (int round = 0; round < 5; round++)
        for (int i = 0; i < 4000; i++) {
            free(blocks[i]);
            blocks[i] = touched(random_bytes(&state));
        }
    struct hakmem_residency at = look();
    CHECK(at.live_bytes > MIB);
    for (int i = 0; i < 4000; i++)
        free(blocks[i]);
    look();
}

TEST(after_a_valley)
{
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = touched(200);
    uint64_t live_bytes = look().live_bytes;
    for (int i = 0; i < BLOCKS; i++)
        if (i % 100 != 0)
            free(blocks[i]);
    struct hakmem_residency at = look();
    CHECK(at.live_bytes < live_bytes / 10);
}

static void *fill_and_wait(void *barrier)
{
    void *mine[500];
    unsigned state = (unsigned)(uintptr_t)&state;
    for (int i = 0; i < 500; i++)
        mine[i] = touched(1 + next_random(&state) % 3000);
    for (int i = 0; i < 400; i++)
        free(mine[i]);
    pthread_barrier_wait(barrier);
    pthread_barrier_wait(barrier);
    for (int i = 400; i < 500; i++)
        free(mine[i]);
    return NULL;
}

TEST(while_threads_sleep_and_after_they_ended)
{
    pthread_barrier_t barrier;
    pthread_t threads[8];
    pthread_barrier_init(&barrier, NULL, 9);
    for (int i = 0; i < 8; i++)
        threads[i] = start_thread(fill_and_wait, &barrier);
    pthread_barrier_wait(&barrier);
    struct hakmem_residency at = look();
    CHECK(at.cached_bytes + at.withheld_bytes > 0); /* in hardened mode they are in quarantine */
    CHECK_EQ(at.busy_heap_count, 0);
    pthread_barrier_wait(&barrier);
    join_threads(threads, 8);
    look();
}

TEST(after_realloc_moved_large_blocks)
{
    char *block = NULL;
    for (size_t bytes = 4096; bytes <= 40 * MIB; bytes += bytes / 2) {
        block = realloc(block, bytes);
        CHECK(block != NULL);
        memset(block + bytes / 2, 1, bytes / 2);
        free(blocks[0]);
        blocks[0] = touched(300000);
    }
    struct hakmem_residency at = look();
    CHECK(at.live_bytes > 25 * MIB);
    free(block);
    look();
}

TEST(in_a_child_of_fork)
{
    for (int i = 0; i < 20000; i++)
        blocks[i] = touched(300);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        struct hakmem_residency at;
        for (int i = 0; i < 20000; i++)
            memset(blocks[i], 2, 300); /* its own pages, even for older kernels */
        at = look();
        _exit(at.live_bytes > 20000 * 300 ? 0 : 1);
    }
    CHECK_CHILD_ENDS_WELL(pid, 60000);
}
