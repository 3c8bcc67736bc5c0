/* SPDX-License-Identifier: MIT */
/* tests/tools/corrupt.c - an allocator that now and then changes a byte of somebody's block.
 *
 *   LD_PRELOAD=corrupt.so CORRUPT_LEAST=64 WORKLOAD ...
 *
 * libc's, but that each CORRUPT_EVERY-th malloc or realloc of CORRUPT_LEAST bytes or more
 * (16 and 7 if not set) flips the first byte of the oldest of the last 4 such blocks that are
 * still live. A workload that does not notice does not look.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>

#define LAST_COUNT 4

void *__libc_malloc(size_t size_bytes);
void *__libc_calloc(size_t count, size_t element_bytes);
void *__libc_realloc(void *block, size_t size_bytes);
void __libc_free(void *block);

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned char *last[LAST_COUNT];
static unsigned long call_count;

static unsigned long setting(const char *name, unsigned long otherwise)
{
    const char *text = getenv(name);
    return text ? strtoul(text, NULL, 10) : otherwise;
}

static void *remember(void *block, size_t size_bytes)
{
    if (!block || size_bytes < setting("CORRUPT_LEAST", 16)) {
        return block;
    }
    pthread_mutex_lock(&mutex);
    unsigned place = call_count++ % LAST_COUNT;
    if (last[place] && call_count % setting("CORRUPT_EVERY", 7) == 0) {
        *last[place] ^= 0xFF;
    }
    last[place] = block;
    pthread_mutex_unlock(&mutex);
    return block;
}

static void forget(void *block)
{
    pthread_mutex_lock(&mutex);
    for (unsigned i = 0; block && i < LAST_COUNT; i++) {
        last[i] = last[i] == block ? NULL : last[i];
    }
    pthread_mutex_unlock(&mutex);
}

void *malloc(size_t size_bytes)
{
    return remember(__libc_malloc(size_bytes), size_bytes);
}

void *calloc(size_t count, size_t element_bytes)
{
    return __libc_calloc(count, element_bytes);
}

void *realloc(void *block, size_t size_bytes)
{
    forget(block);
    return remember(__libc_realloc(block, size_bytes), size_bytes);
}

void free(void *block)
{
    forget(block);
    __libc_free(block);
}

static void lock(void)
{
    pthread_mutex_lock(&mutex);
}

static void unlock(void)
{
    pthread_mutex_unlock(&mutex);
}

/* A child must not wait for a thread that it does not have. */
__attribute__((constructor)) static void corrupt_start(void)
{
    pthread_atfork(lock, unlock, unlock);
}
