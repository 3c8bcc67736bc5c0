/* SPDX-License-Identifier: MIT */
#include "../../check.h"

#include "base/limits.h"
#include "os/os.h"
#include "region/guard.h"
#include "region/mappings.h"

#include <sys/resource.h>

TEST(a_raised_guard_cannot_be_touched_and_a_lowered_one_holds_what_it_held)
{
    size_t page = hak_os_page_bytes();
    char *start = hak_os_reserve(4 * page);
    CHECK(start != NULL && hak_os_commit(start, 4 * page));
    memset(start, 'x', 4 * page);
    CHECK(hak_guard_raise(start + page, page));
    CHECK_EQ(hak_mappings_count(), 2);
    CHECK_FAULTS(start[page] = 'y');
    start[2 * page] = 'z';
    CHECK(hak_guard_lower(start + page, page, 1));
    CHECK_EQ(hak_mappings_count(), 0);
    CHECK_EQ(start[page], 'x');
}

TEST(guards_are_as_many_as_the_budget_allows)
{
    size_t page = hak_os_page_bytes();
    size_t most = hak_mappings_most() / 4;
    char *start = hak_os_reserve(2 * (most + 1) * page);
    CHECK(start != NULL && hak_os_commit(start, 2 * (most + 1) * page));
    size_t raised = 0;
    while (raised <= most && hak_guard_raise(start + 2 * raised * page, page))
        raised++;
    CHECK_EQ(raised, most);
    CHECK_EQ(hak_mappings_count(), most * 2);
    CHECK(hak_guard_lower(start, page, 1));
    CHECK_EQ(hak_mappings_count(), most * 2 - 2);
    CHECK(hak_guard_raise(start, page));
}

/* What has no access is not data of the process's: it needs room again (setrlimit(2)). */
TEST(a_guard_that_the_kernel_does_not_lower_stays_as_it_is)
{
    size_t bytes = 32 * HAK_MIB;
    struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY}, little = {4096, RLIM_INFINITY};
    char *start = hak_os_reserve(bytes);
    CHECK(start != NULL && hak_os_commit(start, bytes));
    *start = 'x';
    CHECK(hak_guard_raise(start, bytes));
    CHECK_EQ(setrlimit(RLIMIT_DATA, &little), 0);
    bool is_lowered = hak_guard_lower(start, bytes, 1);
    CHECK_EQ(setrlimit(RLIMIT_DATA, &none), 0);
    if (is_lowered)
        SKIP("this kernel does not count data");
    CHECK_EQ(hak_mappings_count(), 2);
    CHECK(hak_guard_lower(start, bytes, 1));
    CHECK_EQ(hak_mappings_count(), 0);
    CHECK_EQ(*start, 'x');
}

TEST(guards_do_not_stand_where_others_have_the_mappings)
{
    size_t page = hak_os_page_bytes();
    char *start = hak_os_reserve(3 * page);
    CHECK(start != NULL && hak_os_commit(start, 3 * page));
    CHECK(hak_mappings_take(hak_mappings_most() - 1));
    CHECK(!hak_guard_raise(start + page, page));
    CHECK_EQ(hak_mappings_count(), hak_mappings_most() - 1);
    hak_mappings_give(1);
    CHECK(hak_guard_raise(start + page, page));
    CHECK_EQ(hak_mappings_count(), hak_mappings_most());
}
