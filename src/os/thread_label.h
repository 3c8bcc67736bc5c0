/* SPDX-License-Identifier: MIT */
/* os/thread_label.h - which thread did something, for people.
 *
 * Owns        nothing.
 * Invariants  a program that confined itself is not asked: its threads have no labels from then on.
 *             Calls: gettid, prctl (PR_GET_NAME).
 * Threads     any; signal handlers too.
 * Tests       tests/unit/os/module_test.c
 */
#ifndef HAK_OS_THREAD_LABEL_H
#define HAK_OS_THREAD_LABEL_H

#include "base/text.h"

/* In words, so that it can be copied while it changes. */
struct thread_label {
    uintptr_t id; /* 0: not known */
    uintptr_t name[16 / sizeof(uintptr_t)];
};

/* The calling thread's. */
struct thread_label hak_os_thread_label(void);

/* Adds ` by thread ID (NAME)`; nothing for an unknown thread. */
void hak_os_thread_label_add(struct text *text, const struct thread_label *label);

#endif
