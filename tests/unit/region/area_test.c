/* SPDX-License-Identifier: MIT */
/* tests/unit/region/area_test.c - an area grows in place, also one that was left half grown. */
#include "base/limits.h"
#include "check.h"
#include "faults.h"
#include "os/claim.h"
#include "os/os.h"
#include "os/os_fault.h"
#include "region/area.h"

#include <sys/mman.h>

#define ROOM_BYTES (32 * HAK_MIB)
#define STEP_BYTES (64 * HAK_KIB)

static struct area area;

static void start(void)
{
    hak_os_start();
    size_t guard = hak_os_page_bytes();
    struct os_claim claim = {.front_bytes = guard, .bytes = guard + ROOM_BYTES + guard};
    CHECK(hak_os_claim(&claim, ZONE_RECORDS));
    hak_os_claim_open(&claim);
    hak_area_start(&area, claim.start + guard, ROOM_BYTES);
}

static size_t usable_bytes(void)
{
    return hak_load_relaxed(&area.usable_bytes);
}

TEST(an_area_grows_by_steps_up_to_its_room_and_keeps_what_it_holds)
{
    start();
    CHECK_EQ(hak_area_grow(&area, 1, STEP_BYTES), OS_MAPPED);
    CHECK_EQ(usable_bytes(), STEP_BYTES);
    area.start[0] = 1;
    for (size_t bytes = 1; bytes <= ROOM_BYTES; bytes = bytes * 3 + 1) {
        CHECK_EQ(hak_area_grow(&area, bytes, STEP_BYTES), OS_MAPPED);
        CHECK(usable_bytes() >= bytes && usable_bytes() < bytes + STEP_BYTES);
        CHECK_EQ(area.start[bytes - 1], bytes == 1);
    }
    CHECK_EQ(hak_area_grow(&area, ROOM_BYTES, 3 * STEP_BYTES), OS_MAPPED);
    CHECK_EQ(usable_bytes(), ROOM_BYTES);
    CHECK_EQ(hak_area_grow(&area, ROOM_BYTES + 1, STEP_BYTES), OS_MAP_TAKEN);
    CHECK_EQ(area.start[0], 1);
}

TEST(what_others_have_mapped_stops_an_area_and_stays_theirs)
{
    start();
    CHECK_EQ(hak_area_grow(&area, 1, STEP_BYTES), OS_MAPPED);
    unsigned char *theirs = area.start + 4 * STEP_BYTES;
    CHECK_EQ(mmap(theirs, STEP_BYTES, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
             theirs);
    *theirs = 5;
    CHECK_EQ(hak_area_grow(&area, 5 * STEP_BYTES, STEP_BYTES), OS_MAP_TAKEN);
    CHECK_EQ(usable_bytes(), STEP_BYTES);
    CHECK_EQ(*theirs, 5);
    CHECK_EQ(hak_area_grow(&area, 4 * STEP_BYTES, STEP_BYTES), OS_MAPPED);
}

/* As a handler does that interrupts the growth and jumps away. */
TEST(growth_that_was_left_half_done_goes_on)
{
    start();
    CHECK_EQ(hak_area_grow(&area, 1, STEP_BYTES), OS_MAPPED);
    area.tried_bytes = 3 * STEP_BYTES; /* nothing is mapped yet */
    CHECK_EQ(hak_area_grow(&area, 2 * STEP_BYTES, STEP_BYTES), OS_MAPPED);
    CHECK_EQ(usable_bytes(), 2 * STEP_BYTES);
    area.tried_bytes = 4 * STEP_BYTES; /* it is mapped but does not count */
    CHECK_EQ(hak_os_map(area.start + 2 * STEP_BYTES, 2 * STEP_BYTES), OS_MAPPED);
    CHECK_EQ(hak_area_grow(&area, 3 * STEP_BYTES, STEP_BYTES), OS_MAPPED);
    CHECK_EQ(usable_bytes(), 4 * STEP_BYTES);
    CHECK_EQ(hak_area_grow(&area, 5 * STEP_BYTES, STEP_BYTES), OS_MAPPED);
    area.start[5 * STEP_BYTES - 1] = 1;
}

TEST(a_refusal_of_the_kernel_changes_no_area)
{
    need_faults();
    start();
    hak_os_fault_every(1);
    CHECK_EQ(hak_area_grow(&area, 1, STEP_BYTES), OS_MAP_REFUSED);
    hak_os_fault_every(0);
    CHECK_EQ(usable_bytes(), 0);
    CHECK_EQ(hak_area_grow(&area, 1, STEP_BYTES), OS_MAPPED);
}
