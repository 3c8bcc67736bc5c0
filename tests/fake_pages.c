/* SPDX-License-Identifier: MIT */
/* tests/fake_pages.c - linked into unit and model tests: HAK_FAKE_PAGE_BYTES in the environment
 * makes hakmem believe in pages of 16 or 64 KiB, as arm64 and ppc64 have them. */
#include "os/os_fault.h"

#include <stdlib.h>

__attribute__((constructor(101))) static void fake_pages(void)
{
    const char *bytes = getenv("HAK_FAKE_PAGE_BYTES");
    if (bytes != NULL)
        hak_store_relaxed(&hak_os_fault.page_bytes, (uint32_t)strtoul(bytes, NULL, 10));
}
