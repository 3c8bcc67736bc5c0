/* SPDX-License-Identifier: MIT */
/* tests/unit/asan.h - whether AddressSanitizer has its hands in malloc, mlock and address space.
 *
 * Owns        UNDER_ASAN, 1 or 0.
 * Invariants  only tests of what the sanitizer itself changes ask for it.
 * Threads     any.
 * Tests       tests/unit/os/os_test.c
 */
#ifndef TESTS_UNIT_ASAN_H
#define TESTS_UNIT_ASAN_H

#if defined(__SANITIZE_ADDRESS__)
#define UNDER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UNDER_ASAN 1
#endif
#endif
#ifndef UNDER_ASAN
#define UNDER_ASAN 0
#endif

#endif
