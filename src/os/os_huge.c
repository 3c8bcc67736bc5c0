/* SPDX-License-Identifier: MIT */
#include "os/os_huge.h"

#include "os/os.h"
#include "os/os_fault.h"

#include <string.h>

#define SETTING "/sys/kernel/mm/transparent_hugepage/enabled"
/* Linux 6.8 and later: the setting for pages of 2 MiB, which may be to inherit the one above. */
#define SIZE_SETTING "/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled"
/* Before it is read: assume that returned memory might be filled again. */
static _Atomic uint32_t known = HUGE_ALWAYS;
static _Atomic bool are_known;

enum os_huge hak_os_huge_setting(const char *size_text, const char *text)
{
    if (*size_text != '\0' && strstr(size_text, "[inherit]") == NULL)
        text = size_text;
    if (strstr(text, "[always]") != NULL)
        return HUGE_ALWAYS;
    return strstr(text, "[madvise]") != NULL ? HUGE_ON_REQUEST : HUGE_NEVER;
}

void hak_os_read_huge_pages(void)
{
    char size_text[64], text[64];
    hak_os_read_text(SIZE_SETTING, size_text, sizeof size_text);
    hak_os_read_text(SETTING, text, sizeof text);
    hak_store_relaxed(&known, (uint32_t)hak_os_huge_setting(size_text, text));
    hak_store_relaxed(&are_known, true);
}

bool hak_os_huge_pages_are_known(void)
{
    return hak_load_relaxed(&are_known) ||
           (HAK_CHECK_LEVEL >= 2 && hak_load_relaxed(&hak_os_fault.huge_pages) != 0);
}

enum os_huge hak_os_huge_pages(void)
{
    uint32_t fake = HAK_CHECK_LEVEL < 2 ? 0 : hak_load_relaxed(&hak_os_fault.huge_pages);
    if (fake != 0)
        return (enum os_huge)(fake - 1);
    return (enum os_huge)hak_load_relaxed(&known);
}
