/* SPDX-License-Identifier: MIT */
/* tests/interleave/interleave.h - runs a few threads of the real code in every order, and lets
 * their loads read every value that C11 allows, within bounds.
 *
 * Owns        the interface of the checker: search.c chooses and switches, memory.c is the memory
 *             model, access.c is what the compiler calls, orders.c weakens memory orders.
 * Invariants  the code under test is compiled with -fsanitize=thread and linked with this instead
 *             of ThreadSanitizer's library. An execution depends on its choices alone, and changes
 *             nothing: what it wrote is put back after it.
 * Threads     one; those of the code under test are fibres with thread pointers of their own.
 * Tests       tests/interleave/litmus_interleave.c
 */
#ifndef TESTS_INTERLEAVE_INTERLEAVE_H
#define TESTS_INTERLEAVE_INTERLEAVE_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>

#define INTERLEAVE_BODIES_MOST 4u
#define UNBOUNDED 1000u

/* What is run: `start` alone, then all bodies at once, then `end` alone. */
struct harness {
    const char *name;
    void (*start)(void);
    void (*bodies[INTERLEAVE_BODIES_MOST])(void);
    void (*end)(void);
    uint32_t preemptions; /* of a thread that could have gone on */
    uint32_t oddities;    /* loads of an old value, stores before others, spurious failures */
    uint32_t time_outs;   /* of waits that have one; without, such a wait lasts until it is woken */
};

struct explored {
    uint64_t executions;
    uint32_t choices_most;
    const char *failure; /* NULL: none within the bounds */
};

/* All executions within the bounds, until one fails. */
struct explored interleave_explore(const struct harness *harness);

/* The same of each harness, until one fails (with HAK_FULL, one preemption and oddity more), with
 * one line about each and the trace of an execution that failed. */
bool interleave_hold(const struct harness *harnesses, uint32_t count);

/* The program under test is at fault: this execution has failed. */
_Noreturn void interleave_fail(const char *what);
#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            interleave_fail("not so: " #condition);                                                \
    } while (0)

/* An outcome of this execution, a number below 64; whether any execution had it. */
void interleave_note(uint32_t outcome);
bool interleave_saw(uint32_t outcome);

/* A restartable sequence begins; a fence for such sends it back here before its next access. */
#define SEQUENCE_BEGIN() ((void)_setjmp(*interleave_sequence_begin()))
jmp_buf *interleave_sequence_begin(void);
void interleave_sequence_end(void); /* right behind its last store */
/* This thread runs in place of another one, whose sequence is to begin anew, and knows what that
 * one has done. */
void interleave_preempt(uint32_t thread);

/* Which body calls, from 1 on. */
uint32_t interleave_self(void);

/* For `start`: these bodies (BODY_BIT) wait until another one makes them begin, and may wait
 * at the end; and waits of up to so long always end, beyond the harness's time-outs. */
#define BODY_BIT(number) (1u << (number))
void interleave_let_wait(uint32_t bodies);
void interleave_end_waits(uint32_t most_ms);

/* A body begins, with what this thread knows; or once more, as soon as it waits again. */
void interleave_begin(uint32_t body);
void interleave_wait_to_begin(void); /* the first that such a body does */

/* The thread forks, and goes on in the child: it has memory as it is then, and no other thread. */
void interleave_fork(void);

/* An order that may be weaker as far as the harnesses tell, and why it stays. */
struct kept_order {
    const char *site; /* "function operation order: without what", as the table prints it */
    const char *reason;
};

/* Weakens each memory order of the source files (parts of their paths, with spaces in between), one
 * after the other, and leaves out each wake-up and each fence that restarts sequences. True if each
 * was noticed, save for exactly the kept ones (the list ends with NULL). Prints the table. */
bool interleave_needs_orders(const char *files, const struct harness *harnesses, uint32_t count,
                             const struct kept_order *kept);

#endif
