/* SPDX-License-Identifier: MIT */
/* learn/trial.h - the costs of a window, the memory it allocated, and the sizes of its blocks.
 *
 * Owns        struct trial, the price that makes one number of it, and the comparison of mixtures.
 * Invariants  costs are compared per MiB that was allocated, never per second or per call. Memory
 *             costs time by row big_fault_ms: what is held so long costs as much as faulting it in.
 * Threads     pure functions.
 * Tests       tests/unit/learn/contest_test.c
 */
#ifndef HAK_LEARN_TRIAL_H
#define HAK_LEARN_TRIAL_H

#include "base/compiler.h"

/* What was measured in some windows. Sums of more than a year do not overflow. */
struct trial {
    uint64_t volume_kib;  /* allocated */
    uint64_t slow_ns;     /* in slow paths */
    uint64_t purge_ns;    /* giving memory back to the kernel */
    uint64_t faults;      /* minor faults of the process */
    uint64_t held_kib_ms; /* memory that was held, times how long */
    uint64_t ms;
};

struct trial_price {
    uint64_t fault_ns;     /* a minor fault */
    uint64_t big_fault_ms; /* memory that is held for so long costs as much as faulting it in */
};

/* First touch of a page of 4 KiB: 583 us for 2 MiB; giving it back: 98 us (docs/adr/0012). */
#define HAK_FAULT_NS 1139u

/* Adds what one window measured to others'. */
void hak_trial_add(struct trial *sum, const struct trial *trial);

/* The time part, and time and memory together. */
uint64_t hak_trial_time_ns(const struct trial *trial, const struct trial_price *price);
uint64_t hak_trial_cost_ns(const struct trial *trial, const struct trial_price *price);

/* A cost for each MiB allocated; 0 where nothing was. */
uint64_t hak_trial_per_mib(const struct trial *trial, uint64_t cost_ns);

/* How much less `own` is than `usual`, in millionths of their mean: -2,000,000 to 2,000,000. */
int32_t hak_trial_saving(uint64_t usual, uint64_t own);

/* What blocks were allocated, by size: how much in each of some groups. */
#define HAK_MIXTURE_GROUPS 32u
struct mixture {
    uint64_t amounts[HAK_MIXTURE_GROUPS];
};

/* How different two mixtures are, in thousandths: 0 the same, 2000 nothing in common. */
uint32_t hak_mixture_distance(const struct mixture *a, const struct mixture *b);

#endif
