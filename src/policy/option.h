/* SPDX-License-Identifier: MIT */
/* policy/option.h - options that change while the program runs.
 *
 * Owns        which they are: those of HAK_POLICY_OPTION_TABLE, `foreign`, `price`, those of the
 *             profiler's rate, which count when sampling next starts, and `guard_rate` where it
 *             was not 0 at the start: otherwise no cache ever looks at it again.
 * Invariants  a value is within the range of its row; what is refused changes nothing. A price
 *             changes the options that were not set, as at start.
 * Threads     any.
 * Tests       tests/unit/policy/option_test.c, tests/unit/api/hakmem_test.c
 */
#ifndef HAK_POLICY_OPTION_H
#define HAK_POLICY_OPTION_H

#include "base/compiler.h"

enum option_verdict {
    OPTION_CHANGED,
    OPTION_UNKNOWN, /* there is none of that name */
    OPTION_FROZEN,  /* it is read at the start only */
    OPTION_WRONG,   /* the value is none of its range */
};

/* Gives an option a value, as text, and the policy the number. */
enum option_verdict hak_option_change(const char *name, const char *value);

/* mallopt's M_TRIM_THRESHOLD: as `retain`, or, negative, a `decay` of never, until this is called
 * again or one of these options is changed. A change of the price leaves it. */
void hak_option_trim_threshold(int threshold);

/* Gives the policy the numbers that the price and the options say. */
void hak_option_apply(void);

#endif
