/* SPDX-License-Identifier: MIT */
/* tests/unit/base/list_test.c - lists through a member of the element. */
#include "base/list.h"
#include "check.h"

struct item {
    int number;
    struct list_link link;
};

/* The numbers of a list of at most nine items, as the digits of one number; checks every link. */
static int digits(const struct list_link *head)
{
    int number = 0;
    for (const struct list_link *link = head->next; link != head; link = link->next) {
        CHECK_EQ(link->next->prev, link);
        CHECK_EQ(link->prev->next, link);
        number = number * 10 + hak_list_element(link, struct item, link)->number;
    }
    return number;
}

TEST(a_started_list_is_empty)
{
    struct list_link head;
    hak_list_start(&head);
    CHECK(hak_list_is_empty(&head));
    CHECK_EQ(digits(&head), 0);
}

TEST(elements_stand_where_they_were_inserted)
{
    struct list_link head;
    struct item one = {.number = 1}, two = {.number = 2}, three = {.number = 3},
                four = {.number = 4};
    hak_list_start(&head);
    hak_list_insert_first(&head, &two.link);
    hak_list_insert_first(&head, &one.link);
    hak_list_insert_last(&head, &four.link);
    hak_list_insert_after(&two.link, &three.link);
    CHECK(!hak_list_is_empty(&head));
    CHECK_EQ(digits(&head), 1234);
}

TEST(a_removed_element_is_on_no_list)
{
    struct list_link head;
    struct item items[3] = {{.number = 1}, {.number = 2}, {.number = 3}};
    hak_list_start(&head);
    for (int index = 0; index < 3; index++) {
        CHECK(!hak_list_is_linked(&items[index].link));
        hak_list_insert_last(&head, &items[index].link);
        CHECK(hak_list_is_linked(&items[index].link));
    }
    hak_list_remove(&items[1].link);
    CHECK(!hak_list_is_linked(&items[1].link));
    CHECK_EQ(digits(&head), 13);
    hak_list_remove(&items[0].link);
    hak_list_remove(&items[2].link);
    CHECK(hak_list_is_empty(&head));
}
