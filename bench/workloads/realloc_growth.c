/* SPDX-License-Identifier: MIT */
/* bench/workloads/realloc_growth.c - blocks that grow and shrink by realloc.
 *
 *   realloc_growth [LEAST] [MOST] [VECTORS] [APPENDS] [SEED]
 *
 * Models growing containers. Three parts: VECTORS times a vector doubles from LEAST to MOST bytes
 * and each new half is written (vector); a string is extended APPENDS times by 1 to 64 bytes,
 * written, beside 16 others that grow in turn (string); and each vector, full, is halved down to
 * LEAST again (shrink). One operation is one realloc.
 *
 * Notes: time inside realloc in each part, the bytes that realloc must have copied, as far as a
 * changed address tells (a kernel that moves pages copies nothing, so this is what one copies at
 * most), and the peak of resident memory.
 *
 * Checked: after each realloc the ends of what was there before; at its end each string whole.
 */
#include "bench.h"
#include "memory.h"

#define STRING_COUNT 16

enum part { VECTOR, STRING, SHRINK, PARTS };

struct buffer {
    unsigned char *bytes;
    size_t size_bytes;
};

static struct {
    uint64_t least_bytes;
    uint64_t most_bytes;
    uint64_t vector_count;
    uint64_t append_count;
    uint64_t seed;
} plan = {16, (uint64_t)256 << 20, 3, 3000000, 42};

static uint64_t inside_ns[PARTS];
static uint64_t moved_bytes[PARTS];
static uint64_t call_count;

static unsigned char byte_at(size_t offset)
{
    return (unsigned char)(offset * 131 + (offset >> 12));
}

static void byte_check(const struct buffer *buffer, size_t offset)
{
    if (bench_checks() && buffer->bytes[offset] != byte_at(offset)) {
        bench_fail("byte %zu of %zu is %u instead of %u", offset, buffer->size_bytes,
                   buffer->bytes[offset], byte_at(offset));
    }
}

/* Writes the first and last added byte, and one per page. */
static void bytes_write(struct buffer *buffer, size_t from)
{
    for (size_t offset = from; offset < buffer->size_bytes; offset += 4096) {
        buffer->bytes[offset] = byte_at(offset);
    }
    buffer->bytes[buffer->size_bytes - 1] = byte_at(buffer->size_bytes - 1);
}

static void buffer_resize(struct buffer *buffer, size_t size_bytes, enum part part)
{
    size_t old_bytes = buffer->size_bytes;
    size_t kept_bytes = old_bytes < size_bytes ? old_bytes : size_bytes;
    uintptr_t old = (uintptr_t)buffer->bytes;
    uint64_t start_ns = bench_now_ns();
    unsigned char *bytes = realloc(buffer->bytes, size_bytes);
    inside_ns[part] += bench_now_ns() - start_ns;
    if (!bytes) {
        bench_fail("realloc to %zu bytes returned NULL", size_bytes);
    }
    call_count++;
    if (old != 0 && (uintptr_t)bytes != old) {
        moved_bytes[part] += kept_bytes;
    }
    buffer->bytes = bytes;
    buffer->size_bytes = size_bytes;
    if (old != 0) {
        byte_check(buffer, 0);
    }
    if (old != 0 && kept_bytes == old_bytes) {
        byte_check(buffer, kept_bytes - 1);
    }
}

static void vector_run(void)
{
    struct buffer buffer = {0};
    for (size_t bytes = plan.least_bytes; bytes <= plan.most_bytes; bytes *= 2) {
        size_t old_bytes = buffer.size_bytes;
        buffer_resize(&buffer, bytes, VECTOR);
        bytes_write(&buffer, old_bytes);
    }
    while (buffer.size_bytes / 2 >= plan.least_bytes) {
        buffer_resize(&buffer, buffer.size_bytes / 2, SHRINK);
    }
    free(buffer.bytes);
}

static void strings_run(uint32_t random)
{
    struct buffer strings[STRING_COUNT] = {0};
    for (uint64_t i = 0; i < plan.append_count; i++) {
        random = bench_xorshift32(random);
        struct buffer *string = &strings[i % STRING_COUNT];
        size_t old_bytes = string->size_bytes;
        buffer_resize(string, old_bytes + 1 + (random >> 26), STRING);
        for (size_t offset = old_bytes; offset < string->size_bytes; offset++) {
            string->bytes[offset] = byte_at(offset);
        }
    }
    for (uint32_t i = 0; i < STRING_COUNT; i++) {
        for (size_t offset = 0; offset < strings[i].size_bytes; offset++) {
            byte_check(&strings[i], offset);
        }
        free(strings[i].bytes);
    }
}

int main(int argc, char **argv)
{
    const struct bench_argument arguments[] = {
        {"LEAST", "bytes that a vector starts with", &plan.least_bytes, 1, (uint64_t)1 << 40},
        {"MOST", "bytes that a vector reaches", &plan.most_bytes, 2, (uint64_t)1 << 40},
        {"VECTORS", "vectors, one after another", &plan.vector_count, 1, UINT32_MAX},
        {"APPENDS", "extensions of 16 strings together", &plan.append_count, 1, UINT32_MAX},
        {"SEED", "start of the random numbers", &plan.seed, 0, UINT32_MAX},
    };
    bench_arguments_read(argc, argv, "Blocks that grow and shrink by realloc.", arguments, 5);
    bench_order_check("LEAST", plan.least_bytes, "MOST", plan.most_bytes);

    uint64_t start_ns = bench_now_ns();
    for (uint64_t left = plan.vector_count; left != 0; left--) {
        vector_run();
    }
    strings_run(bench_seed_for(plan.seed, 0));
    uint64_t elapsed_ns = bench_now_ns() - start_ns;
    static const char *const names[] = {"vector", "string", "shrink"};
    for (enum part part = VECTOR; part < PARTS; part++) {
        bench_note("realloc_%s: %.6f s", names[part], (double)inside_ns[part] * 1e-9);
        bench_note("moved_%s: %.2f MiB", names[part], (double)moved_bytes[part] / BENCH_MIB);
    }
    bench_note("peak_rss: %.2f MiB", bench_peak_rss_mib());
    bench_report(call_count, elapsed_ns);
    return 0;
}
