/* SPDX-License-Identifier: MIT */
/* tests/unit/os/os_huge_test.c - what the kernel says about huge pages. */
#define _GNU_SOURCE
#include "base/bits.h"
#include "base/limits.h"
#include "check.h"
#include "faults.h"
#include "os/os.h"
#include "os/os_fault.h"
#include "os/os_huge.h"

#include <errno.h>
#include <sys/mman.h>

#define HUGE_BYTES (2 * HAK_MIB)

TEST(the_setting_of_the_size_decides_unless_it_inherits)
{
    static const struct {
        const char *size_text;
        const char *text;
        enum os_huge result;
    } rows[] = {
        {"", "", HUGE_NEVER},
        {"", "[always] madvise never\n", HUGE_ALWAYS},
        {"", "always [madvise] never\n", HUGE_ON_REQUEST},
        {"", "always madvise [never]\n", HUGE_NEVER},
        {"always [inherit] madvise never\n", "[always] madvise never\n", HUGE_ALWAYS},
        {"always [inherit] madvise never\n", "always madvise [never]\n", HUGE_NEVER},
        {"[always] inherit madvise never\n", "always madvise [never]\n", HUGE_ALWAYS},
        {"always inherit [madvise] never\n", "[always] madvise never\n", HUGE_ON_REQUEST},
        {"always inherit madvise [never]\n", "[always] madvise never\n", HUGE_NEVER},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        CHECK_EQ(hak_os_huge_setting(rows[i].size_text, rows[i].text), rows[i].result);
}

#define SETTINGS "/sys/kernel/mm/transparent_hugepage/"

TEST(the_setting_is_the_systems_unless_it_is_faked)
{
    char size_text[64], text[64];
    hak_os_read_text(SETTINGS "hugepages-2048kB/enabled", size_text, sizeof size_text);
    hak_os_read_text(SETTINGS "enabled", text, sizeof text);
    CHECK_EQ(hak_os_huge_pages(), HUGE_ALWAYS); /* the worst, as long as nobody has looked */
    errno = 77;
    hak_os_read_huge_pages();
    CHECK_EQ(hak_os_huge_pages(), hak_os_huge_setting(size_text, text));
    CHECK_EQ(errno, 77);
    if (HAK_CHECK_LEVEL < 2)
        return;
    for (uint32_t setting = HUGE_NEVER; setting <= HUGE_ALWAYS; setting++) {
        hak_store_relaxed(&hak_os_fault.huge_pages, setting + 1);
        CHECK_EQ((uint32_t)hak_os_huge_pages(), setting);
    }
}

TEST(advice_that_the_kernel_refuses_is_known_to_be_refused)
{
    need_faults();
    hak_os_start();
    char *start = hak_os_reserve(HUGE_BYTES);
    hak_os_fault_every(1);
    CHECK(!hak_os_wish_huge_pages(start, HUGE_BYTES));
    CHECK(!hak_os_refuse_huge_pages(start, HUGE_BYTES));
}
