/* SPDX-License-Identifier: MIT */
/* tests/install/aid/late.c - loads a library (argument 1) late, after libraries with thread-local
 * storage (further arguments), and uses its malloc beside the program's own, in threads that are
 * older than it, too. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOREIGN_FREES 100

static void *(*late_malloc)(size_t bytes);
static void (*late_free)(void *block);
static pthread_barrier_t barrier;

static int fail(const char *what)
{
    fprintf(stderr, "late: %s\n", what);
    exit(1);
}

static void use(void)
{
    void *blocks[200];
    for (size_t i = 0; i < 200; i++) {
        blocks[i] = late_malloc(1 + i * i * 10);
        if (blocks[i] == NULL)
            fail("no memory");
        memset(blocks[i], (int)i, 1 + i * i * 10);
    }
    for (size_t i = 0; i < 200; i++)
        late_free(blocks[i]);
}

static void *older_thread(void *argument)
{
    (void)argument;
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    use();
    return NULL;
}

static void load_and_close(const char *path, int flags)
{
    void *library = dlopen(path, RTLD_NOW | flags);
    if (library == NULL)
        fail(dlerror());
    *(void **)&late_malloc = dlsym(library, "malloc");
    *(void **)&late_free = dlsym(library, "free");
    if (late_malloc == NULL || late_malloc == malloc || late_free == free)
        fail("it is not another malloc");
    void *block = late_malloc(100);
    if (dlclose(library) != 0 || (library = dlopen(path, RTLD_NOW | RTLD_NOLOAD)) == NULL)
        fail("it was unloaded");
    late_free(block);
}

int main(int argument_count, char **arguments)
{
    pthread_t thread;
    static const int flags[] = {RTLD_LOCAL, RTLD_LOCAL | RTLD_DEEPBIND, RTLD_GLOBAL};
    for (int i = 2; i < argument_count; i++) {
        void *library = dlopen(arguments[i], RTLD_NOW);
        if (library == NULL)
            fail(dlerror());
        char *(*touch)(void);
        *(void **)&touch = dlsym(library, "tls_touch");
        touch();
    }
    pthread_barrier_init(&barrier, NULL, 2);
    if (pthread_create(&thread, NULL, older_thread, NULL) != 0)
        fail("no thread");
    pthread_barrier_wait(&barrier);
    const char *first = getenv("LATE_FIRST_FLAGS");
    int begin = first != NULL ? atoi(first) : 0;
    for (int i = 0; i < 3; i++)
        load_and_close(arguments[1], flags[(begin + i) % 3]);
    pthread_barrier_wait(&barrier);
    use();
    pthread_join(thread, NULL);
    /* Blocks of the program's own malloc are counted and left alone. */
    for (int i = 0; i < FOREIGN_FREES; i++) {
        char *block = strdup("mine");
        late_free(block);
        if (strcmp(block, "mine") != 0)
            fail("a block of the program's was touched");
        free(block);
    }
    return 0;
}
