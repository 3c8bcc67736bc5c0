/* SPDX-License-Identifier: MIT */
#include "learn/trial.h"

/* 681 us for 2 MiB: faulting it in and giving it back. */
#define FAULT_NS_PER_KIB 333u

void hak_trial_add(struct trial *sum, const struct trial *trial)
{
    sum->volume_kib += trial->volume_kib;
    sum->slow_ns += trial->slow_ns;
    sum->purge_ns += trial->purge_ns;
    sum->faults += trial->faults;
    sum->held_kib_ms += trial->held_kib_ms;
    sum->ms += trial->ms;
}

uint64_t hak_trial_time_ns(const struct trial *trial, const struct trial_price *price)
{
    return trial->slow_ns + trial->purge_ns + trial->faults * price->fault_ns;
}

uint64_t hak_trial_cost_ns(const struct trial *trial, const struct trial_price *price)
{
    uint64_t ms = price->big_fault_ms == 0 ? 1 : price->big_fault_ms;
    return hak_trial_time_ns(trial, price) + trial->held_kib_ms / ms * FAULT_NS_PER_KIB;
}

uint64_t hak_trial_per_mib(const struct trial *trial, uint64_t cost_ns)
{
    return trial->volume_kib == 0 ? 0 : cost_ns * 1024 / trial->volume_kib;
}

int32_t hak_trial_saving(uint64_t usual, uint64_t own)
{
    for (; (usual | own) >> 40 != 0; usual >>= 1)
        own >>= 1;
    uint64_t sum = usual + own;
    if (sum == 0)
        return 0;
    return (int32_t)(((int64_t)usual - (int64_t)own) * 2000000 / (int64_t)sum);
}

static uint64_t sum_of(const struct mixture *mixture)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < HAK_MIXTURE_GROUPS; i++)
        sum += mixture->amounts[i];
    return sum;
}

uint32_t hak_mixture_distance(const struct mixture *a, const struct mixture *b)
{
    uint64_t sum_a = sum_of(a), sum_b = sum_of(b), distance = 0;
    if (sum_a == 0 || sum_b == 0)
        return sum_a == sum_b ? 0 : 2000;
    for (uint32_t i = 0; i < HAK_MIXTURE_GROUPS; i++) {
        uint64_t share_a = a->amounts[i] * 1000000 / sum_a;
        uint64_t share_b = b->amounts[i] * 1000000 / sum_b;
        distance += share_a > share_b ? share_a - share_b : share_b - share_a;
    }
    return (uint32_t)(distance / 1000);
}
