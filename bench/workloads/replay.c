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
#include "trace_reader.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/stat.h>

#define SPINS 64
#define PAGE_BYTES 4096

struct worker {
    struct call *calls;
    uint64_t call_count;
};

static const char *path;
static uint64_t most_mib = 4096;
static struct trace trace;
static _Atomic(void *) *blocks; /* NULL until the block exists; also after its end */
static struct worker workers[TRACE_MOST_THREADS];

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

/* Maps the file and reads all of it before anything is played. */
static void file_read(void)
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
    size_t most_calls = size_bytes / TRACE_RECORD_LEAST_BYTES + 1;
    trace.calls = bench_map(most_calls, sizeof(*trace.calls));
    trace.sizes = bench_map(most_calls + 1, sizeof(*trace.sizes));
    trace.ended = bench_map(most_calls + 1, sizeof(*trace.ended));
    trace.most_bytes = most_mib << 20;
    if (!trace_read(&trace, bytes + TRACE_MAGIC_BYTES, bytes + size_bytes)) {
        refuse("%s", trace.why);
    }
    if (trace.call_count == 0) {
        refuse("holds no call");
    }
    munmap((void *)bytes, file_bytes);
    bench_note("trace_calls: %" PRIu64 " calls", trace.call_count);
    bench_note("trace_threads: %u threads", trace.thread_count);
    bench_note("trace_live: %.2f MiB", (double)trace.most_live_bytes / BENCH_MIB);
}

/* Gives each thread its calls, in their order. */
static void calls_divide(void)
{
    struct call *sorted = bench_map(trace.call_count, sizeof(*sorted));
    for (uint64_t i = 0; i < trace.call_count; i++) {
        workers[trace.calls[i].thread].call_count++;
    }
    struct call *next = sorted;
    for (uint32_t thread = 0; thread < trace.thread_count; thread++) {
        workers[thread].calls = next;
        next += workers[thread].call_count;
        workers[thread].call_count = 0;
    }
    for (uint64_t i = 0; i < trace.call_count; i++) {
        struct worker *worker = &workers[trace.calls[i].thread];
        worker->calls[worker->call_count++] = trace.calls[i];
    }
    blocks = bench_map((uint64_t)trace.block_count + 1, sizeof(*blocks));
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
    if (trace.sizes[number] != 0) {
        bench_mark_check(block, trace.sizes[number], number);
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
    if (block && number != 0 && trace.sizes[number] >= 16 && call->size_bytes >= 16 &&
        bench_checks() && memcmp(block, &number, sizeof(number)) != 0) {
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
    file_read();
    calls_divide();
    uint64_t elapsed_ns = 0;
    for (uint64_t left = repeat_count; left != 0; left--) {
        elapsed_ns += bench_team_run(trace.thread_count, worker_work, workers, sizeof(*workers));
        for (uint32_t number = 1; number <= trace.block_count; number++) {
            if (!trace.ended[number]) {
                free(block_await(number));
            }
        }
    }
    bench_report(repeat_count * trace.call_count, elapsed_ns);
    return 0;
}
