/* SPDX-License-Identifier: MIT */
/* tests/unit/api/aligned_test.c - the aligned family, each rule with its source. */
#include "api/api.h"
#include "base/limits.h"
#include "check.h"
#include "conf/conf.h"
#include "process/reclaim.h"
#include "slab/size_class.h"
#include "span/large.h"
#include "span/span_heap.h"
#include "unit/lent.h"
#include "unit/resident.h"

#include <errno.h>

static bool is_aligned(const void *block, size_t alignment)
{
    return block != NULL && (uintptr_t)block % alignment == 0;
}

TEST(every_alignment_up_to_1_gib_holds_for_every_size)
{
    for (size_t alignment = 1; alignment <= HAK_GIB; alignment *= 2)
        for (size_t bytes = 0; bytes <= 2 * HAK_MIB; bytes = bytes * 5 + 1) {
            unsigned char *block = hak_aligned_alloc(alignment, bytes);
            CHECK(is_aligned(block, alignment));
            CHECK(hak_malloc_usable_size(block) >= bytes);
            memset(block, 1, bytes);
            unsigned char *other = hak_aligned_alloc(alignment, bytes);
            CHECK(is_aligned(other, alignment));
            CHECK(other != block);
            hak_free(block);
            hak_free(other);
        }
}

/* A bin of blocks above 4 KiB gets its slots after some misses. */
TEST(blocks_from_bins_are_aligned)
{
    enum { COUNT = 12 };
    unsigned char *blocks[COUNT];
    for (size_t bytes = 1000; bytes <= 128 * HAK_KIB; bytes += bytes / 3)
        for (size_t alignment = 64; alignment <= 64 * HAK_KIB; alignment *= 2)
            for (int turn = 0; turn < 3; turn++) {
                for (int i = 0; i < COUNT; i++) {
                    CHECK(hak_posix_memalign((void **)&blocks[i], alignment, bytes) == 0);
                    CHECK(is_aligned(blocks[i], alignment));
                    CHECK(hak_malloc_usable_size(blocks[i]) >= bytes);
                    memset(blocks[i], i, bytes);
                }
                for (int i = 0; i < COUNT; i++) {
                    CHECK(blocks[i][0] == i && blocks[i][bytes - 1] == i);
                    hak_free(blocks[i]);
                }
            }
}

/* Blocks come from their bins, and where those are empty the slow way. */
TEST(every_way_leads_to_the_smallest_class_that_is_aligned)
{
    for (size_t alignment = 8; alignment <= 64 * HAK_KIB; alignment *= 2)
        for (size_t bytes = 1; bytes <= 128 * HAK_KIB; bytes += bytes / 37 + 1) {
            uint32_t class_index = hak_class_of_aligned(bytes, alignment);
            for (int turn = 0; turn < 2; turn++) {
                void *block = NULL;
                CHECK_EQ(hak_posix_memalign(&block, alignment, bytes), 0);
                CHECK(is_aligned(block, alignment));
                size_t usable = hak_malloc_usable_size(block);
                CHECK(usable == hak_size_classes[class_index].block_bytes ||
                      (alignment <= 16 && may_be_so_long(bytes, usable)));
                hak_free(block);
            }
        }
}

TEST(a_huge_alignment_costs_no_memory_but_what_is_used)
{
    static const size_t sizes[] = {1, 5000, 300000, 3 * HAK_MIB};
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    refuse_huge_pages();
    hak_free(hak_malloc(1000));
    for (size_t alignment = HAK_MIB; alignment <= HAK_GIB; alignment *= 2)
        for (int i = 0; i < 4; i++) {
            hak_reclaim_trim(0);
            size_t before = window_resident_bytes();
            unsigned char *block = hak_aligned_alloc(alignment, sizes[i]);
            CHECK(is_aligned(block, alignment));
            CHECK(window_resident_bytes() <= before);
            memset(block, 1, sizes[i]);
            CHECK(window_resident_bytes() <= before + hak_align_up(sizes[i], page));
            CHECK(hak_large_live_bytes() <= hak_align_up(sizes[i], HAK_GRANULE_BYTES));
            hak_free(block);
            hak_reclaim_trim(0);
            CHECK(window_resident_bytes() <= before);
        }
}

TEST(huge_alignments_that_come_and_go_use_the_same_addresses)
{
    hak_conf.number[CONF_maintenance] = MAINTENANCE_OFF; /* a span that is purged is not found */
    CHECK(is_aligned(hak_aligned_alloc(HAK_GIB, 100), HAK_GIB));
    size_t committed = hak_load_relaxed(&hak_region.committed_bytes);
    for (size_t i = 0; i < 500; i++) {
        unsigned char *block = hak_aligned_alloc(HAK_GIB, 3 * HAK_MIB - i * 5000);
        CHECK(is_aligned(block, HAK_GIB));
        *block = 1;
        hak_free(block);
    }
    /* one each in the heap's span cache and the span heap, and the first one */
    CHECK(hak_load_relaxed(&hak_region.committed_bytes) <= committed + 3 * HAK_GIB);
    CHECK(hak_span_heap_is_sound());
}

TEST(aligned_blocks_of_no_bytes_are_blocks)
{
    for (size_t alignment = 8; alignment <= 4 * HAK_MIB; alignment *= 2) {
        void *first = hak_aligned_alloc(alignment, 0), *second = hak_aligned_alloc(alignment, 0);
        CHECK(is_aligned(first, alignment) && is_aligned(second, alignment));
        CHECK(first != second);
    }
}

/* glibc manual, memalign: an alignment that is no power of two is rounded up. */
TEST(memalign_rounds_the_alignment_up)
{
    CHECK(is_aligned(hak_memalign(0, 10), 1));
    CHECK(is_aligned(hak_memalign(1, 10), 1));
    CHECK(is_aligned(hak_memalign(24, 10), 32));
    CHECK(is_aligned(hak_memalign(100, 1000), 128));
    CHECK(is_aligned(hak_memalign(4097, 10), 8192));
    CHECK(is_aligned(hak_memalign(4096, 10), 4096));
}

TEST(memalign_refuses_alignments_that_no_power_of_two_reaches)
{
    errno = 0;
    CHECK_EQ(hak_memalign(SIZE_MAX, 10), NULL);
    CHECK_EQ(errno, EINVAL);
    errno = 0;
    CHECK_EQ(hak_memalign((size_t)1 << 62, 10), NULL);
    CHECK_EQ(errno, ENOMEM);
}

/* glibc manual: valloc is aligned to pages, pvalloc is also rounded up to them. */
TEST(valloc_and_pvalloc_give_pages)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t bytes = 0; bytes < 200000; bytes = bytes * 3 + 1) {
        void *block = hak_valloc(bytes);
        CHECK(is_aligned(block, page));
        CHECK(hak_malloc_usable_size(block) >= bytes);
        block = hak_pvalloc(bytes);
        CHECK(is_aligned(block, page));
        CHECK(hak_malloc_usable_size(block) >= (bytes / page + (bytes % page != 0)) * page);
        CHECK(hak_malloc_usable_size(block) >= page);
    }
    errno = 0;
    CHECK_EQ(hak_pvalloc(SIZE_MAX - 10), NULL);
    CHECK_EQ(errno, ENOMEM);
    errno = 0;
    CHECK_EQ(hak_valloc(SIZE_MAX - 10), NULL);
    CHECK_EQ(errno, ENOMEM);
}
