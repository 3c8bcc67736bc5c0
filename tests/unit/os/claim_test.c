/* SPDX-License-Identifier: MIT */
/* tests/unit/os/claim_test.c - places are found, at random, that count against nothing. */
#include "base/limits.h"
#include "check.h"
#include "os/claim.h"
#include "os/os.h"
#include "unit/asan.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static struct os_claim made(size_t bytes, enum os_zone zone)
{
    hak_os_start();
    struct os_claim claim = {.front_bytes = 2 * hak_os_page_bytes(), .bytes = bytes};
    CHECK(hak_os_claim(&claim, zone));
    CHECK_EQ((uintptr_t)claim.start % hak_os_page_bytes(), 0);
    return claim;
}

TEST(an_open_claim_has_its_ends_mapped_and_nothing_between)
{
    struct os_claim claim = made(64 * HAK_MIB, ZONE_RECORDS);
    size_t page = hak_os_page_bytes();
    hak_os_claim_open(&claim);
    CHECK_EQ(hak_os_map(claim.start, page), OS_MAP_TAKEN);
    CHECK_EQ(hak_os_map(claim.start + page, page), OS_MAP_TAKEN);
    CHECK_EQ(hak_os_map(claim.start + 2 * page, claim.bytes - 3 * page), OS_MAPPED);
    CHECK_EQ(hak_os_map(claim.start + claim.bytes - page, page), OS_MAP_TAKEN);
    CHECK_EQ(claim.start[2 * page], 0);
}

TEST(a_claim_that_is_given_up_leaves_nothing)
{
    struct os_claim claim = made(64 * HAK_MIB, ZONE_BLOCKS);
    hak_os_claim_drop(&claim);
    CHECK_EQ(hak_os_map(claim.start, claim.bytes), OS_MAPPED);
}

TEST(claims_of_different_zones_never_overlap)
{
    for (int i = 0; i < 50; i++) {
        struct os_claim one = made(HAK_WINDOW_BYTES_MAX, ZONE_BLOCKS);
        struct os_claim other = made(HAK_WINDOW_BYTES_MAX / 8, ZONE_RECORDS);
        CHECK(one.start + one.bytes <= other.start || other.start + other.bytes <= one.start);
        hak_os_claim_drop(&one);
        hak_os_claim_drop(&other);
    }
}

static void *claim_much(void *claimed)
{
    struct os_claim *claim = claimed;
    *claim = made(HAK_TIB, ZONE_BLOCKS);
    return NULL;
}

/* As qemu-user gives it to its guests. */
TEST(a_stack_that_lies_low_does_not_have_a_claim_reserved_as_a_whole)
{
    if (UNDER_ASAN || is_emulated())
        SKIP("address space is not the program's own");
    size_t bytes = 64 * HAK_MIB;
    void *low = (void *)(64ull << 30);
    hak_os_start();
    CHECK_EQ(hak_os_map(low, bytes), OS_MAPPED);
    struct os_claim claim;
    pthread_attr_t attributes;
    pthread_t thread;
    CHECK_EQ(pthread_attr_init(&attributes), 0);
    CHECK_EQ(pthread_attr_setstack(&attributes, low, bytes), 0);
    CHECK_EQ(pthread_create(&thread, &attributes, claim_much, &claim), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK(!claim.is_whole);
}

TEST(a_claim_needs_no_more_address_space_than_its_ends)
{
    if (UNDER_ASAN || is_emulated())
        SKIP("address space is not the program's own");
    char text[64];
    hak_os_start();
    CHECK(hak_os_read_text("/proc/self/statm", text, sizeof text) > 0);
    size_t used = strtoul(text, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE);
    struct rlimit limit = {used + 4 * hak_os_page_bytes(), RLIM_INFINITY};
    CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    struct os_claim claim = made(HAK_TIB, ZONE_BLOCKS);
    CHECK(!claim.is_whole);
    CHECK(!hak_os_claim(&claim, ZONE_RECORDS)); /* three pages more are too many */
}
