/* SPDX-License-Identifier: MIT */
/* tests/unit/span/take_large.h - a large block past the heaps and their caches of spans.
 *
 * Owns        nothing.
 * Invariants  the process has been started.
 * Threads     any.
 * Tests       those that include it.
 */
#ifndef TESTS_UNIT_SPAN_TAKE_LARGE_H
#define TESTS_UNIT_SPAN_TAKE_LARGE_H

#include "span/large.h"

static inline void *take_large(size_t bytes, size_t alignment, enum large_content content)
{
    struct large_request request = {
        .bytes = bytes, .alignment = alignment, .content = content, .room = LARGE_ROOMY};
    return hak_large_take_in(NULL, &request);
}

#endif
