/* SPDX-License-Identifier: MIT */
/* bench/trace/trace_reader.h - a trace's records as calls, each checked before any is made.
 *
 * Owns        struct trace: tables of the caller's that trace_read fills.
 * Invariants  of a trace that was accepted, each block ends at most once, after it was made, and
 *             no more than most_bytes are live when its calls are made in their order.
 * Threads     plain data of the caller's.
 * Tests       tests/tools/test_trace.py, tests/fuzz/traces_fuzz.c
 */
#ifndef BENCH_TRACE_TRACE_READER_H
#define BENCH_TRACE_TRACE_READER_H

#include "trace_format.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#define TRACE_MOST_THREADS 4096
#define TRACE_MOST_ALIGNMENT_SHIFT 24
#define TRACE_RECORD_LEAST_BYTES 3

struct call {
    uint64_t size_bytes;
    uint32_t made; /* number of the block that it makes, 0 if none */
    uint32_t ended;
    uint32_t thread;
    uint8_t operation;
    uint8_t alignment_shift;
};

/* Tables for n bytes of records: n / TRACE_RECORD_LEAST_BYTES + 1 calls, and one more of sizes and
 * ends, zeroed; blocks are numbered from 1. */
struct trace {
    struct call *calls;
    uint64_t *sizes;
    bool *ended;
    uint64_t most_bytes;
    uint64_t call_count;
    uint32_t block_count;
    uint32_t thread_count;
    uint64_t live_bytes;
    uint64_t most_live_bytes;
    char why[128]; /* it was refused */
};

/* A file while it is read. */
struct trace_place {
    const unsigned char *next;
    const unsigned char *end;
    uint64_t thread;
};

/* Says what is wrong with the record that is being read; false. */
__attribute__((format(printf, 2, 3))) static inline bool trace_refuse(struct trace *trace,
                                                                      const char *format, ...)
{
    int used =
        snprintf(trace->why, sizeof(trace->why), "record %" PRIu64 " ", trace->call_count + 1);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(trace->why + used, sizeof(trace->why) - (size_t)used, format, arguments);
    va_end(arguments);
    return false;
}

static inline bool trace_operand_read(struct trace *trace, struct trace_place *place,
                                      uint64_t *number)
{
    const unsigned char *next = trace_number_read(place->next, place->end, number);
    if (!next) {
        return trace_refuse(trace, "is incomplete");
    }
    place->next = next;
    return true;
}

/* Reads which block a call ends; 0 is none. */
static inline bool trace_ended_read(struct trace *trace, struct trace_place *place,
                                    struct call *call)
{
    uint64_t distance;
    if (!trace_operand_read(trace, place, &distance)) {
        return false;
    }
    if (distance > trace->block_count) {
        return trace_refuse(trace, "names a block that was never made");
    }
    if (distance == 0) {
        return call->operation != TRACE_FREE || trace_refuse(trace, "frees nothing");
    }
    call->ended = trace->block_count - (uint32_t)distance + 1;
    if (trace->ended[call->ended]) {
        return trace_refuse(trace, "names a block that has ended");
    }
    trace->ended[call->ended] = true;
    trace->live_bytes -= trace->sizes[call->ended];
    return true;
}

static inline bool trace_made_read(struct trace *trace, struct trace_place *place,
                                   struct call *call)
{
    uint64_t shift = 0;
    if (!trace_operand_read(trace, place, &call->size_bytes) ||
        (call->operation == TRACE_ALIGNED && !trace_operand_read(trace, place, &shift))) {
        return false;
    }
    if (shift > TRACE_MOST_ALIGNMENT_SHIFT) {
        return trace_refuse(trace, "has an alignment out of range");
    }
    call->alignment_shift = (uint8_t)shift;
    if (call->size_bytes > trace->most_bytes ||
        trace->live_bytes + call->size_bytes > trace->most_bytes) {
        return trace_refuse(trace, "asks for more than MOST_MIB, %" PRIu64 " MiB",
                            trace->most_bytes >> 20);
    }
    trace->live_bytes += call->size_bytes;
    if (trace->live_bytes > trace->most_live_bytes) {
        trace->most_live_bytes = trace->live_bytes;
    }
    call->made = ++trace->block_count;
    trace->sizes[call->made] = call->size_bytes;
    return true;
}

static inline bool trace_call_read(struct trace *trace, struct trace_place *place,
                                   struct call *call)
{
    unsigned char first = *place->next++;
    call->operation = first & TRACE_OPERATION_MASK;
    if (first > (TRACE_OPERATION_MASK | TRACE_OTHER_THREAD) || call->operation < TRACE_MALLOC ||
        call->operation > TRACE_FREE) {
        return trace_refuse(trace, "has an unknown operation");
    }
    if ((first & TRACE_OTHER_THREAD) && !trace_operand_read(trace, place, &place->thread)) {
        return false;
    }
    if (place->thread >= TRACE_MOST_THREADS) {
        return trace_refuse(trace, "is of thread %" PRIu64 ", at most %d are possible",
                            place->thread, TRACE_MOST_THREADS);
    }
    call->thread = (uint32_t)place->thread;
    trace->thread_count =
        call->thread >= trace->thread_count ? call->thread + 1 : trace->thread_count;
    uint64_t time; /* for readers of another kind */
    bool ends = call->operation == TRACE_FREE || call->operation == TRACE_REALLOC;
    return trace_operand_read(trace, place, &time) &&
           (!ends || trace_ended_read(trace, place, call)) &&
           (call->operation == TRACE_FREE || trace_made_read(trace, place, call));
}

/* Reads all records behind the magic number; false: trace->why says what is wrong. */
static inline bool trace_read(struct trace *trace, const unsigned char *records,
                              const unsigned char *end)
{
    struct trace_place place = {records, end, 0};
    while (place.next < place.end && *place.next != TRACE_END) {
        if (!trace_call_read(trace, &place, &trace->calls[trace->call_count])) {
            return false;
        }
        trace->call_count++;
    }
    return true;
}

#endif
