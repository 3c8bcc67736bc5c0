/* SPDX-License-Identifier: MIT */
/* bench/workloads/replay.c - plays back what a real program asked of malloc and free.
 *
 *   replay TRACE [REPEATS] [MOST_MIB]
 *
 * TRACE is a file that bench/trace/record.c wrote (bench/traces holds some); bench/trace/
 * trace_format.h describes it. Each recorded thread is a thread here and makes its calls in their
 * order, as fast as it can; a call that needs another thread's block waits until that exists. A
 * block is written at its ends and once in each page. What is live at the end is freed, and all of
 * it is done REPEATS times. A trace that has more than MOST_MIB MiB live is refused. One operation
 * is one recorded call.
 *
 * Notes: calls of the trace, its threads, and the most that is live in it when its calls are made
 * in the recorded order.
 *
 * Checked: both ends of a block when it is freed or given to realloc, what realloc keeps, the ends
 * of zeroed blocks, alignments. A file that is no trace is a wrong argument.
 */
#include "bench.h"
#include "memory.h"
#include "team.h"
#include "trace_format.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/stat.h>

#define MOST_THREADS 4096
#define MOST_ALIGNMENT_SHIFT 24
#define SPINS 64
#define PAGE_BYTES 4096

struct call {
    uint64_t size_bytes;
    uint32_t made; /* number of the block that it makes, 0 if none */
    uint32_t ended;
    uint32_t thread;
    uint8_t operation;
    uint8_t alignment_shift;
};

struct worker {
    struct call *calls;
    uint64_t call_count;
};

/* A file while it is read. */
struct reader {
    const unsigned char *next;
    const unsigned char *end;
    uint64_t thread;
    uint64_t live_bytes;
    uint64_t most_live_bytes;
};

static const char *path;
static uint64_t most_mib = 4096;
static struct call *calls;
static uint64_t call_count;
static uint32_t block_count;
static uint32_t thread_count;
static uint64_t *sizes;         /* of each block */
static bool *ended;             /* while the file is read */
static _Atomic(void *) *blocks; /* NULL until the block exists; also after its end */
static struct worker workers[MOST_THREADS];

__attribute__((noreturn, format(printf, 1, 2))) static void refuse(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: %s: ", program_invocation_short_name, path);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(2);
}

static uint64_t number_read(struct reader *reader)
{
    uint64_t number;
    reader->next = trace_number_read(reader->next, reader->end, &number);
    if (!reader->next) {
        refuse("record %" PRIu64 " is incomplete", call_count + 1);
    }
    return number;
}

/* Reads which block a call ends; 0 is none. */
static uint32_t block_read(struct reader *reader)
{
    uint64_t distance = number_read(reader);
    if (distance > block_count) {
        refuse("record %" PRIu64 " names a block that was never made", call_count + 1);
    }
    if (distance == 0) {
        return 0;
    }
    uint32_t number = block_count - (uint32_t)distance + 1;
    if (ended[number]) {
        refuse("record %" PRIu64 " names a block that has ended", call_count + 1);
    }
    ended[number] = true;
    reader->live_bytes -= sizes[number];
    return number;
}

static uint32_t block_make(struct reader *reader, uint64_t size_bytes)
{
    if (size_bytes > most_mib << 20 || reader->live_bytes + size_bytes > most_mib << 20) {
        refuse("record %" PRIu64 " asks for more than MOST_MIB, %" PRIu64 " MiB", call_count + 1,
               most_mib);
    }
    reader->live_bytes += size_bytes;
    if (reader->live_bytes > reader->most_live_bytes) {
        reader->most_live_bytes = reader->live_bytes;
    }
    sizes[++block_count] = size_bytes;
    return block_count;
}

static void operands_read(struct reader *reader, struct call *call)
{
    switch (call->operation) {
    case TRACE_REALLOC:
    case TRACE_FREE:
        call->ended = block_read(reader);
        if (call->operation == TRACE_FREE) {
            if (call->ended == 0) {
                refuse("record %" PRIu64 " frees nothing", call_count + 1);
            }
            return;
        }
        break;
    case TRACE_MALLOC:
    case TRACE_CALLOC:
    case TRACE_ALIGNED:
        break;
    default:
        refuse("record %" PRIu64 " has an unknown operation", call_count + 1);
    }
    call->size_bytes = number_read(reader);
    if (call->operation == TRACE_ALIGNED) {
        uint64_t shift = number_read(reader);
        if (shift > MOST_ALIGNMENT_SHIFT) {
            refuse("record %" PRIu64 " has an alignment out of range", call_count + 1);
        }
        call->alignment_shift = (uint8_t)shift;
    }
    call->made = block_make(reader, call->size_bytes);
}

