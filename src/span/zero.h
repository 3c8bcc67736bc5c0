/* SPDX-License-Identifier: MIT */
/* span/zero.h - large blocks that must be zero.
 *
 * Memory that was used before becomes zero by the kernel or by clearing it, whichever the program
 * will pay less for: sparse tables stay sparse, and what is filled each time is not faulted in each
 * time (docs/adr/0053-memory-that-is-used-is-cleared.md).
 *
 * Owns        nothing.
 * Invariants  all bytes of the block read as zero, also those of pages that are swapped out.
 * Threads     the one that has the span.
 * Tests       tests/unit/span/large_test.c
 */
#ifndef HAK_SPAN_ZERO_H
#define HAK_SPAN_ZERO_H

#include "span/span.h"

/* Makes `bytes` from `before` on zero, in memory that was used before. */
void hak_zero_make(struct span *span, size_t before, size_t bytes);

/* The span's block was long, began as zeros, and little of it was used: to return that now costs
 * what it would cost to make the next such block zero. But the user may wish that it stays. */
bool hak_zero_goes_back(const struct span *span);

#endif
