/* SPDX-License-Identifier: MIT */
/* bench/noop/noop.c - an allocator that does nothing, to learn what a workload costs by itself.
 *
 *   LD_PRELOAD=libnoop.so BENCH_VERIFY=off NOOP_RING_BYTES=4194304 WORKLOAD ...
 *
 * malloc hands out the next bytes of a ring of the thread and starts over at its end, so blocks
 * share memory and stay in the cache as those of a last-in-first-out allocator do; free does
 * nothing. This suits programs that only write to their blocks, such as our workloads, and no
 * others. What must keep its contents is never reused: memory from calloc, realloc and the aligned
 * calls, the first KEPT_BYTES of each thread (what libc allocates while it starts), and requests
 * of 1/64 of the ring and more. A ring of a finished thread goes to the next new one.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ALIGNMENT_BYTES 16u
#define KEPT_BYTES ((size_t)64 << 10)
#define RING_BYTES_DEFAULT ((size_t)4 << 20)
#define RING_BYTES_LEAST ((size_t)64 << 10)
#define LIMIT_SHIFT 6
#define ARENA_BYTES ((size_t)64 << 30)

#define noop_api __attribute__((visibility("default")))

/* A free ring holds the list of free rings in its first bytes. */
struct free_ring {
    struct free_ring *next;
};

struct ring {
    char *base;
    size_t used_bytes;
    size_t ring_bytes;  /* 0 until the thread has a ring */
    size_t limit_bytes; /* requests of as much and more do not come from the ring */
    size_t kept_bytes;  /* handed out to this thread for good before it had a ring */
};

static __thread struct ring ring __attribute__((tls_model("initial-exec")));

static struct {
    char *base;
    atomic_size_t used_bytes;
} arena;

static struct {
    pthread_mutex_t mutex;
    struct free_ring *first;
    size_t ring_bytes;
    pthread_key_t exit_key;
} rings = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* Fresh zeroed memory that is never reused; NULL and ENOMEM when the arena is full. The first call
 * comes from the loader, before there are threads. */
static void *arena_take(size_t size_bytes, size_t alignment_bytes)
{
    if (!arena.base) {
        arena.base = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (arena.base == MAP_FAILED) {
            abort();
        }
    }
    if (size_bytes > ARENA_BYTES / 2 || alignment_bytes > ARENA_BYTES / 4) {
        errno = ENOMEM;
        return NULL;
    }
    size_t step_bytes =
        (size_bytes + alignment_bytes + ALIGNMENT_BYTES - 1) & ~(size_t)(ALIGNMENT_BYTES - 1);
    size_t offset = atomic_fetch_add_explicit(&arena.used_bytes, step_bytes, memory_order_relaxed);
    if (offset > ARENA_BYTES - step_bytes) {
        errno = ENOMEM;
        return NULL;
    }
    uintptr_t address = (uintptr_t)arena.base + offset;
    return (void *)((address + alignment_bytes - 1) & ~(uintptr_t)(alignment_bytes - 1));
}

static void ring_return(void *base)
{
    struct free_ring *free_ring = base;
    ring = (struct ring){0};
    pthread_mutex_lock(&rings.mutex);
    free_ring->next = rings.first;
    rings.first = free_ring;
    pthread_mutex_unlock(&rings.mutex);
}

/* Reads the size of all rings once; what is out of range becomes the default. */
static void rings_start(void)
{
    const char *setting = getenv("NOOP_RING_BYTES");
    size_t ring_bytes = setting ? strtoul(setting, NULL, 10) : 0;
    if (ring_bytes < RING_BYTES_LEAST || ring_bytes > ARENA_BYTES / 2) {
        ring_bytes = RING_BYTES_DEFAULT;
    }
    rings.ring_bytes = ring_bytes;
    if (pthread_key_create(&rings.exit_key, ring_return) != 0) {
        abort();
    }
}

/* Gives the thread a ring, used before if possible. */
static void ring_start(void)
{
    pthread_mutex_lock(&rings.mutex);
    if (rings.ring_bytes == 0) {
        rings_start();
    }
    struct free_ring *base = rings.first;
    if (base) {
        rings.first = base->next;
    }
    pthread_mutex_unlock(&rings.mutex);
    if (!base) {
        base = arena_take(rings.ring_bytes, ALIGNMENT_BYTES);
    }
    if (!base) {
        abort();
    }
    ring.base = (char *)base;
    ring.used_bytes = 0;
    ring.ring_bytes = rings.ring_bytes;
    ring.limit_bytes = rings.ring_bytes >> LIMIT_SHIFT;
    pthread_setspecific(rings.exit_key, base);
}

/* No ring yet, the ring is used up, or the request is large. */
static __attribute__((noinline)) void *malloc_slow(size_t size_bytes)
{
    if (ring.ring_bytes == 0) {
        if (size_bytes > KEPT_BYTES || ring.kept_bytes + size_bytes > KEPT_BYTES) {
            ring_start();
            return malloc(size_bytes);
        }
        ring.kept_bytes += size_bytes + ALIGNMENT_BYTES;
        return arena_take(size_bytes, ALIGNMENT_BYTES);
    }
    if (size_bytes >= ring.limit_bytes) {
        return arena_take(size_bytes, ALIGNMENT_BYTES);
    }
    ring.used_bytes = (size_bytes + ALIGNMENT_BYTES - 1) & ~(size_t)(ALIGNMENT_BYTES - 1);
    return ring.base;
}

noop_api void *malloc(size_t size_bytes)
{
    size_t start = ring.used_bytes;
    size_t end = (start + size_bytes + ALIGNMENT_BYTES - 1) & ~(size_t)(ALIGNMENT_BYTES - 1);
    if (__builtin_expect(size_bytes >= ring.limit_bytes || end > ring.ring_bytes, 0)) {
        return malloc_slow(size_bytes);
    }
    ring.used_bytes = end;
    return ring.base + start;
}

noop_api void free(void *block)
{
    (void)block;
}

noop_api void *calloc(size_t count, size_t element_bytes)
{
    size_t size_bytes;
    if (__builtin_mul_overflow(count, element_bytes, &size_bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return arena_take(size_bytes, ALIGNMENT_BYTES);
}

/* The old size is not known: copies as much as the new block holds. What follows the old block is
 * readable, being ours, except behind the end of the arena. */
noop_api void *realloc(void *block, size_t size_bytes)
{
    char *fresh = arena_take(size_bytes, ALIGNMENT_BYTES);
    if (fresh && block) {
        size_t readable_bytes = (size_t)(arena.base + ARENA_BYTES - (char *)block);
        memmove(fresh, block, size_bytes < readable_bytes ? size_bytes : readable_bytes);
    }
    return fresh;
}

noop_api void *memalign(size_t alignment_bytes, size_t size_bytes)
{
    return arena_take(size_bytes,
                      alignment_bytes > ALIGNMENT_BYTES ? alignment_bytes : ALIGNMENT_BYTES);
}

noop_api void *aligned_alloc(size_t alignment_bytes, size_t size_bytes)
{
    return memalign(alignment_bytes, size_bytes);
}

noop_api int posix_memalign(void **block, size_t alignment_bytes, size_t size_bytes)
{
    void *fresh = memalign(alignment_bytes, size_bytes);
    if (!fresh) {
        return ENOMEM;
    }
    *block = fresh;
    return 0;
}

/* Sizes are not kept: tells the caller to rely on none of the block. */
noop_api size_t malloc_usable_size(void *block)
{
    (void)block;
    return 0;
}
