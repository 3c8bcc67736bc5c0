/* SPDX-License-Identifier: MIT */
/* bench/trace/record.c - records a program's calls of malloc and free, to be played back.
 *
 *   LD_PRELOAD=libtrace_record.so TRACE_OUT=FILE [TRACE_BYTES=N] PROGRAM ...
 *
 * Writes what trace_format.h describes to FILE, which must not exist yet: so the first process
 * that finds the variable is recorded, and neither its children nor the programs it starts. After
 * N bytes (256 MiB if not set) the rest of the run is left out. The blocks are libc's.
 *
 * One lock orders all records. A free is recorded before it happens and an allocation after it, so
 * the record of a block that got an address comes after that of the block which had it before. The
 * file is mapped: a program that ends by _exit or a signal loses nothing. Nothing here allocates.
 */
#define _GNU_SOURCE
#include "trace_format.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define FILE_BYTES_DEFAULT ((size_t)256 << 20)
#define TABLE_COUNT_LEAST ((size_t)1 << 16)

#define record_api __attribute__((visibility("default")))

void *__libc_malloc(size_t size_bytes);
void *__libc_calloc(size_t count, size_t element_bytes);
void *__libc_realloc(void *block, size_t size_bytes);
void *__libc_memalign(size_t alignment_bytes, size_t size_bytes);
void __libc_free(void *block);

/* What lives at an address; address 0 is an empty place, 1 one that was emptied. */
struct place {
    uintptr_t address;
    uint64_t number;
};

enum state { UNDECIDED, RECORDING, STOPPED };

static struct {
    pthread_mutex_t mutex;
    enum state state;
    int file;
    unsigned char *base;
    unsigned char *next;
    unsigned char *end;
    uint64_t last_us;
    uint64_t block_count;
    uint64_t thread_count;
    uint64_t last_thread;
    struct place *places; /* open addressing, less than half of the places were ever used */
    size_t place_count;
    size_t used_count; /* emptied ones, too */
    size_t live_count;
} trace = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* Number of the thread + 1, 0 before its first record. */
static __thread uint64_t thread_number __attribute__((tls_model("initial-exec")));

static uint64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static struct place *places_map(size_t count)
{
    void *places = mmap(NULL, count * sizeof(struct place), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return places == MAP_FAILED ? NULL : places;
}

/* The place of an address, or the empty one where the search ends. */
static struct place *place_find(uintptr_t address)
{
    size_t index = (address >> 4) * 0x9E3779B97F4A7C15u >> 20;
    for (;; index++) {
        struct place *place = &trace.places[index & (trace.place_count - 1)];
        if (place->address == address || place->address == 0) {
            return place;
        }
    }
}

static void place_add(uintptr_t address, uint64_t number)
{
    struct place *place = place_find(address);
    trace.used_count += place->address == 0;
    trace.live_count++;
    *place = (struct place){address, number};
}

/* Makes room for one more, and gets rid of emptied places; false if there is no memory. */
static bool places_grow(void)
{
    if (trace.used_count * 2 < trace.place_count) {
        return true;
    }
    struct place *old = trace.places;
    size_t old_count = trace.place_count;
    size_t count = trace.live_count * 4 > old_count ? old_count * 2 : old_count;
    struct place *fresh = places_map(count);
    if (!fresh) {
        return false;
    }
    trace.places = fresh;
    trace.place_count = count;
    trace.used_count = 0;
    trace.live_count = 0;
    for (size_t i = 0; i < old_count; i++) {
        if (old[i].address > 1) {
            place_add(old[i].address, old[i].number);
        }
    }
    munmap(old, old_count * sizeof(*old));
    return true;
}

static void trace_stop(void)
{
    if (trace.state == RECORDING && ftruncate(trace.file, trace.next - trace.base) != 0) {
        trace.state = STOPPED; /* zeros behind the last record are in order */
    }
    trace.state = STOPPED;
}

static void before_fork(void)
{
    pthread_mutex_lock(&trace.mutex);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&trace.mutex);
}

/* The file is the parent's. */
static void after_fork_in_child(void)
{
    trace.state = STOPPED;
    pthread_mutex_unlock(&trace.mutex);
}

/* Decides, once there is an environment, whether this process is recorded. */
static void trace_start(void)
{
    if (!environ) {
        return;
    }
    trace.state = STOPPED;
    const char *path = getenv("TRACE_OUT");
    const char *limit = getenv("TRACE_BYTES");
    size_t file_bytes = limit ? strtoul(limit, NULL, 10) : FILE_BYTES_DEFAULT;
    if (!path || file_bytes < TRACE_MAGIC_BYTES + 2 * TRACE_RECORD_MOST_BYTES) {
        return;
    }
    trace.file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    trace.places = places_map(TABLE_COUNT_LEAST);
    trace.place_count = TABLE_COUNT_LEAST;
    if (trace.file < 0 || !trace.places || ftruncate(trace.file, (off_t)file_bytes) != 0) {
        return;
    }
    void *base = mmap(NULL, file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, trace.file, 0);
    if (base == MAP_FAILED) {
        return;
    }
    trace.base = base;
    trace.end = trace.base + file_bytes;
    trace.next = trace.base + TRACE_MAGIC_BYTES;
    memcpy(trace.base, TRACE_MAGIC, TRACE_MAGIC_BYTES);
    trace.last_us = now_us();
    trace.state = RECORDING;
}

