/* SPDX-License-Identifier: MIT */
/* tests/preload/surface.c - every allocation function that C programs may call is hakmem's and does
 * what its standard or manual says. If this fails, some programs get numbers of another allocator's
 * empty heap, or blocks that free does not know. Also linked statically, by
 * surface_static_preload.sh. */
#include "surface.h"

#include <malloc.h>
#include <stddef.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* mallinfo */

extern int __libc_mallopt(int, int);
extern struct mallinfo __libc_mallinfo(void);
extern size_t malloc_good_size(size_t);

static const size_t sizes[] = {0,    1,     8,     9,      16,     100,     1000,
                               4096, 30000, 65536, 100000, 200000, 1 << 20, 5 << 20};
#define SIZES (sizeof sizes / sizeof *sizes)

static void check_owner(const char *name, void *function)
{
#ifdef LINKED_STATICALLY
    CHECK(name != NULL && function != NULL);
#else
    Dl_info library;
    CHECK(dladdr(function, &library) != 0);
    if (strstr(library.dli_fname, "libc.so") != NULL)
        CHECK_FAILED("%s is libc's", name);
    CHECK(strstr(library.dli_fname, "libc.so") == NULL);
#endif
}
#define CHECK_OWNER(name) check_owner(#name, (void *)name)

/* ld.so(8): the first library that has a name serves it. */
TEST(every_function_is_hakmems)
{
    CHECK_OWNER(malloc);
    CHECK_OWNER(calloc);
    CHECK_OWNER(realloc);
    CHECK_OWNER(reallocarray);
    CHECK_OWNER(free);
    CHECK_OWNER(free_sized);
    CHECK_OWNER(free_aligned_sized);
    CHECK_OWNER(cfree);
    CHECK_OWNER(aligned_alloc);
    CHECK_OWNER(posix_memalign);
    CHECK_OWNER(memalign);
    CHECK_OWNER(valloc);
    CHECK_OWNER(pvalloc);
    CHECK_OWNER(malloc_usable_size);
    CHECK_OWNER(malloc_good_size);
    CHECK_OWNER(reallocf);
    CHECK_OWNER(malloc_trim);
    CHECK_OWNER(mallopt);
    CHECK_OWNER(mallinfo);
    CHECK_OWNER(mallinfo2);
    CHECK_OWNER(malloc_info);
    CHECK_OWNER(malloc_stats);
    CHECK_OWNER(__libc_mallinfo);
    CHECK_OWNER(__libc_malloc);
    CHECK_OWNER(__libc_calloc);
    CHECK_OWNER(__libc_realloc);
    CHECK_OWNER(__libc_free);
    CHECK_OWNER(__libc_memalign);
    CHECK_OWNER(__libc_valloc);
    CHECK_OWNER(__libc_pvalloc);
    CHECK_OWNER(__posix_memalign);
    CHECK_OWNER(__libc_mallopt);
}

/* POSIX, malloc: a pointer that may be passed to free, here unique as glibc's. */
TEST(malloc_of_0_bytes_is_unique_and_not_null)
{
    char *first = malloc(hidden_bytes(0)), *second = malloc(hidden_bytes(0));
    CHECK(first != NULL && second != NULL && first != second);
    CHECK_EQ(malloc_usable_size(first), 0);
    free(first);
    free(second);
    first = calloc(hidden_bytes(0), 8);
    second = calloc(8, hidden_bytes(0));
    CHECK(first != NULL && second != NULL && first != second);
    free(first);
    free(second);
    first = aligned_alloc(64, hidden_bytes(0));
    CHECK(first != NULL && (uintptr_t)first % 64 == 0);
    free(first);
    CHECK_EQ(posix_memalign((void **)&first, 64, hidden_bytes(0)), 0);
    CHECK(first != NULL);
    free(first);
}

/* C17 7.22.3.5 leaves it open; glibc manual: realloc(NULL, n) is malloc(n), realloc(p, 0) frees and
 * returns NULL. */
