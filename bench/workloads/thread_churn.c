/* SPDX-License-Identifier: MIT */
/* bench/workloads/thread_churn.c - threads that come, allocate a little, and go.
 *
 *   thread_churn [THREADS] [AT_ONCE] [BLOCKS] [MIN] [MAX] [SEED]
 *
 * Models a thread for each request: THREADS threads, at most AT_ONCE at a time. Each allocates
 * BLOCKS blocks of MIN <= bytes < MAX, frees every second one, leaves the others to the next
 * thread of its line, and frees what the thread before left. One operation is one block.
 *
 * Notes: microseconds of a thread's life from its start to its end as seen by its starter, and
 * resident memory after a tenth of the threads and after all.
 *
 * Checked at each free: both ends of the block.
 */
#include "bench.h"
#include "memory.h"
#include "team.h"

#define MOST_LINES 256

struct item {
    void *block;
    uint32_t size_bytes;
};

struct line {
    _Alignas(BENCH_CACHE_LINE_BYTES) struct item *left; /* by the thread before, BLOCKS / 2 */
    struct item *items;
    uint32_t random;
    uint64_t thread_count;
    double early_rss_mib;
};

static struct {
    uint64_t thread_count;
    uint64_t line_count;
    uint64_t block_count;
    uint64_t min_bytes;
    uint64_t max_bytes;
    uint64_t seed;
} plan = {10000, 4, 400, 16, 2048, 42};

static void item_free(struct item *item)
{
    if (item->block) {
        bench_mark_check(item->block, item->size_bytes, (uintptr_t)item->block);
        free(item->block);
        item->block = NULL;
    }
}

static void *thread_main(void *argument)
{
    struct line *line = argument;
    uint32_t range_bytes = (uint32_t)(plan.max_bytes - plan.min_bytes);
    for (uint64_t i = 0; i < plan.block_count; i++) {
        line->random = bench_xorshift32(line->random);
        struct item *item = &line->items[i];
        item->size_bytes = (uint32_t)plan.min_bytes + bench_below(line->random, range_bytes);
        item->block = bench_take(item->size_bytes);
        bench_mark(item->block, item->size_bytes, (uintptr_t)item->block);
    }
    for (uint64_t i = 0; i < plan.block_count; i++) {
        if (i % 2 == 0) {
            item_free(&line->items[i]);
        } else {
            item_free(&line->left[i / 2]);
            line->left[i / 2] = line->items[i];
        }
    }
    return NULL;
}

static void line_work(void *argument)
{
    struct line *line = argument;
    for (uint64_t i = 0; i < line->thread_count; i++) {
        pthread_t thread;
        bench_thread_start(&thread, thread_main, line);
        pthread_join(thread, NULL);
        if (i == line->thread_count / 10) {
            line->early_rss_mib = bench_rss_mib();
        }
    }
}

int main(int argc, char **argv)
{
    const struct bench_argument arguments[] = {
        {"THREADS", "threads, one after another and at once", &plan.thread_count, 1, UINT32_MAX},
        {"AT_ONCE", "threads at a time", &plan.line_count, 1, MOST_LINES},
        {"BLOCKS", "blocks of a thread", &plan.block_count, 1, 1u << 24},
        {"MIN", "least bytes of a block", &plan.min_bytes, 1, UINT32_MAX},
        {"MAX", "a block has fewer bytes than this", &plan.max_bytes, 2, UINT32_MAX},
        {"SEED", "start of the random numbers", &plan.seed, 0, UINT32_MAX},
    };
    bench_arguments_read(argc, argv, "Threads that come, allocate a little, and go.", arguments, 6);
    bench_range_check(plan.min_bytes, plan.max_bytes);

    static struct line lines[MOST_LINES];
    uint64_t left = plan.thread_count;
    for (uint32_t i = 0; i < plan.line_count; i++) {
        lines[i].left = bench_map(plan.block_count / 2 + 1, sizeof(struct item));
        lines[i].items = bench_map(plan.block_count, sizeof(struct item));
        lines[i].random = bench_seed_for(plan.seed, i);
        lines[i].thread_count = left / (plan.line_count - i);
        left -= lines[i].thread_count;
    }
    uint64_t elapsed_ns =
        bench_team_run((uint32_t)plan.line_count, line_work, lines, sizeof(*lines));
    bench_note("life: %.2f us",
               (double)elapsed_ns * 1e-3 * (double)plan.line_count / (double)plan.thread_count);
    bench_note("rss_early: %.2f MiB", lines[0].early_rss_mib);
    bench_note("rss_end: %.2f MiB", bench_rss_mib());
    for (uint32_t i = 0; i < plan.line_count; i++) {
        for (uint64_t j = 0; j < plan.block_count / 2; j++) {
            item_free(&lines[i].left[j]);
        }
    }
    bench_report(plan.thread_count * plan.block_count, elapsed_ns);
    return 0;
}
