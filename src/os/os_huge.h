/* SPDX-License-Identifier: MIT */
/* os/os_huge.h - what the kernel does about huge pages.
 *
 * Owns        the system's setting, as it was read; until then HUGE_ALWAYS.
 * Invariants  as in os/os.h: errno stays, nothing is allocated.
 * Threads     any.
 * Tests       tests/unit/os/os_huge_test.c
 */
#ifndef HAK_OS_OS_HUGE_H
#define HAK_OS_OS_HUGE_H

#include "base/compiler.h"

#include <stdbool.h>

enum os_huge { HUGE_NEVER, HUGE_ON_REQUEST, HUGE_ALWAYS };

/* Reads the setting from /sys; a kernel without the file has no huge pages. */
void hak_os_read_huge_pages(void);

/* Whether processes get huge pages, and whether that was read. Tests set it through
 * os/os_fault.h. */
enum os_huge hak_os_huge_pages(void);
bool hak_os_huge_pages_are_known(void);

/* What the two files of /sys say together: the one for pages of 2 MiB, which is empty where the
 * kernel has none, and the one for all sizes that inherit it. */
enum os_huge hak_os_huge_setting(const char *size_text, const char *text);

#endif
