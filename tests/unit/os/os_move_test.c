/* SPDX-License-Identifier: MIT */
/* tests/unit/os/os_move_test.c - pages move as one mapping or not at all, and only to where nothing
 * is. */
#define _GNU_SOURCE /* MREMAP_MAYMOVE */
#include "os/os_move.h"

#include "base/bits.h"
#include "check.h"
#include "faults.h"
#include "os/os.h"
#include "unit/asan.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define PAGES 8

static char *from;
static char *to;

static size_t bytes(void)
{
    return PAGES * hak_os_page_bytes();
}

static char *map(void)
{
    char *start =
        mmap(NULL, 4 * bytes(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(start != MAP_FAILED); /* no neighbour is one mapping with the middle */
    char *middle = (char *)hak_align_up((uintptr_t)start + bytes(), hak_os_page_bytes());
    CHECK_EQ(mprotect(middle, bytes(), PROT_READ | PROT_WRITE), 0);
    return middle;
}

static void check_source(void)
{
    for (size_t i = 0; i < PAGES; i++)
        CHECK_BYTES(from + i * hak_os_page_bytes(), hak_os_page_bytes(), i + 1);
}

/* Two ranges, of which the first is filled. */
static void start(void)
{
    hak_os_start();
    from = map();
    to = map();
    for (size_t i = 0; i < PAGES; i++)
        memset(from + i * hak_os_page_bytes(), (int)i + 1, hak_os_page_bytes());
    errno = 77;
}

static void need_move(void)
{
    start();
    if (hak_os_move(from, to, bytes()) != OS_MOVED)
        SKIP("the kernel has no mremap that keeps the source mapped");
    start();
}

static bool is_mapped(char *page)
{
    unsigned char resident;
    return mincore(page, hak_os_page_bytes(), &resident) == 0;
}

TEST(what_is_one_mapping_moves_and_leaves_zero_pages)
{
    need_move();
    CHECK_EQ(hak_os_move(from, to, bytes()), OS_MOVED);
    CHECK_EQ(errno, 77);
    CHECK_BYTES(from, bytes(), 0);
    from = to;
    check_source();
}

TEST(what_is_several_mappings_is_refused_whole)
{
    need_move();
    size_t page = hak_os_page_bytes();
    CHECK_EQ(madvise(from + 4 * page, page, MADV_DONTFORK), 0);
    CHECK_EQ(hak_os_move(from, to, bytes()), OS_MOVE_REFUSED);
    CHECK_EQ(errno, 77);
    check_source();
    CHECK_BYTES(to, bytes(), 0);
    CHECK_EQ(hak_os_move(from, to, 4 * page), OS_MOVED); /* the first of them alone does move */
    CHECK_EQ(hak_os_move(from + 4 * page, to + 4 * page, page), OS_MOVED);
    CHECK_EQ(to[4 * page], 5);
}

/* Another thread's mapping that comes into the free target, and goes again if it is to. */
static bool goes;
static char *foreign;
static void come_and_go(void)
{
    if (foreign == NULL && !is_mapped(to)) {
        foreign = mmap(to, bytes(), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        CHECK_EQ(foreign, to);
        *foreign = 42;
    } else if (foreign != NULL && goes) {
        goes = false;
        CHECK_EQ(munmap(foreign, bytes()), 0);
    }
}

static enum os_move move_beside_another(bool it_goes)
{
    goes = it_goes;
    hak_store_relaxed(&hak_os_fault.watch, come_and_go);
    enum os_move result = hak_os_move(from, to, bytes());
    hak_store_relaxed(&hak_os_fault.watch, NULL);
    CHECK_EQ(errno, 77);
    CHECK_EQ(foreign, to);
    return result;
}

TEST(a_mapping_that_comes_into_the_target_is_not_touched)
{
    need_faults();
    need_move();
    CHECK_EQ(move_beside_another(false), OS_MOVE_LOST);
    check_source();
    CHECK_EQ(*foreign, 42);
    CHECK_BYTES(foreign + 1, bytes() - 1, 0);
}

TEST(pages_that_arrive_elsewhere_go_on_to_a_target_that_is_free)
{
    need_faults();
    need_move();
    CHECK_EQ(move_beside_another(true), OS_MOVED);
    CHECK_BYTES(from, bytes(), 0);
    from = to;
    check_source();
}

TEST(pages_that_arrive_elsewhere_and_cannot_go_on_are_copied_back)
{
    need_faults();
    need_move();
    fail_every(2, FAULT_MOVE);
    CHECK(move_beside_another(true) != OS_MOVED);
    hak_os_fault_every(0);
    check_source();
}

TEST(a_target_that_cannot_be_mapped_again_is_lost_without_the_source)
{
    need_faults();
    need_move();
    fail_every(1, FAULT_MOVE | FAULT_MAP);
    CHECK_EQ(hak_os_move(from, to, bytes()), OS_MOVE_LOST);
    hak_os_fault_every(0);
    check_source();
    CHECK(!is_mapped(to));
}

TEST(after_some_lost_targets_the_kernel_is_not_asked_again)
{
    need_faults();
    need_move();
    CHECK(hak_os_may_move());
    unsigned lost = 0;
    for (; lost < 100 && hak_os_may_move(); lost++) {
        start();
        fail_every(1, FAULT_MOVE | FAULT_MAP);
        CHECK_EQ(hak_os_move(from, to, bytes()), OS_MOVE_LOST);
        hak_os_fault_every(0);
    }
    CHECK(lost > 1 && lost < 100);
    start();
    CHECK_EQ(hak_os_move(from, to, bytes()), OS_MOVE_UNTRIED);
    check_source();
}

TEST(a_target_that_is_locked_is_not_moved_to)
{
    if (UNDER_ASAN)
        SKIP("the sanitizer ignores mlock");
    need_move();
    if (mlock(to, bytes()) != 0)
        SKIP("too little memory may be locked");
    CHECK_EQ(hak_os_move(from, to, bytes()), OS_MOVE_UNTRIED);
    check_source();
    CHECK_EQ(munlock(to, bytes()), 0);
    CHECK_EQ(hak_os_move(from, to, bytes()), OS_MOVED);
}

/* Whether it does, not asked by hakmem. */
static bool kernel_moves(void)
{
    char *page = map();
    return syscall(SYS_mremap, page, hak_os_page_bytes(), hak_os_page_bytes(),
                   MREMAP_MAYMOVE | 4 /* MREMAP_DONTUNMAP */, NULL) != -1;
}

TEST(a_kernel_that_is_short_of_memory_at_first_is_asked_again)
{
    need_faults();
    start();
    if (!kernel_moves() || is_emulated())
        SKIP("the kernel has no mremap that keeps the source mapped");
    fail_every(1, FAULT_MOVE);
    errno = 77;
    CHECK(!hak_os_may_move());
    CHECK_EQ(hak_os_move(from, to, bytes()), OS_MOVE_UNTRIED);
    CHECK_EQ(errno, 77);
    hak_os_fault_every(0);
    CHECK(hak_os_may_move());
    CHECK_EQ(hak_os_move(from, to, bytes()), OS_MOVED);
    from = to;
    check_source();
}

TEST(where_all_memory_is_locked_few_targets_are_to_be_taken)
{
    if (UNDER_ASAN)
        SKIP("the sanitizer ignores mlockall");
    start();
    if (!kernel_moves() || is_emulated())
        SKIP("the kernel has no mremap that keeps the source mapped");
    if (mlockall(MCL_FUTURE) != 0)
        SKIP("too little memory may be locked");
    unsigned few = 0;
    for (unsigned i = 0; i < 200; i++)
        few += hak_os_may_move();
    CHECK_EQ(few, 0); /* a fresh page is locked, too */
    CHECK_EQ(munlockall(), 0);
    unsigned asked = 0;
    while (!hak_os_may_move())
        CHECK(asked++ < 100);
    CHECK(hak_os_may_move());
}
