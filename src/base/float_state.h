/* SPDX-License-Identifier: MIT */
/* base/float_state.h - floating-point numbers inside malloc: a program that traps exceptions gets
 * none of it, and its flags stay as they were.
 *
 * Owns        nothing.
 * Invariants  between begin and end nothing traps, and rounding is to nearest; end restores what
 *             was. What is computed between them is a call that is not inlined, and that reads or
 *             writes memory: else the compiler might move it. A few nanoseconds on x86-64 and
 *             arm64; elsewhere nothing.
 * Threads     any: the state is the thread's own.
 * Tests       tests/unit/heap/draw_test.c, tests/unit/profile/site_rules_test.c
 */
#ifndef HAK_BASE_FLOAT_STATE_H
#define HAK_BASE_FLOAT_STATE_H

#include "base/compiler.h"

struct float_state {
    uint64_t control, flags; /* x86-64: both are in `control` */
};

/* A state that traps whatever can be trapped, for tests. */
#if defined(__x86_64__)
#define HAK_FLOAT_NO_TRAPS 0x1f80u
#define HAK_FLOAT_TRAPS ((struct float_state){.control = 0})
#elif defined(__aarch64__)
#define HAK_FLOAT_TRAPS ((struct float_state){.control = 0x9f00})
#else
#define HAK_FLOAT_TRAPS ((struct float_state){.control = 0})
#endif

HAK_INLINE void hak_float_end(struct float_state state)
{
#if defined(__x86_64__)
    uint32_t control = (uint32_t)state.control;
    __asm__ volatile("ldmxcsr %0" : : "m"(control) : "memory");
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0\n\tmsr fpsr, %1"
                     :
                     : "r"(state.control), "r"(state.flags)
                     : "memory");
#else
    (void)state;
#endif
}

HAK_INLINE struct float_state hak_float_begin(void)
{
    struct float_state state = {.control = 0};
#if defined(__x86_64__)
    uint32_t control;
    __asm__ volatile("stmxcsr %0" : "=m"(control) : : "memory");
    state.control = control;
    hak_float_end((struct float_state){.control = HAK_FLOAT_NO_TRAPS});
#elif defined(__aarch64__)
    __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr"
                     : "=r"(state.control), "=r"(state.flags)
                     :
                     : "memory");
    hak_float_end((struct float_state){.control = 0});
#endif
    return state;
}

#endif