TEST(realloc_of_null_allocates_and_to_0_bytes_frees)
{
    for (unsigned i = 0; i < SIZES; i++) {
        void *block = realloc(NULL, hidden_bytes(sizes[i]));
        CHECK(block != NULL);
        CHECK(malloc_usable_size(block) >= sizes[i]);
        CHECK(realloc(block, hidden_bytes(0)) == NULL);
    }
    CHECK(reallocarray(malloc(50), 3, hidden_bytes(0)) == NULL);
    void *block = reallocarray(NULL, hidden_bytes(0), 3);
    CHECK(block != NULL);
    free(block);
}

/* C23 7.24.3: "suitably aligned so that it may be assigned to a pointer to any type of object with
 * a fundamental alignment requirement and size less than or equal to the size requested". */
TEST(plain_blocks_are_aligned_for_all_that_fits_into_them)
{
    for (size_t bytes = 0; bytes < 5 << 20; bytes += bytes / 16 + 1) {
        size_t least = bytes > 8 ? _Alignof(max_align_t) : 8;
        void *blocks[] = {malloc(bytes), calloc(1, bytes), realloc(malloc(1), bytes + 1),
                          reallocarray(NULL, 1, bytes), __libc_malloc(bytes)};
        for (unsigned i = 0; i < sizeof blocks / sizeof *blocks; i++) {
            CHECK(blocks[i] != NULL && (uintptr_t)blocks[i] % least == 0);
            free(blocks[i]);
        }
    }
}

/* C23 7.24.3.1, POSIX.1-2024 (posix_memalign), glibc manual (Aligned Memory Blocks). */
TEST(alignments_hold_for_every_function_and_size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t alignment = sizeof(void *); alignment <= 1 << 21; alignment *= 2)
        for (unsigned i = 0; i < SIZES; i++) {
            void *blocks[4] = {aligned_alloc(alignment, sizes[i]), memalign(alignment, sizes[i]),
                               __libc_memalign(alignment, sizes[i]), NULL};
            CHECK_EQ(posix_memalign(&blocks[3], alignment, sizes[i]), 0);
            for (unsigned j = 0; j < 4; j++) {
                CHECK(blocks[j] != NULL && (uintptr_t)blocks[j] % alignment == 0);
                fill(blocks[j], sizes[i], j);
            }
            for (unsigned j = 0; j < 4; j++)
                CHECK(is_filled(blocks[j], sizes[i], j));
            free_aligned_sized(blocks[0], alignment, sizes[i]);
            free(blocks[1]);
            __libc_free(blocks[2]);
            cfree(blocks[3]);
        }
    /* valloc(3), pvalloc(3): pages, and for pvalloc whole ones. */
    for (unsigned i = 0; i < SIZES; i++) {
        void *plain = valloc(sizes[i]), *whole = pvalloc(sizes[i]);
        CHECK((uintptr_t)plain % page == 0 && (uintptr_t)whole % page == 0);
        CHECK(malloc_usable_size(whole) >= (sizes[i] + page - 1) / page * page);
        free(plain);
        free(whole);
        plain = __libc_valloc(sizes[i]);
        whole = __libc_pvalloc(sizes[i]);
        CHECK((uintptr_t)plain % page == 0 && (uintptr_t)whole % page == 0);
        free(plain);
        free(whole);
    }
}

/* C23 7.24.3.4 and 7.24.3.5: NULL does nothing; a wrong size is undefined, here it is not looked
 * at. */
TEST(sized_frees_free_whatever_size_they_are_told)
{
    free_sized(NULL, 100);
    free_aligned_sized(NULL, 64, 100);
    for (unsigned round = 0; round < 1000; round++) {
        void *block = malloc(1 << 20), *wide = aligned_alloc(256, 1 << 20);
        fill(block, 1 << 20, round);
        CHECK(wide != NULL);
        errno = UNTOUCHED;
        free_sized(block, round % 2 ? 1 << 20 : 3);
        free_aligned_sized(wide, 256, round % 2 ? 1 << 20 : 3);
        CHECK_EQ(errno, UNTOUCHED);
    }
}

