/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "os/os_resident.h"

#include "base/bits.h"
#include "os/file_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ioctl.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

/* <linux/fs.h> of 6.7, for older headers. */
struct region {
    uint64_t start;
    uint64_t end;
    uint64_t categories;
};
struct scan {
    uint64_t bytes;
    uint64_t flags;
    uint64_t start;
    uint64_t end;
    uint64_t walk_end;
    uint64_t regions;
    uint64_t region_count;
    uint64_t pages_most;
    uint64_t inverted;
    uint64_t all_of;
    uint64_t any_of;
    uint64_t wanted;
};
#define SCAN _IOWR('f', 16, struct scan)
#define IS_PRESENT (1u << 3)
#define IS_ZERO_PAGE (1u << 5)
#define REGIONS 64

/* Documentation/admin-guide/mm/pagemap.rst */
#define ENTRY_PRESENT (1ull << 63)
#define ENTRY_EXCLUSIVE (1ull << 56)
#define ENTRIES 256

/* Finds the next regions from scan->start on; returns how many, or -1. */
static int scan_on(int fd, struct scan *scan, struct region *regions)
{
    scan->bytes = sizeof *scan;
    scan->regions = (uintptr_t)regions;
    scan->region_count = REGIONS;
    scan->inverted = IS_ZERO_PAGE;
    scan->all_of = IS_PRESENT | IS_ZERO_PAGE;
    scan->wanted = IS_PRESENT;
    int count = (int)syscall(SYS_ioctl, fd, SCAN, scan); /* musl's ioctl takes a signed request */
    scan->start = scan->walk_end;
    return count;
}

bool hak_os_resident_open(struct os_resident *resident)
{
    int saved = errno;
    resident->page_bytes = getauxval(AT_PAGESZ);
    resident->fd = hak_call_open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (resident->fd >= 0) {
        struct region regions[REGIONS];
        struct scan scan = {.start = 0, .end = resident->page_bytes};
        resident->can_scan = scan_on(resident->fd, &scan, regions) >= 0;
    }
    errno = saved;
    return resident->fd >= 0;
}

void hak_os_resident_close(const struct os_resident *resident)
{
    int saved = errno;
    hak_call_close(resident->fd);
    errno = saved;
}

static void read_entries(const struct os_resident *resident, uintptr_t start, size_t bytes,
                         unsigned char *pages)
{
    uint64_t entries[ENTRIES];
    size_t page_count = bytes / resident->page_bytes;
    for (size_t at = 0; at < page_count;) {
        size_t wished = hak_least(page_count - at, ENTRIES) * sizeof *entries;
        off_t offset = (off_t)((start / resident->page_bytes + at) * sizeof *entries);
        ssize_t got = hak_call_pread(resident->fd, entries, wished, offset);
        if (got < (ssize_t)sizeof *entries)
            return;
        for (size_t i = 0; i < (size_t)got / sizeof *entries; i++)
            pages[at++] = (entries[i] & ENTRY_PRESENT) != 0 && (entries[i] & ENTRY_EXCLUSIVE) != 0;
    }
}

static void read_scanning(const struct os_resident *resident, uintptr_t start, size_t bytes,
                          unsigned char *pages)
{
    struct region regions[REGIONS];
    struct scan scan = {.start = start, .end = start + bytes};
    while (scan.start < scan.end) {
        int count = scan_on(resident->fd, &scan, regions);
        for (int i = 0; i < count; i++)
            memset(pages + (regions[i].start - start) / resident->page_bytes, 1,
                   (regions[i].end - regions[i].start) / resident->page_bytes);
        if (count < 0)
            return;
    }
}

void hak_os_resident_read(const struct os_resident *resident, uintptr_t start, size_t bytes,
                          unsigned char *pages)
{
    int saved = errno;
    memset(pages, 0, bytes / resident->page_bytes);
    if (resident->can_scan)
        read_scanning(resident, start, bytes, pages);
    else
        read_entries(resident, start, bytes, pages);
    errno = saved;
}