/* Takes the lock; false, without it, if nothing is recorded. */
static bool trace_enter(void)
{
    if (__atomic_load_n(&trace.state, __ATOMIC_RELAXED) == STOPPED) {
        return false;
    }
    pthread_mutex_lock(&trace.mutex);
    if (trace.state == UNDECIDED) {
        trace_start();
    }
    if (trace.state == RECORDING &&
        (trace.end - trace.next < TRACE_RECORD_MOST_BYTES || !places_grow())) {
        trace_stop();
    }
    if (trace.state != RECORDING) {
        pthread_mutex_unlock(&trace.mutex);
        return false;
    }
    return true;
}

static void trace_leave(void)
{
    pthread_mutex_unlock(&trace.mutex);
}

/* Begins a record; the operands follow at trace.next. */
static void record_begin(enum trace_operation operation)
{
    if (thread_number == 0) {
        thread_number = ++trace.thread_count;
    }
    bool other = thread_number - 1 != trace.last_thread;
    *trace.next++ = (unsigned char)(operation | (other ? TRACE_OTHER_THREAD : 0));
    if (other) {
        trace.last_thread = thread_number - 1;
        trace.next = trace_number_write(trace.next, trace.last_thread);
    }
    uint64_t time_us = now_us();
    trace.next = trace_number_write(trace.next, time_us - trace.last_us);
    trace.last_us = time_us;
}

static void number_add(uint64_t number)
{
    trace.next = trace_number_write(trace.next, number);
}

/* Forgets a block; returns its number, 0 if it is not known. */
static uint64_t block_forget(void *block)
{
    struct place *place = place_find((uintptr_t)block);
    if (place->address == 0) {
        return 0;
    }
    place->address = 1;
    trace.live_count--;
    return place->number;
}

/* A block was made by an operation with these operands; the alignment is 0 if it has none. */
static void *made(enum trace_operation operation, void *block, size_t size_bytes,
                  size_t alignment_bytes)
{
    int saved_errno = errno;
    if (block && trace_enter()) {
        record_begin(operation);
        number_add(size_bytes);
        if (operation == TRACE_ALIGNED) {
            number_add((uint64_t)__builtin_ctzl(alignment_bytes));
        }
        place_add((uintptr_t)block, ++trace.block_count);
        trace_leave();
    }
    errno = saved_errno;
    return block;
}

record_api void *malloc(size_t size_bytes)
{
    return made(TRACE_MALLOC, __libc_malloc(size_bytes), size_bytes, 0);
}

record_api void *calloc(size_t count, size_t element_bytes)
{
    return made(TRACE_CALLOC, __libc_calloc(count, element_bytes), count * element_bytes, 0);
}

record_api void free(void *block)
{
    int saved_errno = errno;
    if (block && trace_enter()) {
        uint64_t number = block_forget(block);
        if (number != 0) {
            record_begin(TRACE_FREE);
            number_add(trace.block_count - number + 1);
        }
        trace_leave();
    }
    __libc_free(block);
    errno = saved_errno;
}

record_api void *realloc(void *block, size_t size_bytes)
{
    if (block && size_bytes == 0) {
        free(block);
        return NULL;
    }
    uint64_t number = 0;
    if (block && trace_enter()) {
        number = block_forget(block);
        trace_leave();
    }
    void *fresh = __libc_realloc(block, size_bytes);
    int saved_errno = errno;
    if ((fresh || number != 0) && trace_enter()) {
        if (fresh) {
            record_begin(TRACE_REALLOC);
            number_add(number != 0 ? trace.block_count - number + 1 : 0);
            number_add(size_bytes);
            place_add((uintptr_t)fresh, ++trace.block_count);
        } else {
            place_add((uintptr_t)block, number);
        }
        trace_leave();
    }
    errno = saved_errno;
    return fresh;
}

record_api void *reallocarray(void *block, size_t count, size_t element_bytes)
{
    size_t size_bytes;
    if (__builtin_mul_overflow(count, element_bytes, &size_bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(block, size_bytes);
}

record_api void *memalign(size_t alignment_bytes, size_t size_bytes)
{
    void *block = __libc_memalign(alignment_bytes, size_bytes);
    return made(TRACE_ALIGNED, block, size_bytes, alignment_bytes ? alignment_bytes : 1);
}

record_api void *aligned_alloc(size_t alignment_bytes, size_t size_bytes)
{
    return memalign(alignment_bytes, size_bytes);
}

record_api int posix_memalign(void **block, size_t alignment_bytes, size_t size_bytes)
{
    if (alignment_bytes % sizeof(void *) != 0 || alignment_bytes == 0 ||
        (alignment_bytes & (alignment_bytes - 1)) != 0) {
        return EINVAL;
    }
    int saved_errno = errno;
    void *fresh = memalign(alignment_bytes, size_bytes);
    errno = saved_errno;
    if (!fresh) {
        return ENOMEM;
    }
    *block = fresh;
    return 0;
}

record_api void *valloc(size_t size_bytes)
{
    return memalign((size_t)sysconf(_SC_PAGESIZE), size_bytes);
}

__attribute__((constructor)) static void record_start(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

__attribute__((destructor)) static void record_end(void)
{
    pthread_mutex_lock(&trace.mutex);
    trace_stop();
    pthread_mutex_unlock(&trace.mutex);
}
