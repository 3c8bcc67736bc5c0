/* SPDX-License-Identifier: MIT */
/* tests/unit/os/os_resident_test.c - pages in memory are told from those that are not. */
#include "os/os_resident.h"

#include "check.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#define PAGES 1000

static unsigned char pages[PAGES];

static size_t count_pages(const struct os_resident *resident, char *start)
{
    size_t count = 0;
    memset(pages, 9, sizeof pages);
    hak_os_resident_read(resident, (uintptr_t)start, PAGES * resident->page_bytes, pages);
    for (int i = 0; i < PAGES; i++) {
        CHECK(pages[i] <= 1);
        count += pages[i];
    }
    return count;
}

static char *map(size_t page_bytes)
{
    int saved = errno;
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    errno = saved;
    char *start =
        mmap(NULL, PAGES * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(start != MAP_FAILED);
    return start;
}

static void check_counts(struct os_resident *resident)
{
    size_t page = resident->page_bytes;
    char *start = map(page);
    CHECK_EQ(count_pages(resident, start), 0);
    for (int i = 0; i < PAGES; i += 3)
        start[(size_t)i * page] = 1;
    CHECK_EQ(count_pages(resident, start), (PAGES + 2) / 3);
    CHECK_EQ(pages[0] + pages[1] + pages[999], 2);
    CHECK_EQ(*(volatile char *)(start + page), 0); /* the page of zeros */
    CHECK_EQ(count_pages(resident, start), (PAGES + 2) / 3);
    CHECK_EQ(madvise(start, 3 * page, MADV_DONTNEED), 0);
    CHECK_EQ(count_pages(resident, start), (PAGES + 2) / 3 - 1);
    munmap(start, PAGES * page);
}

TEST(pages_that_were_written_are_in_memory_and_those_only_read_are_not)
{
    struct os_resident resident;
    errno = 55;
    CHECK(hak_os_resident_open(&resident));
    check_counts(&resident);
    hak_os_resident_close(&resident);
    CHECK_EQ(errno, 55);
}

TEST(an_older_kernel_s_table_says_the_same)
{
    struct os_resident resident;
    CHECK(hak_os_resident_open(&resident));
    resident.can_scan = false;
    check_counts(&resident);
    hak_os_resident_close(&resident);
}

TEST(unmapped_memory_is_not_resident)
{
    struct os_resident resident;
    CHECK(hak_os_resident_open(&resident));
    char *start = map(resident.page_bytes);
    start[0] = 1;
    munmap(start, PAGES * resident.page_bytes);
    CHECK_EQ(count_pages(&resident, start), 0);
    hak_os_resident_close(&resident);
}
