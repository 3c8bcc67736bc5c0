/* SPDX-License-Identifier: MIT */
#include "span/large_group.h"

#include "base/list.h"
#include "region/tag_map.h"
#include "span/span_heap.h"

void hak_large_group_start(struct list_link *group)
{
    hak_list_start(group);
}

void hak_large_leave(struct span *span)
{
    hak_list_remove(&span->bin_link);
    span->group = NULL;
}

void hak_large_succeed(struct span *from, struct span *to)
{
    hak_span_lock();
    to->group = from->group;
    hak_list_insert_first(to->group, &to->bin_link);
    hak_list_remove(&from->bin_link);
    from->group = NULL;
    hak_span_unlock();
}

size_t hak_large_group_bytes(const struct list_link *group, size_t *block_count)
{
    size_t bytes = 0;
    *block_count = 0;
    hak_span_lock();
    for (const struct list_link *i = group->next; i != group; i = i->next) {
        bytes += hak_span_bytes(hak_list_element(i, struct span, bin_link));
        (*block_count)++;
    }
    hak_span_unlock();
    return bytes;
}

/* Writes only what is not so already: a child of fork would copy the pages. */
static void link(struct list_link *before, struct list_link *behind)
{
    if (before->next != behind)
        before->next = behind;
    if (behind->prev != before)
        behind->prev = before;
}

void hak_large_group_mend(struct list_link *group)
{
    struct list_link *before = group;
    struct list_link *next;
    for (struct list_link *i = group->next; i != group; i = next) {
        next = i->next;
        if (hak_load_relaxed(&hak_list_element(i, struct span, bin_link)->user) != NULL) {
            link(before, i);
            before = i;
        } else {
            hak_list_start(i); /* a later step may take it out once more */
        }
    }
    link(before, group);
}
