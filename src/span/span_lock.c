/* SPDX-License-Identifier: MIT */
#include "span/span_lock.h"

#define OF(rank) {.lock = HAK_LOCK_START_WITH(HAK_LOCK_##rank)}
struct span_lock hak_span_locks[HAK_SPAN_SETS] = {
    OF(SPAN),     OF(SPAN_SET), OF(SPAN_SET), OF(SPAN_SET), OF(SPAN_SET), OF(SPAN_SET),
    OF(SPAN_SET), OF(SPAN_SET), OF(SPAN_SET), OF(SPAN_SET), OF(SPAN_SET), OF(SPAN_SET),
    OF(SPAN_SET), OF(SPAN_SET), OF(SPAN_SET), OF(SPAN_SET),
};

_Atomic uint64_t hak_span_set_waits = HAK_SPAN_SET_WAITS;

/* The first as any lock, for its rank. Who has one of them waits for none of the others. */
void hak_span_lock_sets(void)
{
    if (HAK_UNLIKELY(hak_lock_has_all()))
        return;
    hak_span_lock_set(1);
    for (uint32_t set = 2; set < HAK_SPAN_SETS; set++)
        if (!hak_lock_try_among(&hak_span_locks[set].lock))
            hak_lock_take_slow(&hak_span_locks[set].lock);
}

void hak_span_unlock_sets(void)
{
    if (HAK_UNLIKELY(hak_lock_has_all()))
        return;
    for (uint32_t set = HAK_SPAN_SETS; set-- > 2;)
        hak_lock_give_among(&hak_span_locks[set].lock);
    hak_span_unlock_set(1);
}

void hak_span_reset_sets(void)
{
    for (uint32_t set = 1; set < HAK_SPAN_SETS; set++)
        hak_lock_reset(&hak_span_locks[set].lock);
}
