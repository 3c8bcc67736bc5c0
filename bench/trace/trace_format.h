/* SPDX-License-Identifier: MIT */
/* bench/trace/trace_format.h - a program's calls of malloc and free in a file.
 *
 * Owns        the format, version 1.
 * Invariants  a record that names a block comes after the one that made it; a block ends once.
 * Threads     plain constants and functions without state.
 * Tests       tests/tools/test_trace.py
 *
 * A file is the 8 bytes of TRACE_MAGIC and then records, to its end or to a zero byte (a program
 * that was killed leaves zeros behind its last record). A record is
 *
 *   one byte    bits 0-2 the operation, bit 3 set if the thread is another than before
 *   [thread]    number of the thread, from 0 in order of first calls; only if bit 3 is set
 *   time        microseconds since the record before
 *   operands    malloc: size    calloc: size    aligned: size, log2 of the alignment
 *               realloc: block, size            free: block
 *
 * All but the first byte are numbers of 7 bits a byte, lowest first, bit 7 set if more follow.
 * malloc, calloc, aligned and realloc make a block; blocks are numbered from 1 in the order of
 * records. An operand `block` is the number of the last block made less its own, plus 1; 0 is NULL
 * (for realloc only). Calls that failed are not recorded, nor blocks that are older than the
 * record; realloc to 0 bytes is a free.
 */
#ifndef BENCH_TRACE_TRACE_FORMAT_H
#define BENCH_TRACE_TRACE_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#define TRACE_MAGIC "mtrace1\n"
#define TRACE_MAGIC_BYTES 8u
#define TRACE_OPERATION_MASK 7u
#define TRACE_OTHER_THREAD 8u
#define TRACE_RECORD_MOST_BYTES 41u

enum trace_operation {
    TRACE_END,
    TRACE_MALLOC,
    TRACE_CALLOC,
    TRACE_ALIGNED,
    TRACE_REALLOC,
    TRACE_FREE
};

/* Writes a number at `place`; returns where the next goes. */
static inline unsigned char *trace_number_write(unsigned char *place, uint64_t number)
{
    while (number >= 0x80) {
        *place++ = (unsigned char)(number | 0x80);
        number >>= 7;
    }
    *place++ = (unsigned char)number;
    return place;
}

/* Reads a number; returns what follows it, NULL if it does not end before `end` or in 64 bits. */
static inline const unsigned char *trace_number_read(const unsigned char *place,
                                                     const unsigned char *end, uint64_t *number)
{
    *number = 0;
    for (unsigned shift = 0; place < end && shift < 63; shift += 7) {
        *number |= (uint64_t)(*place & 0x7F) << shift;
        if (!(*place++ & 0x80)) {
            return place;
        }
    }
    return NULL;
}

#endif
