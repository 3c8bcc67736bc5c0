/* SPDX-License-Identifier: MIT */
/* tests/interleave/machine.h - what the parts of the checker know of each other.
 *
 * Owns        nothing.
 * Invariants  none of these is compiled with -fsanitize=thread.
 * Threads     one.
 * Tests       tests/interleave/litmus_interleave.c
 */
#ifndef TESTS_INTERLEAVE_MACHINE_H
#define TESTS_INTERLEAVE_MACHINE_H

#include "interleave.h"

#include <stddef.h>

#define THREADS_MOST (1 + INTERLEAVE_BODIES_MOST)
#define PLACES_MOST 96u

/* What has happened before, as a thread or a message knows it: how far each thread was, and at
 * least which store of each place. */
struct view {
    uint32_t clock[THREADS_MOST];
    uint32_t key[PLACES_MOST];
};

enum operation {
    LOAD,
    STORE,
    EXCHANGE,
    ADD,
    SUB,
    AND,
    OR,
    XOR,
    CAS,
    CAS_WEAK,
    CAS_FAILED,
    FENCE,
    WAIT,
    WAKE,
    RESTART,
    OPERATION_COUNT
};
extern const char *const operation_names[OPERATION_COUNT];
extern const char *const order_names[7];

/* search.c: choices, threads and the trace. */
uint32_t choose(uint32_t count);       /* 0 is what usually happens */
uint32_t choose_oddly(uint32_t count); /* the same, but only so many times not 0 */
void step(void);                       /* another thread may go on before this one does */
void yield_step(void);                 /* others go on first, if they can */
void sleep_on(const void *word, uint32_t most_ms); /* 0: without limit */
void wake_up(const void *word, uint32_t count);
void restart_sequences(void); /* of all threads */
void leave_sequence(void);    /* does not return if this one's is to begin anew */
_Noreturn void fail_at(const char *what, const void *pc, const void *other_pc);
_Noreturn void start_again(void); /* this execution taught something; the search begins anew */
void go_on_alone(void);           /* other threads are no more */
uint64_t model_ms(void);
extern uint32_t self;      /* the thread that runs; 0: alone */
extern bool is_watching;   /* code under test runs, and is told of */
extern bool is_concurrent; /* and its threads */
bool is_on_a_stack(uintptr_t address);

bool holds_within(const struct harness *asked); /* whatever HAK_FULL says */

struct event {
    const void *pc;
    uintptr_t address;
    uint64_t value;
    uint8_t thread, operation, order;
    uint8_t age; /* how many newer stores there were */
};
void note_event(struct event event);

/* memory.c */
void memory_forget(void); /* all that was learned of the program */
void memory_begin(void);  /* an execution */
void memory_spawn(uint32_t thread);
void memory_join(uint32_t thread);
/* What one has done is before what the other does from now on. */
void memory_order(uint32_t earlier, uint32_t later);
void memory_restore(void); /* undoes the execution's writes */
void memory_touch(uintptr_t address, size_t bytes, bool is_write, const void *pc);
uint64_t memory_load(uintptr_t address, uint32_t bytes, int order, const void *pc);
void memory_store(uintptr_t address, uint32_t bytes, uint64_t value, int order, const void *pc);
uint64_t memory_change(uintptr_t address, uint32_t bytes, enum operation operation,
                       uint64_t operand, int order, const void *pc);
bool memory_cas(uintptr_t address, uint32_t bytes, uint64_t *expected, uint64_t desired,
                const int orders[2], bool is_weak, const void *pc);
void memory_fence(int order, const void *pc);
/* The newest value, as the kernel reads it in one step with what it does then. */
uint64_t memory_newest(uintptr_t address, uint32_t bytes, const void *pc);
/* All threads of the process have executed a full fence, and begin their sequences anew. */
void memory_fence_all(void);

/* orders.c: the order that counts for this operation. A wake-up and a restart of sequences have
 * none: they happen or are left out. */
#define HAPPENS 6
#define LEFT_OUT 0
int order_of(const void *pc, enum operation operation, int order);
void describe_pc(const void *pc, char *text, size_t bytes);

#endif