static void call_read(struct reader *reader, struct call *call)
{
    unsigned char first = *reader->next++;
    if (first > (TRACE_OPERATION_MASK | TRACE_OTHER_THREAD)) {
        refuse("record %" PRIu64 " has an unknown operation", call_count + 1);
    }
    call->operation = first & TRACE_OPERATION_MASK;
    if (first & TRACE_OTHER_THREAD) {
        reader->thread = number_read(reader);
    }
    if (reader->thread >= MOST_THREADS) {
        refuse("record %" PRIu64 " is of thread %" PRIu64 ", at most %d are possible",
               call_count + 1, reader->thread, MOST_THREADS);
    }
    call->thread = (uint32_t)reader->thread;
    thread_count = call->thread >= thread_count ? call->thread + 1 : thread_count;
    number_read(reader); /* the time is for readers of another kind */
    operands_read(reader, call);
}

/* Maps the file and reads all of it before anything is played. */
static void trace_read(void)
{
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &status) != 0) {
        refuse("%s", strerror(errno));
    }
    size_t size_bytes = (size_t)status.st_size;
    if (!S_ISREG(status.st_mode) || size_bytes < TRACE_MAGIC_BYTES || size_bytes >= UINT32_MAX) {
        refuse("is no trace");
    }
    const unsigned char *bytes = mmap(NULL, size_bytes, PROT_READ, MAP_PRIVATE, file, 0);
    if (bytes == MAP_FAILED) {
        refuse("%s", strerror(errno));
    }
    close(file);
    if (memcmp(bytes, TRACE_MAGIC, TRACE_MAGIC_BYTES) != 0) {
        refuse("is no trace");
    }
    /* What a killed program left behind its last record is not worth tables; the zeros at the end
     * of that record are. */
    size_t file_bytes = size_bytes;
    while (size_bytes > TRACE_MAGIC_BYTES && bytes[size_bytes - 1] == 0) {
        size_bytes--;
    }
    size_bytes += TRACE_RECORD_MOST_BYTES;
    size_bytes = size_bytes < file_bytes ? size_bytes : file_bytes;
    /* A record has three bytes at least. */
    calls = bench_map(size_bytes / 3 + 1, sizeof(*calls));
    sizes = bench_map(size_bytes / 3 + 2, sizeof(*sizes));
    ended = bench_map(size_bytes / 3 + 2, sizeof(*ended));
    struct reader reader = {bytes + TRACE_MAGIC_BYTES, bytes + size_bytes, 0, 0, 0};
    while (reader.next < reader.end && *reader.next != TRACE_END) {
        call_read(&reader, &calls[call_count]);
        call_count++;
    }
    if (call_count == 0) {
        refuse("holds no call");
    }
    munmap((void *)bytes, file_bytes);
    bench_note("trace_calls: %" PRIu64 " calls", call_count);
    bench_note("trace_threads: %u threads", thread_count);
    bench_note("trace_live: %.2f MiB", (double)reader.most_live_bytes / BENCH_MIB);
}

/* Gives each thread its calls, in their order. */
static void calls_divide(void)
{
    struct call *sorted = bench_map(call_count, sizeof(*sorted));
    for (uint64_t i = 0; i < call_count; i++) {
        workers[calls[i].thread].call_count++;
    }
    struct call *next = sorted;
    for (uint32_t thread = 0; thread < thread_count; thread++) {
        workers[thread].calls = next;
        next += workers[thread].call_count;
        workers[thread].call_count = 0;
    }
    for (uint64_t i = 0; i < call_count; i++) {
        struct worker *worker = &workers[calls[i].thread];
        worker->calls[worker->call_count++] = calls[i];
    }
    blocks = bench_map((uint64_t)block_count + 1, sizeof(*blocks));
}

/* Waits until a block exists, and checks it. */
static void *block_await(uint32_t number)
{
    void *block;
    /* Pairs with the release in call_play: the marks are visible. */
    for (uint32_t spins = 1; !(block = atomic_load_explicit(&blocks[number], memory_order_acquire));
         spins++) {
        if (spins % SPINS == 0) {
            sched_yield();
        }
    }
    atomic_store_explicit(&blocks[number], NULL, memory_order_relaxed);
    if (sizes[number] != 0) {
        bench_mark_check(block, sizes[number], number);
    }
    return block;
}

