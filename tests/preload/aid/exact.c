/* SPDX-License-Identifier: MIT */
/* tests/preload/aid/exact.c FOLDER [own_thread] - asks for memory in every way, in several threads,
 * between two sets of statistics, FOLDER/{before,after}.{text,raw,json,xml,openmetrics}, and counts
 * itself: `NAME COUNT` on standard output for each number of HAKMEM_STATS=exact, and
 * `class_SIZE_requests COUNT` and `class_SIZE_reallocs COUNT` for each size class. With own_thread
 * it grows until hakmem has started its own thread. */
#define _GNU_SOURCE
#include "forms.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define THREADS 4
#define STEPS 20000
#define KEPT 64
#define LARGEST_CLASS_BYTES 131072
#define OWN_THREAD_BYTES ((size_t)100 << 20) /* with so much hakmem has a thread of its own */

static const size_t sizes[] = {0,     1,     8,      9,      16,     17,    100,
                               128,   129,   1000,   1024,   4000,   4097,  20000,
                               32768, 32769, 100000, 131072, 131073, 700000};
#define SIZES (sizeof sizes / sizeof *sizes)
static size_t class_bytes[SIZES]; /* of the class that serves the size; 0: none does */

struct counts {
    uint64_t requests, requested_bytes, reallocs, realloc_bytes, frees;
    uint64_t requests_of[SIZES], reallocs_of[SIZES];
};

static void *(*heap_new)(void);
static void *(*heap_malloc)(void *, size_t);
static void (*heap_free)(void *, void *);
static size_t (*good_size)(size_t);
static void *(*heap_realloc)(void *, void *, size_t);
static void *(*operator_new)(size_t);
static void (*operator_delete)(void *);
static pthread_barrier_t barrier;
static _Atomic(void *) exchanged[KEPT];

static uint64_t next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void *asked(struct counts *counts, size_t at, void *block)
{
    if (block == NULL)
        exit(4);
    counts->requests++;
    counts->requested_bytes += sizes[at];
    counts->requests_of[at]++;
    return block;
}

static void *resized(struct counts *counts, size_t at, void *block)
{
    if (block == NULL)
        exit(5);
    counts->reallocs++;
    counts->realloc_bytes += sizes[at];
    counts->reallocs_of[at]++;
    return block;
}

static void *take(struct counts *counts, uint64_t random, size_t at)
{
    void *block = NULL;
    switch (random % 8) {
    case 0:
        return asked(counts, at, calloc(1, sizes[at]));
    case 1:
        return asked(counts, at, realloc(NULL, sizes[at]));
    case 2:
        return asked(counts, at, aligned_alloc(8, sizes[at]));
    case 3:
        return asked(counts, at, posix_memalign(&block, 256, sizes[at]) == 0 ? block : NULL);
    case 4:
        return asked(counts, at, operator_new(sizes[at]));
    default:
        return asked(counts, at, malloc(sizes[at]));
    }
}

static void give(struct counts *counts, uint64_t random, void *block)
{
    if (block == NULL) {
        free(block); /* is no free */
        return;
    }
    counts->frees++;
    if (random % 8 == 0)
        operator_delete(block);
    else if (random % 8 == 1 && realloc(block, 0) != NULL)
        exit(6);
    else if (random % 8 > 1)
        free(block);
}

static void use_private_heap(struct counts *counts, void *heap, size_t at)
{
    void *block = asked(counts, at, heap_malloc(heap, sizes[at]));
    size_t to = (at + 7) % SIZES;
    if (sizes[to] != 0)
        block = resized(counts, to, heap_realloc(heap, block, sizes[to]));
    heap_free(heap, block);
    counts->frees++;
}

/* What is refused for what it says, is no request. */
static void ask_wrongly(void)
{
    volatile size_t alignment = 24, count = SIZE_MAX / 2;
    void *block = calloc(count, 3);
    if (block != NULL || aligned_alloc(alignment, 100) != NULL ||
        posix_memalign(&block, alignment, 100) == 0 || malloc(count * 2) != NULL)
        exit(7);
}

static void *work(void *argument)
{
    struct counts *counts = argument;
    void *kept[KEPT] = {NULL};
    uint64_t state = 88172645463325252u + (uintptr_t)counts;
    void *heap = heap_new();
    pthread_barrier_wait(&barrier); /* all threads are there */
    pthread_barrier_wait(&barrier); /* the first numbers are printed */
    for (int i = 0; i < STEPS; i++) {
        uint64_t random = next(&state);
        void **slot = &kept[random % KEPT];
        size_t at = (random >> 8) % SIZES;
        if (i == STEPS / 2)
            malloc_trim(0); /* empties the thread's bins, which must stay as they are */
        if (random >> 60 == 0)
            use_private_heap(counts, heap, at);
        else if (*slot == NULL)
            *slot = take(counts, random >> 16, at);
        else if (random >> 60 < 6 && sizes[at] != 0)
            *slot = resized(counts, at,
                            random & 1 << 20 ? realloc(*slot, sizes[at])
                                             : reallocarray(*slot, 1, sizes[at]));
        else if (random >> 60 < 9)
            *slot = atomic_exchange(&exchanged[random % KEPT], *slot);
        else {
            give(counts, random >> 16, *slot);
            *slot = NULL;
        }
    }
    ask_wrongly();
    for (int i = 0; i < KEPT; i++)
        give(counts, 2, kept[i]);
    pthread_barrier_wait(&barrier); /* all is done */
    pthread_barrier_wait(&barrier); /* and printed */
    return NULL;
}

