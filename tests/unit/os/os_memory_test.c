/* SPDX-License-Identifier: MIT */
/* tests/unit/os/os_memory_test.c - resident memory as the kernel counts it. */
#define _GNU_SOURCE
#include "base/bits.h"
#include "base/limits.h"
#include "check.h"
#include "os/os.h"
#include "os/os_huge.h"
#include "os/os_memory.h"

#include <errno.h>
#include <sys/mman.h>

#define HUGE_BYTES (2 * HAK_MIB)

static struct os_memory read_range(const char *start, size_t bytes)
{
    struct os_range range = {(uintptr_t)start, (uintptr_t)start + bytes};
    return hak_os_memory_read(&range, 1);
}

static uint64_t huge_bytes(const char *start, size_t bytes)
{
    return read_range(start, bytes).huge_bytes;
}

TEST(huge_pages_of_a_range_are_counted_and_no_others)
{
    hak_os_start();
    hak_os_read_huge_pages();
    if (hak_os_page_bytes() > 4096 || hak_os_huge_pages() == HUGE_NEVER)
        SKIP("no huge pages here");
    char *all = hak_os_reserve(6 * HUGE_BYTES);
    CHECK(all != NULL);
    char *start = (char *)hak_align_up((uintptr_t)all, HUGE_BYTES);
    CHECK(hak_os_commit(start, 4 * HUGE_BYTES));
    if (!hak_os_wish_huge_pages(start, HUGE_BYTES))
        SKIP("huge pages are refused");
    CHECK(hak_os_refuse_huge_pages(start + 2 * HUGE_BYTES, HUGE_BYTES));
    memset(start, 1, HUGE_BYTES);
    memset(start + 2 * HUGE_BYTES, 1, HUGE_BYTES);
    errno = 77;
    if (huge_bytes(start, HUGE_BYTES) == 0)
        SKIP("the kernel had no huge page left");
    CHECK_EQ(huge_bytes(start, HUGE_BYTES), HUGE_BYTES);
    CHECK_EQ(huge_bytes(start, 4 * HUGE_BYTES), HUGE_BYTES);
    CHECK_EQ(huge_bytes(start + 2 * HUGE_BYTES, HUGE_BYTES), 0);
    CHECK_EQ(errno, 77);
}

TEST(what_is_touched_is_resident_and_what_was_is_in_the_peak)
{
    if (is_emulated())
        SKIP("qemu-user shows no resident bytes");
    size_t bytes = 64 * HAK_MIB;
    char *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *fence = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(start != MAP_FAILED && fence != MAP_FAILED);
    CHECK_EQ(madvise(start, bytes, MADV_NOHUGEPAGE) == 0 || errno == EINVAL, 1);
    struct os_memory before = read_range(start, bytes);
    CHECK_EQ(before.own_bytes, 0);
    CHECK(before.resident_bytes > 0 && before.peak_bytes >= before.resident_bytes);
    memset(start, 1, bytes / 2);
    errno = 77;
    struct os_memory touched = read_range(start, bytes);
    CHECK_EQ(errno, 77);
    CHECK_EQ(touched.own_bytes, bytes / 2);
    CHECK(touched.resident_bytes >= before.resident_bytes + bytes / 2);
    CHECK_EQ(read_range(fence, bytes).own_bytes, 0);
    CHECK_EQ(munmap(start, bytes), 0);
    struct os_memory after = read_range(start, bytes);
    CHECK_EQ(after.own_bytes, 0);
    CHECK(after.resident_bytes < touched.resident_bytes - bytes / 4);
    CHECK(after.peak_bytes >= touched.resident_bytes - HAK_MIB);
}