/* The names under which glibc's own functions are known take and give the same blocks. */
TEST(libc_names_and_plain_names_may_be_mixed)
{
    for (unsigned i = 0; i < SIZES; i++) {
        void *blocks[4] = {__libc_malloc(sizes[i]), __libc_calloc(1, sizes[i]), malloc(sizes[i]),
                           NULL};
        CHECK_EQ(__posix_memalign(&blocks[3], 64, sizes[i]), 0);
        CHECK(is_zero(blocks[1], sizes[i]));
        for (unsigned j = 0; j < 4; j++)
            CHECK(malloc_usable_size(blocks[j]) >= sizes[i]);
        blocks[2] = __libc_realloc(blocks[2], sizes[i] * 2 + 1);
        free(blocks[0]);
        __libc_free(blocks[1]);
        free(blocks[2]);
        __libc_free(blocks[3]);
    }
    __libc_free(NULL);
    CHECK_EQ(__libc_mallopt(M_MMAP_MAX, 5), 1);
}

/* malloc_usable_size(3): 0 for NULL; all of it may be used. */
TEST(all_usable_bytes_are_usable)
{
    CHECK_EQ(malloc_usable_size(NULL), 0);
    for (unsigned i = 0; i < SIZES; i++) {
        char *block = malloc(sizes[i]), *next = malloc(sizes[i]);
        size_t bytes = malloc_usable_size(block);
        CHECK(bytes >= sizes[i]);
        fill(block, bytes, 1);
        fill(next, malloc_usable_size(next), 2);
        CHECK(is_filled(block, bytes, 1));
        free(block);
        free(next);
        CHECK(malloc_good_size(sizes[i]) >= sizes[i]);
    }
}

/* FreeBSD, realloc(3). */
TEST(reallocf_resizes_or_frees)
{
    char *block = reallocf(NULL, 100);
    fill(block, 100, 1);
    block = reallocf(block, 100000);
    CHECK(is_filled(block, 100, 1));
    errno = 0;
    CHECK(reallocf(block, hidden_bytes(SIZE_MAX)) == NULL && errno == ENOMEM);
}

/* mallopt(3), malloc_trim(3). */
TEST(controls_answer)
{
    CHECK_EQ(mallopt(M_ARENA_MAX, 1), 1);
    CHECK_EQ(mallopt(12345, 1), 1);
    char *block = malloc(20 << 20);
    fill(block, 20 << 20, 1);
    CHECK_EQ(mallopt(M_TRIM_THRESHOLD, -1), 1);
    free(block);
    CHECK_EQ(malloc_trim(0), 1);
}

#ifndef LINKED_STATICALLY
/* Blocks that libc's own malloc made, in a process that forwards them: as after RTLD_DEEPBIND. */
TEST(blocks_of_libc_reach_libc_and_not_our_own_name_for_its_free)
{
    time_limit(300);
    WITH_SETTING("HAKMEM_FOREIGN", "forward");
    void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    CHECK(libc != NULL);
    void *(*take)(size_t) = (void *(*)(size_t))dlsym(libc, "malloc");
    struct mallinfo2 (*info)(void) = (struct mallinfo2(*)(void))dlsym(libc, "mallinfo2");
    CHECK(take != NULL && take != malloc && info != NULL);
    size_t before = info().uordblks;
    char *block = take(50000);
    fill(block, 50000, 5);
    CHECK(info().uordblks >= before + 50000);
    block = realloc(block, 90000);
    CHECK(is_filled(block, 50000, 5));
    CHECK(info().uordblks >= before + 90000);
    errno = UNTOUCHED;
    free(block);
    CHECK_EQ(errno, UNTOUCHED);
    CHECK(info().uordblks < before + 50000);
}
#endif