/* Grows the heap until hakmem starts its own thread: what libc allocates for that one is nobody's
 * request. */
static void wait_for_own_thread(struct counts *counts)
{
    struct stat tasks = {0};
    void *large = malloc(OWN_THREAD_BYTES);
    if (large == NULL)
        exit(9);
    counts->requests++;
    counts->requests_of[SIZES - 1]++; /* is as large as none of the classes, too */
    counts->requested_bytes += OWN_THREAD_BYTES;
    for (int i = 0; tasks.st_nlink < 2 + THREADS + 2; i++) {
        if (i == 100000 || stat("/proc/self/task", &tasks) != 0)
            exit(10);
        give(counts, 2, asked(counts, 6, malloc(sizes[6])));
        usleep(100);
    }
    give(counts, 2, large);
}

static void say_classes(const struct counts *sum)
{
    for (size_t i = 0; i < SIZES; i++) {
        uint64_t requests = 0, reallocs = 0;
        for (size_t j = 0; j < SIZES; j++) {
            if (class_bytes[j] == class_bytes[i] && j < i)
                break; /* said already */
            requests += class_bytes[j] == class_bytes[i] ? sum->requests_of[j] : 0;
            reallocs += class_bytes[j] == class_bytes[i] ? sum->reallocs_of[j] : 0;
            if (j < SIZES - 1)
                continue;
            if (class_bytes[i] == 0)
                printf("exact_large_requests %ju\nexact_large_reallocs %ju\n", (uintmax_t)requests,
                       (uintmax_t)reallocs);
            else
                printf("class_%zu_requests %ju\nclass_%zu_reallocs %ju\n", class_bytes[i],
                       (uintmax_t)requests, class_bytes[i], (uintmax_t)reallocs);
        }
    }
}

static struct counts sum_of(const struct counts *each)
{
    struct counts sum = {0};
    for (int i = 0; i <= THREADS; i++)
        for (size_t word = 0; word < sizeof sum / sizeof(uint64_t); word++)
            ((uint64_t *)&sum)[word] += ((const uint64_t *)&each[i])[word];
    return sum;
}

int main(int argument_count, char **arguments)
{
    static struct counts counts[THREADS + 1];
    static char line_buffer[65536];
    pthread_t threads[THREADS];
    setvbuf(stdout, line_buffer, _IOFBF, sizeof line_buffer); /* stdio allocates nothing */
    if (argument_count < 2)
        return 2;
    bool is_told_to_wait = argument_count == 3 && strcmp(arguments[2], "own_thread") == 0;
    *(void **)&heap_new = find("hakmem_heap_new");
    *(void **)&heap_malloc = find("hakmem_heap_malloc");
    *(void **)&heap_free = find("hakmem_heap_free");
    *(void **)&heap_realloc = find("hakmem_heap_realloc");
    *(void **)&good_size = find("malloc_good_size");
    *(void **)&operator_new = find("_Znwm");
    *(void **)&operator_delete = find("_ZdlPv");
    for (size_t i = 0; i < SIZES; i++) {
        size_t bytes = sizes[i] + (sizes[i] == 0); /* counted with the least class */
        class_bytes[i] = sizes[i] > LARGEST_CLASS_BYTES ? 0 : good_size(bytes);
    }
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, &counts[i]) != 0)
            return 8;
    pthread_barrier_wait(&barrier);
    put(arguments[1], "before");
    pthread_barrier_wait(&barrier);
    if (is_told_to_wait)
        wait_for_own_thread(&counts[THREADS]);
    pthread_barrier_wait(&barrier);
    put(arguments[1], "after");
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    struct counts sum = sum_of(counts);
    printf("exact_requests %ju\nexact_requested_bytes %ju\nexact_reallocs %ju\n"
           "exact_realloc_bytes %ju\nexact_frees %ju\n",
           (uintmax_t)sum.requests, (uintmax_t)sum.requested_bytes, (uintmax_t)sum.reallocs,
           (uintmax_t)sum.realloc_bytes, (uintmax_t)sum.frees);
    say_classes(&sum);
    return 0;
}
