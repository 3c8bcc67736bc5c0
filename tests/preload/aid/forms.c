/* SPDX-License-Identifier: MIT */
/* tests/preload/aid/forms.c FOLDER - does a known thing between two sets of statistics, and counts
 * it itself: FOLDER/{before,after}.{text,json,xml,openmetrics}, and on standard output `SIZE COUNT`
 * for the live blocks of each usable size that it has more than before, and `COUNTER COUNT`. */
#define _GNU_SOURCE
#include "forms.h"

#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>

#define MOST 4000
static void *blocks[MOST];
static size_t sizes[MOST];
static int block_count;

static void take(size_t bytes, int count)
{
    for (int i = 0; i < count; i++) {
        blocks[block_count] = malloc(bytes);
        sizes[block_count] = malloc_usable_size(blocks[block_count]);
        block_count++;
    }
}

/* Frees every second of what was taken last. */
static void thin(int count)
{
    for (int i = block_count - count; i < block_count; i += 2) {
        free(blocks[i]);
        blocks[i] = NULL;
    }
}

#define THREADS 3
#define STRANGE_FREES 100
#define HEAPS 2

/* The compiler does not know where it leads. */
static void *hidden(void *address)
{
    __asm__("" : "+r"(address));
    return address;
}

/* Frees what the main thread allocated; its own block, of a size that nobody else has, comes and
 * goes. */
static void *free_theirs(void *theirs)
{
    void **strange = theirs;
    free(hidden(malloc(3000)));
    for (int i = 0; strange != NULL && i < STRANGE_FREES; i++)
        free(strange[i]);
    return NULL;
}

static void run_thread(void **strange)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, free_theirs, strange) != 0 || pthread_join(thread, NULL) != 0)
        exit(4);
}

/* Things that have a counter of their own. */
static void do_countable_things(void)
{
    static void *strange[STRANGE_FREES];
    void *(*new_heap)(void) = (void *(*)(void))find("hakmem_heap_new");
    void (*destroy)(void *) = (void (*)(void *))find("hakmem_heap_destroy");
    size_t *foreign = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < STRANGE_FREES; i++)
        strange[i] = malloc(200);
    run_thread(strange);
    for (int i = 1; i < THREADS; i++)
        run_thread(NULL);
    for (int i = 0; i < HEAPS; i++)
        destroy(new_heap());
    foreign[1] = foreign[33] = 256 | 1; /* as before blocks of glibc's malloc */
    free(hidden(foreign + 2));
    free(hidden(foreign + 34));
    if (malloc((size_t)1 << 45) != NULL)
        exit(5);
    printf("threads_started %d\nprivate_heaps %d\nforeign_frees 2\n"
           "out_of_memory 1\n",
           THREADS, HEAPS);
}

int main(int argument_count, char **arguments)
{
    static char line_buffer[65536];
    setvbuf(stdout, line_buffer, _IOFBF, sizeof line_buffer); /* stdio allocates nothing */
    if (argument_count != 2)
        return 2;
    run_thread(NULL); /* what libc keeps for threads is there then */
    put(arguments[1], "before");
    take(24, 1000);
    thin(1000);
    take(100, 500);
    take(1000, 300);
    thin(300);
    take(5000, 40);
    take(70000, 9);
    take((size_t)1 << 20, 3);
    thin(3);
    do_countable_things();
    put(arguments[1], "after");
    for (int i = 0; i < block_count; i++) {
        int count = 0;
        if (blocks[i] == NULL)
            continue;
        for (int j = i; j < block_count; j++)
            if (blocks[j] != NULL && sizes[j] == sizes[i]) {
                count++;
                blocks[j] = NULL;
            }
        printf("%zu %d\n", sizes[i], count);
    }
    if (print(1, "pdf") != 22 || print(1000, "text") != 9)
        return 3;
    return 0;
}
