/* SPDX-License-Identifier: MIT */
#include "../../check.h"

#include "os/os.h"
#include "region/guard.h"
#include "region/mappings.h"

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
    hak_guard_lower(start + page, page);
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
    hak_guard_lower(start, page);
    CHECK_EQ(hak_mappings_count(), most * 2 - 2);
    CHECK(hak_guard_raise(start, page));
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
