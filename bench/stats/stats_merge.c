/* SPDX-License-Identifier: MIT */
/* bench/stats/stats_merge.c [THREADS] [ROUNDS] - how long it takes to merge the statistics of many
 * threads that have a heap each and sleep. Prints the least and the median of the rounds. */
#include <hakmem/hakmem.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SIZES 64

static pthread_barrier_t all_ready, all_done;

static void *use_and_sleep(void *unused)
{
    void *blocks[SIZES];
    for (int i = 0; i < SIZES; i++)
        blocks[i] = malloc((size_t)i * 32 + 8);
    for (int i = 0; i < SIZES; i += 2)
        free(blocks[i]);
    pthread_barrier_wait(&all_ready);
    pthread_barrier_wait(&all_done);
    for (int i = 1; i < SIZES; i += 2)
        free(blocks[i]);
    return unused;
}

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int compare(const void *left, const void *right)
{
    const double *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

int main(int argument_count, char **arguments)
{
    int thread_count = argument_count > 1 ? atoi(arguments[1]) : 1000;
    int round_count = argument_count > 2 ? atoi(arguments[2]) : 101;
    if (thread_count < 1 || round_count < 1)
        return 2;
    pthread_t *threads = calloc((size_t)thread_count, sizeof *threads);
    double *times = calloc((size_t)round_count, sizeof *times);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 65536);
    pthread_barrier_init(&all_ready, NULL, (unsigned)thread_count + 1);
    pthread_barrier_init(&all_done, NULL, (unsigned)thread_count + 1);
    for (int i = 0; i < thread_count; i++)
        if (pthread_create(&threads[i], &attributes, use_and_sleep, NULL) != 0)
            return 1;
    pthread_barrier_wait(&all_ready);
    struct hakmem_stats stats;
    for (int i = 0; i < round_count; i++) {
        double start = now_us();
        if (hakmem_stats_get(&stats, sizeof stats) != 0)
            return 1;
        times[i] = now_us() - start;
    }
    pthread_barrier_wait(&all_done);
    for (int i = 0; i < thread_count; i++)
        pthread_join(threads[i], NULL);
    qsort(times, (size_t)round_count, sizeof *times, compare);
    printf("%d threads, %llu caches, %llu live blocks: least %.0f us, median %.0f us\n",
           thread_count, (unsigned long long)stats.cache_count,
           (unsigned long long)stats.small_live_block_count, times[0], times[round_count / 2]);
    return 0;
}