static void block_write(unsigned char *block, uint64_t size_bytes, uint32_t number)
{
    for (uint64_t offset = PAGE_BYTES; offset < size_bytes; offset += PAGE_BYTES) {
        block[offset] = (unsigned char)number;
    }
    if (size_bytes != 0) {
        bench_mark(block, size_bytes, number);
    }
}

static void *block_realloc(const struct call *call)
{
    void *old = call->ended != 0 ? block_await(call->ended) : NULL;
    unsigned char *block = realloc(old, call->size_bytes ? call->size_bytes : 1);
    uint64_t number = call->ended;
    if (block && number != 0 && sizes[number] >= 16 && call->size_bytes >= 16 && bench_checks() &&
        memcmp(block, &number, sizeof(number)) != 0) {
        bench_fail("realloc to %" PRIu64 " bytes begins with %u instead of what it was",
                   call->size_bytes, block[0]);
    }
    return block;
}

static void *block_calloc(uint64_t size_bytes)
{
    unsigned char *block = calloc(1, size_bytes);
    if (block && size_bytes != 0 && bench_checks() && (block[0] | block[size_bytes - 1]) != 0) {
        bench_fail("calloc of %" PRIu64 " bytes holds %u instead of 0", size_bytes,
                   block[0] | block[size_bytes - 1]);
    }
    return block;
}

static void *block_aligned(const struct call *call)
{
    size_t alignment_bytes = (size_t)1 << call->alignment_shift;
    void *block = NULL;
    size_t least_bytes = sizeof(void *);
    if (posix_memalign(&block, alignment_bytes < least_bytes ? least_bytes : alignment_bytes,
                       call->size_bytes) == 0 &&
        (uintptr_t)block % alignment_bytes != 0) {
        bench_fail("a block is at %p instead of a multiple of %zu", block, alignment_bytes);
    }
    return block;
}

static void call_play(const struct call *call)
{
    void *block;
    switch (call->operation) {
    case TRACE_FREE:
        free(block_await(call->ended));
        return;
    case TRACE_REALLOC:
        block = block_realloc(call);
        break;
    case TRACE_CALLOC:
        block = block_calloc(call->size_bytes);
        break;
    case TRACE_ALIGNED:
        block = block_aligned(call);
        break;
    default:
        block = malloc(call->size_bytes);
    }
    if (!block && call->size_bytes != 0) {
        bench_fail("no memory for %" PRIu64 " bytes", call->size_bytes);
    }
    /* malloc(0) may be NULL: then the block is a small one, so that nobody waits for ever. */
    block = block ? block : bench_take(1);
    block_write(block, call->size_bytes, call->made);
    /* Pairs with the acquire in block_await. */
    atomic_store_explicit(&blocks[call->made], block, memory_order_release);
}

static void worker_work(void *argument)
{
    struct worker *worker = argument;
    for (uint64_t i = 0; i < worker->call_count; i++) {
        call_play(&worker->calls[i]);
    }
}

int main(int argc, char **argv)
{
    uint64_t repeat_count = 10;
    const struct bench_argument arguments[] = {
        {"REPEATS", "times that all is played", &repeat_count, 1, UINT32_MAX},
        {"MOST_MIB", "most MiB that may be live", &most_mib, 1, 1u << 24},
    };
    bool asks = argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
    if (argc < 2) {
        fprintf(stderr, "%s: expected TRACE [REPEATS] [MOST_MIB]\n", program_invocation_short_name);
        return 2;
    }
    bench_arguments_read(argc - !asks, argv + !asks,
                         "Before REPEATS: TRACE, a file of recorded calls, which are played back.",
                         arguments, 2);
    path = argv[1];
    trace_read();
    calls_divide();
    uint64_t elapsed_ns = 0;
    for (uint64_t left = repeat_count; left != 0; left--) {
        elapsed_ns += bench_team_run(thread_count, worker_work, workers, sizeof(*workers));
        for (uint32_t number = 1; number <= block_count; number++) {
            if (!ended[number]) {
                free(block_await(number));
            }
        }
    }
    bench_report(repeat_count * call_count, elapsed_ns);
    return 0;
}
