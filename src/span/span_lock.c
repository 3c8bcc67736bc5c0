/* SPDX-License-Identifier: MIT */
#include "span/span_lock.h"

#include "os/lock.h"

static struct hak_lock lock = HAK_LOCK_START_WITH(HAK_LOCK_SPAN);

void hak_span_lock(void)
{
    hak_lock_take(&lock);
}

void hak_span_unlock(void)
{
    hak_lock_give(&lock);
}

void hak_span_lock_reset(void)
{
    hak_lock_reset(&lock);
}

bool hak_span_lock_is_left(void)
{
    return hak_lock_is_left(&lock);
}
