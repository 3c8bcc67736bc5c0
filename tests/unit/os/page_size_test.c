/* SPDX-License-Identifier: MIT */
/* tests/unit/os/page_size_test.c - what differs where pages are large; CTest also runs all other
 * unit and model tests with pages of 16 and 64 KiB (HAK_FAKE_PAGE_BYTES, tests/fake_pages.c). */
#include "api/api.h"
#include "base/limits.h"
#include "check.h"
#include "conf/conf.h"
#include "os/os.h"
#include "os/os_fault.h"
#include "process/reclaim.h"
#include "span/span_heap.h"

/* Programs start hakmem before main: the page size must be there earlier. */
static size_t page_in_use(void)
{
    size_t page = hak_load_relaxed(&hak_os_fault.page_bytes);
    return page != 0 ? page : (size_t)sysconf(_SC_PAGESIZE);
}

TEST(blocks_aligned_to_pages_are_aligned_to_the_pages_in_use)
{
    size_t page = page_in_use();
    unsigned char *block = hak_valloc(100);
    CHECK_EQ(hak_os_page_bytes(), page);
    CHECK_EQ((uintptr_t)block % page, 0);
    block = hak_pvalloc(1);
    CHECK_EQ((uintptr_t)block % page, 0);
    CHECK(hak_malloc_usable_size(block) >= page);
    CHECK(hak_malloc_usable_size(hak_pvalloc(page + 1)) >= 2 * page);
}

TEST(all_sizes_are_served_cleared_grown_freed_and_purged)
{
    for (size_t bytes = 1; bytes <= 32 * HAK_MIB; bytes += 1 + bytes / 3) {
        unsigned char *block = hak_calloc(1, bytes);
        CHECK(block != NULL && block[0] == 0 && block[bytes - 1] == 0);
        memset(block, 5, bytes);
        if (bytes % 3 == 0)
            hak_free(block);
        block = hak_malloc(bytes);
        block[bytes - 1] = 6;
        block = hak_realloc(block, 2 * bytes);
        CHECK(block != NULL && block[bytes - 1] == 6);
        if (bytes % 3 == 1)
            hak_free(block);
    }
    hak_conf.number[CONF_maintenance] = MAINTENANCE_OFF;
    unsigned char *last = hak_calloc(1, 3 * HAK_MIB); /* what is older may have been purged */
    memset(last, 7, 3 * HAK_MIB);
    hak_free(last);
    CHECK(hak_reclaim_purge_all() > 0);
    CHECK(hak_span_heap_is_sound());
    CHECK(hak_malloc(1000) != NULL);
}

TEST(a_call_for_half_a_page_is_refused_by_an_abort)
{
    if (HAK_CHECK_LEVEL < 1)
        SKIP("assertions are off");
    hak_os_start();
    size_t page = hak_os_page_bytes();
    unsigned char *start = hak_os_reserve(4 * page);
    CHECK(start != NULL && hak_os_commit(start, 4 * page));
    CHECK_ABORTS(hak_os_commit(start, page + page / 2), "page_bytes");
    CHECK_ABORTS(hak_os_commit(start + page / 2, page), "page_bytes");
    CHECK_ABORTS(hak_os_purge(start + page / 2, page), "page_bytes");
    CHECK_ABORTS(hak_os_renew(start, page / 2), "page_bytes");
    CHECK_ABORTS(hak_os_release(start, page / 2), "page_bytes");
    CHECK_ABORTS(hak_os_reserve(page / 2), "page_bytes");
}
