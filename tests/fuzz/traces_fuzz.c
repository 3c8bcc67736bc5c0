/* SPDX-License-Identifier: MIT */
/* tests/fuzz/traces_fuzz.c - any bytes as a trace: the reader refuses them in words or gives calls
 * that can be made, and making them in their order keeps what blocks hold. */
#include "fuzz.h"
#include "trace_reader.h"

#define MOST_BYTES (32 * HAK_MIB)

static struct live *blocks;

static void block_end(uint32_t number, size_t kept_bytes, const unsigned char *moved)
{
    struct live *live = &blocks[number];
    CHECK(live->start != NULL);
    size_t bytes = live->usable < kept_bytes ? live->usable : kept_bytes;
    block_check(moved != NULL ? moved : live->start, bytes, live->usable, live->seed);
    live->start = NULL;
}

static void block_begin(const struct call *call, void *block)
{
    CHECK(block != NULL);
    size_t alignment = call->size_bytes <= 8 ? 8 : 16;
    if (call->operation == TRACE_ALIGNED)
        alignment = (size_t)1 << call->alignment_shift;
    CHECK_EQ((uintptr_t)block % alignment, 0);
    struct live *live = &blocks[call->made];
    CHECK(live->start == NULL);
    *live = (struct live){block, call->size_bytes, hak_malloc_usable_size(block), call->made};
    CHECK(live->usable >= call->size_bytes);
    block_fill(live);
}

static void call_make(const struct call *call)
{
    unsigned char *block;
    switch (call->operation) {
    case TRACE_FREE:
        block = blocks[call->ended].start;
        block_end(call->ended, SIZE_MAX, NULL);
        hak_free(block);
        return;
    case TRACE_REALLOC:
        block = call->ended != 0 ? blocks[call->ended].start : NULL;
        /* To 0 bytes would be a free. */
        block = hak_realloc(block, call->size_bytes != 0 ? call->size_bytes : 1);
        CHECK(block != NULL);
        if (call->ended != 0)
            block_end(call->ended, call->size_bytes, block);
        break;
    case TRACE_CALLOC:
        block = hak_calloc(1, call->size_bytes);
        CHECK(block != NULL);
        block_check_zero(block, call->size_bytes);
        break;
    case TRACE_ALIGNED:
        block = hak_aligned_alloc((size_t)1 << call->alignment_shift, call->size_bytes);
        break;
    default:
        block = hak_malloc(call->size_bytes);
    }
    block_begin(call, block);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t byte_count)
{
    size_t most_calls = byte_count / TRACE_RECORD_LEAST_BYTES + 1;
    struct trace trace = {.calls = calloc(most_calls, sizeof *trace.calls),
                          .sizes = calloc(most_calls + 1, sizeof *trace.sizes),
                          .ended = calloc(most_calls + 1, sizeof *trace.ended),
                          .most_bytes = MOST_BYTES};
    blocks = calloc(most_calls + 1, sizeof *blocks);
    if (trace_read(&trace, bytes, bytes + byte_count)) {
        CHECK_EQ(trace.why[0], '\0');
        CHECK(trace.most_live_bytes <= MOST_BYTES);
        for (uint64_t i = 0; i < trace.call_count; i++)
            call_make(&trace.calls[i]);
        for (uint32_t i = 1; i <= trace.block_count; i++)
            CHECK_EQ(blocks[i].start == NULL, trace.ended[i]);
        for (uint32_t i = 1; i <= trace.block_count; i++)
            hak_free(blocks[i].start);
    } else {
        CHECK(strncmp(trace.why, "record ", 7) == 0);
    }
    free(blocks);
    free(trace.calls);
    free(trace.sizes);
    free(trace.ended);
    return 0;
}
