/* SPDX-License-Identifier: MIT */
/* base/check.h - checks at four prices.
 *
 * Owns        hak_static_assert (compiler.h), hak_require (always on), hak_assert (level 1, O(1)),
 *             hak_audit (level 2, whole structures).
 * Invariants  a check that is off is still compiled; a check has no side effect.
 * Tests       tests/unit/base/check_test.c
 */
#ifndef HAK_BASE_CHECK_H
#define HAK_BASE_CHECK_H

#include "base/compiler.h"

/* Writes one line `hakmem: <what>` to fd 2 and aborts. Defined in os/, the only room with a
 * write. */
_Noreturn void hak_panic(const char *what);

#define HAK_CHECK_IF(enabled, condition, message)                                                  \
    do {                                                                                           \
        if ((enabled) && HAK_UNLIKELY(!(condition)))                                               \
            hak_panic(message);                                                                    \
    } while (0)

#define HAK_CHECK_TEXT_(line) #line
#define HAK_CHECK_TEXT(line) HAK_CHECK_TEXT_(line)

#define hak_require(condition, message) HAK_CHECK_IF(1, condition, message)
#define hak_assert(condition)                                                                      \
    HAK_CHECK_IF(HAK_CHECK_LEVEL >= 1, condition,                                                  \
                 "internal check failed: " #condition " (" __FILE__                                \
                 ":" HAK_CHECK_TEXT(__LINE__) ")")
#define hak_audit(condition)                                                                       \
    HAK_CHECK_IF(HAK_CHECK_LEVEL >= 2, condition,                                                  \
                 "audit failed: " #condition " (" __FILE__ ":" HAK_CHECK_TEXT(__LINE__) ")")

#endif
