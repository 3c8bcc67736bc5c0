/* SPDX-License-Identifier: MIT */
/* tests/unit/api/bad_size_test.c - sizes and alignments that no block can have, at each entry. */
#include "api/api.h"
#include "base/limits.h"
#include "check.h"
#include "region/region.h"
#include "span/large.h"
#include "span/span_heap.h"

#include <errno.h>

#define REFUSED(call)                                                                              \
    do {                                                                                           \
        errno = 0;                                                                                 \
        CHECK_EQ(call, NULL);                                                                      \
        CHECK_EQ(errno, ENOMEM);                                                                   \
    } while (0)

static void check_refused_everywhere(size_t bytes)
{
    static char untouched;
    unsigned char *small = hak_malloc(100), *large = hak_malloc(HAK_MIB);
    memset(small, 3, 100);
    memset(large, 4, HAK_MIB);
    size_t live_bytes = hak_large_live_bytes();
    REFUSED(hak_malloc(bytes));
    REFUSED(hak_calloc(1, bytes));
    REFUSED(hak_calloc(bytes, 1));
    REFUSED(hak_calloc(bytes / 2 + 1, 2));
    REFUSED(hak_realloc(NULL, bytes));
    REFUSED(hak_realloc(small, bytes));
    REFUSED(hak_realloc(large, bytes));
    REFUSED(hak_reallocarray(large, bytes / 3 + 1, 3));
    REFUSED(hak_valloc(bytes));
    REFUSED(hak_pvalloc(bytes));
    for (size_t alignment = 1; alignment <= HAK_GIB; alignment *= 2) {
        REFUSED(hak_aligned_alloc(alignment, bytes));
        REFUSED(hak_memalign(alignment, bytes));
        void *block = &untouched;
        if (alignment >= sizeof(void *))
            CHECK_EQ(hak_posix_memalign(&block, alignment, bytes), ENOMEM);
        CHECK_EQ(block, &untouched);
    }
    CHECK_BYTES(small, 100, 3);
    CHECK_EQ(large[HAK_MIB - 1], 4);
    CHECK_EQ(hak_large_live_bytes(), live_bytes);
    REFUSED(hak_reallocf(small, bytes)); /* frees */
    hak_free(large);
    CHECK_EQ(hak_large_live_bytes(), 0);
    CHECK(hak_span_heap_is_sound());
}

TEST(sizes_near_ptrdiff_max_are_refused_by_every_entry)
{
    static const size_t below[] = {0, 1, 15, 4095, 4096, 65536, 2 * HAK_MIB};
    for (int i = 0; i < 7; i++) {
        check_refused_everywhere((size_t)PTRDIFF_MAX - below[i]);
        check_refused_everywhere((size_t)PTRDIFF_MAX + 1 + below[i]);
    }
}

TEST(sizes_near_size_max_are_refused_by_every_entry)
{
    static const size_t below[] = {0, 1, 15, 64, 4095, 4096, 65535, 65536, 2 * HAK_MIB};
    for (int i = 0; i < 9; i++)
        check_refused_everywhere(SIZE_MAX - below[i]);
}

TEST(sizes_around_the_whole_window_are_refused_by_every_entry)
{
    hak_free(hak_malloc(1)); /* so much of it is taken */
    check_refused_everywhere(hak_region.window_bytes + 1);
    check_refused_everywhere(hak_region.window_bytes);
    check_refused_everywhere(hak_region.window_bytes - 1);
}

/* A block, or a refusal: each alignment a size_t can hold, with sizes of each kind. */
TEST(every_power_of_two_is_an_alignment_or_enomem)
{
    static const size_t sizes[] = {0, 1, 5000, HAK_MIB, 3 * HAK_GIB, PTRDIFF_MAX, SIZE_MAX};
    unsigned served = 0;
    for (size_t alignment = 1; alignment != 0; alignment *= 2)
        for (int i = 0; i < 7; i++) {
            errno = 0;
            unsigned char *block = hak_aligned_alloc(alignment, sizes[i]);
            CHECK(block != NULL || errno == ENOMEM);
            CHECK_EQ((uintptr_t)block % alignment, 0);
            served += block != NULL;
            void *other = NULL;
            int error = hak_posix_memalign(&other, alignment, sizes[i]);
            CHECK_EQ(error, alignment < sizeof(void *) ? EINVAL : other == NULL ? ENOMEM : 0);
            CHECK_EQ((uintptr_t)other % alignment, 0);
            hak_free(block);
            hak_free(other);
        }
    CHECK(served > 31 * 4);
    CHECK_EQ(hak_large_live_bytes(), 0);
    CHECK(hak_span_heap_is_sound());
}

TEST(no_other_number_is_an_alignment)
{
    static const size_t wrong[] = {0, 3, 6, 7, 9, 1000, 65535, HAK_MIB + 8, HAK_GIB - 1, SIZE_MAX};
    static char untouched;
    for (int i = 0; i < 10; i++)
        for (size_t bytes = 1; bytes <= HAK_GIB; bytes *= 1000) {
            void *block = &untouched;
            CHECK_EQ(hak_posix_memalign(&block, wrong[i], bytes), EINVAL);
            CHECK_EQ(block, &untouched);
            errno = 0;
            CHECK_EQ(hak_aligned_alloc(wrong[i], bytes), NULL);
            CHECK_EQ(errno, EINVAL);
        }
    CHECK_EQ(hak_large_live_bytes(), 0);
}
