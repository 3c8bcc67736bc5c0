/* SPDX-License-Identifier: MIT */
/* base/list.h - doubly linked lists through a member of the element.
 *
 * Owns        struct list_link; a list is a link of its own whose next is the first element.
 * Invariants  next->prev == prev->next == self for every link on a list; an element off any list
 *             has next == NULL. Followed by `next`, a list is whole at each instruction, also where
 *             its thread is stopped for good.
 * Threads     none: the list's owner or lock decides.
 * Tests       tests/unit/base/list_test.c
 */
#ifndef HAK_BASE_LIST_H
#define HAK_BASE_LIST_H

#include "base/compiler.h"

struct list_link {
    struct list_link *next;
    struct list_link *prev;
};

/* The element of `type` that holds `link` as its `member`. */
#define hak_list_element(link, type, member)                                                       \
    ((type *)(void *)((char *)(link) - offsetof(type, member)))

HAK_INLINE void hak_list_start(struct list_link *head)
{
    head->next = head;
    head->prev = head;
}

HAK_INLINE bool hak_list_is_empty(const struct list_link *head)
{
    return head->next == head;
}

HAK_INLINE bool hak_list_is_linked(const struct list_link *link)
{
    return link->next != NULL;
}

HAK_INLINE void hak_list_insert_after(struct list_link *place, struct list_link *link)
{
    link->next = place->next;
    link->prev = place;
    hak_compiler_fence();
    place->next->prev = link;
    place->next = link;
}

HAK_INLINE void hak_list_insert_first(struct list_link *head, struct list_link *link)
{
    hak_list_insert_after(head, link);
}

HAK_INLINE void hak_list_insert_last(struct list_link *head, struct list_link *link)
{
    hak_list_insert_after(head->prev, link);
}

HAK_INLINE void hak_list_remove(struct list_link *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
    hak_compiler_fence();
    link->next = NULL;
    link->prev = NULL;
}

#endif
