/* SPDX-License-Identifier: MIT */
/* tests/fake_pages.c - linked into unit and model tests: HAK_FAKE_PAGE_BYTES in the environment
 * makes hakmem believe in pages of 16 or 64 KiB, as arm64 and ppc64 have them. No block is guarded
 * by chance where tests know to the byte what lies where. */
#include "os/os_fault.h"

#include <stdlib.h>

__attribute__((constructor(101))) static void fake_pages(void)
{
    const char *bytes = getenv("HAK_FAKE_PAGE_BYTES");
    setenv("HAKMEM_GUARD_RATE", "0", 0);
    if (bytes != NULL)
        hak_store_relaxed(&hak_os_fault.page_bytes, (uint32_t)strtoul(bytes, NULL, 10));
}
