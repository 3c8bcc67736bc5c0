/* SPDX-License-Identifier: MIT */
/* tests/install/consumer/use.c - a C program as any, with threads and a child. It ends well if its
 * blocks kept their contents; which allocator served them is in hakmem's statistics. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LARGE_BLOCKS 10
#define LARGE_BYTES 1000000
#define ROUNDS 2000
#define SLOTS 64
#define THREADS 4

static int fail(const char *what)
{
    fprintf(stderr, "use: %s\n", what);
    _exit(1);
}

static void *use(void *argument)
{
    unsigned char *blocks[SLOTS] = {NULL};
    unsigned seed = (unsigned)(size_t)argument + 1;
    for (unsigned i = 0; i < ROUNDS; i++) {
        seed = seed * 1664525u + 1013904223u;
        unsigned slot = (seed >> 8) % SLOTS;
        size_t bytes = 1 + (seed >> 16) % 3000;
        if (blocks[slot] != NULL && blocks[slot][0] != slot)
            fail("contents changed");
        free(blocks[slot]);
        blocks[slot] = i % 3 == 0 ? calloc(1, bytes) : malloc(bytes);
        if (blocks[slot] == NULL)
            fail("no memory");
        blocks[slot][0] = (unsigned char)slot;
        blocks[slot] = realloc(blocks[slot], bytes * 2);
        if (blocks[slot] == NULL)
            fail("no memory");
    }
    for (unsigned i = 0; i < SLOTS; i++)
        free(blocks[i]);
    return NULL;
}

static void use_in_threads(void)
{
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, use, (void *)i) != 0)
            fail("no thread");
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* More than any thread cache serves: each is one of hakmem's large blocks, counted. */
static void use_large(void)
{
    for (int i = 0; i < LARGE_BLOCKS; i++) {
        char *volatile block = malloc(LARGE_BYTES);
        if (block == NULL)
            fail("no memory");
        memset(block, i, LARGE_BYTES);
        free(block);
    }
}

static void use_through_libc(void)
{
    char *text = NULL;
    char *line = NULL;
    size_t bytes = 0;
    void *aligned = NULL;
    FILE *file = fopen("/proc/self/status", "r");
    if (asprintf(&text, "%d", 12345) != 5 || strcmp(text, "12345") != 0)
        fail("asprintf");
    if (file == NULL || getline(&line, &bytes, file) < 5)
        fail("getline");
    if (posix_memalign(&aligned, 4096, 100) != 0 || (size_t)aligned % 4096 != 0)
        fail("posix_memalign");
    fclose(file);
    free(aligned);
    free(line);
    free(text);
}

int main(void)
{
    int status = -1;
    use_in_threads();
    use_large();
    use_through_libc();
    pid_t pid = fork();
    if (pid == 0) {
        use_in_threads();
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        fail("the child");
    use_in_threads();
    return 0;
}
