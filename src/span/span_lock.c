/* SPDX-License-Identifier: MIT */
#include "span/span_lock.h"

struct hak_lock hak_span_lock_word = HAK_LOCK_START_WITH(HAK_LOCK_SPAN);

void hak_span_lock_reset(void)
{
    hak_lock_reset(&hak_span_lock_word);
}

bool hak_span_lock_is_left(void)
{
    return hak_lock_is_left(&hak_span_lock_word);
}
