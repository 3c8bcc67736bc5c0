/* SPDX-License-Identifier: MIT */
/* tests/interleave/search.c - all executions, one after the other, by their choices.
 *
 * The trail has the choices of an execution. The next one takes the last choice that has another
 * alternative, and the first alternative of each after it. Threads are fibres; each has the thread
 * pointer of a real thread that sleeps, so that thread-local variables are its own.
 */
#define _GNU_SOURCE
#include "machine.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STACK_BYTES (256 * 1024)
#define TRAIL_MOST 20000u
#define EVENTS_MOST 20000u
#define EVENTS_SHOWN 100u /* the last ones */
#define STEPS_MOST 5000u
#define EXECUTIONS_MOST 20000000u

struct choice {
    uint16_t taken, count;
};

enum thread_state { READY, YIELDED, ASLEEP, ASLEEP_FOR_A_TIME, ASLEEP_SHORTLY, OVER };

struct thread {
    void *stack, *stack_pointer;
    uintptr_t thread_pointer;
    void (*body)(void);
    enum thread_state state;
    const void *waits_for;
    uint32_t before_it; /* a bit for each thread that is to go on before this one, which yielded */
    bool is_late;       /* its time was over before it was woken */
    bool is_in_sequence, is_to_restart;
    jmp_buf sequence;
};

enum verdict { HOLDS, FAILED, BEGINS_ANEW };

static struct choice trail[TRAIL_MOST];
static uint32_t trail_length, depth;
static struct event events[EVENTS_MOST];
static uint32_t event_count;
static struct thread threads[THREADS_MOST];
static uint32_t thread_count;
static void *driver_stack_pointer;
static uintptr_t driver_thread_pointer;
static const struct harness *harness;
static uint32_t beyond; /* its bounds */
static uint32_t preemptions_left, oddities_left, time_outs_left, steps;
static uint64_t ms;
static enum verdict verdict;
static char failure[200];
static const void *failure_pcs[2]; /* where, if that says more */
static bool saw[64];
static uint32_t waiting, begun; /* a bit for each body that waits to begin, and that is to */
static uint32_t short_ms;
uint32_t self;
bool is_watching, is_concurrent;
static bool is_in_fibre;

const char *const operation_names[OPERATION_COUNT] = {
    "load",       "store",    "exchange",   "fetch_add",  "fetch_sub",
    "fetch_and",  "fetch_or", "fetch_xor",  "cas",        "cas",
    "failed cas", "fence",    "futex wait", "futex wake", "restart of sequences"};
const char *const order_names[] = {"relaxed", "consume", "acquire", "release",
                                   "acq_rel", "seq_cst", ""};

/* switch_stack(&save_to, load_from): what a function must keep is on the stacks. */
void switch_stack(void **save_to, void *load_from);
__asm__(".text\n.globl switch_stack\n.type switch_stack, @function\nswitch_stack:\n"
        "    push %rbp\n    push %rbx\n    push %r12\n    push %r13\n    push %r14\n"
        "    push %r15\n    mov %rsp, (%rdi)\n    mov %rsi, %rsp\n"
        "    pop %r15\n    pop %r14\n    pop %r13\n    pop %r12\n    pop %rbx\n"
        "    pop %rbp\n    ret\n.size switch_stack, .-switch_stack\n");

#define HAS_FSGSBASE 2u /* in AT_HWCAP2 */
#define ARCH_SET_FS 0x1002

static void set_thread_pointer(uintptr_t pointer)
{
    static int is_quick = -1;
    if (is_quick < 0)
        is_quick = (getauxval(AT_HWCAP2) & HAS_FSGSBASE) != 0;
    if (is_quick)
        __asm__ volatile("wrfsbase %0" ::"r"(pointer) : "memory");
    else
        syscall(SYS_arch_prctl, ARCH_SET_FS, pointer);
}

bool is_on_a_stack(uintptr_t address)
{
    for (uint32_t i = 0; i < thread_count; i++)
        if (address - (uintptr_t)threads[i].stack < STACK_BYTES)
            return true;
    return false;
}

static void go_to_driver(void)
{
    void *unused;
    set_thread_pointer(driver_thread_pointer);
    switch_stack(&unused, driver_stack_pointer);
}

_Noreturn static void give_up(enum verdict why)
{
    is_watching = false;
    verdict = why;
    go_to_driver();
    __builtin_unreachable();
}

_Noreturn void fail_at(const char *what, const void *pc, const void *other_pc)
{
    is_watching = false;
    snprintf(failure, sizeof failure, "%s", what);
    failure_pcs[0] = pc;
    failure_pcs[1] = other_pc;
    give_up(FAILED);
}

_Noreturn void interleave_fail(const char *what)
{
    fail_at(what, NULL, NULL);
}

_Noreturn void start_again(void)
{
    give_up(BEGINS_ANEW);
}

void note_event(struct event event)
{
    if (is_concurrent && event_count < EVENTS_MOST)
        events[event_count++] = event;
}

uint32_t choose(uint32_t count)
{
    if (count < 2)
        return 0;
    if (depth == TRAIL_MOST)
        interleave_fail("does not end: too many choices");
    if (depth == trail_length)
        trail[trail_length++] = (struct choice){0, (uint16_t)count};
    else if (trail[depth].count != count)
        interleave_fail("the checker: an execution does not depend on its choices alone");
    return trail[depth++].taken;
}

uint32_t choose_oddly(uint32_t count)
{
    uint32_t taken = oddities_left == 0 ? 0 : choose(count);
    oddities_left -= taken != 0;
    return taken;
}

static void resume(uint32_t thread)
{
    uint32_t before = self;
    if (thread == before)
        return;
    self = thread;
    set_thread_pointer(threads[thread].thread_pointer);
    switch_stack(&threads[before].stack_pointer, threads[thread].stack_pointer);
}

/* Those that may go on, without this one. */
static uint32_t find_others(uint32_t *others)
{
    uint32_t count = 0;
    for (uint32_t i = 1; i < thread_count; i++)
        if (i != self && threads[i].state == READY)
            others[count++] = i;
    for (uint32_t i = 1; i < thread_count; i++)
        if (threads[i].state == ASLEEP_SHORTLY ||
            (time_outs_left > 0 && threads[i].state == ASLEEP_FOR_A_TIME))
            others[count++] = i;
    for (uint32_t i = 1; count == 0 && i < thread_count; i++)
        if (threads[i].state == YIELDED)
            others[count++] = i;
    return count;
}

static bool is_asleep_for_a_time(uint32_t thread)
{
    return threads[thread].state == ASLEEP_FOR_A_TIME || threads[thread].state == ASLEEP_SHORTLY;
}

static bool is_asleep(uint32_t thread)
{
    return threads[thread].state == ASLEEP || is_asleep_for_a_time(thread);
}

static void resume_other(uint32_t thread)
{
    threads[thread].is_late |= is_asleep_for_a_time(thread);
    time_outs_left -= threads[thread].state == ASLEEP_FOR_A_TIME;
    threads[thread].state = READY;
    resume(thread);
}

/* Others go on; false: there is none. */
static bool leave(void)
{
    uint32_t others[THREADS_MOST + 2];
    uint32_t count = find_others(others);
    if (count == 0)
        return false;
    resume_other(others[choose(count)]);
    return true;
}

/* This thread went on, or cannot. */
static void note_step(void)
{
    for (uint32_t i = 1; i < thread_count; i++) {
        threads[i].before_it &= ~(1u << self);
        if (i != self && threads[i].state == YIELDED && threads[i].before_it == 0)
            threads[i].state = READY;
    }
}

void step(void)
{
    uint32_t others[THREADS_MOST + 2];
    if (!is_concurrent)
        return;
    if (++steps > STEPS_MOST)
        interleave_fail("does not end: too many steps");
    uint32_t count = preemptions_left == 0 ? 0 : find_others(others);
    while (count > 0 && threads[others[count - 1]].state == YIELDED)
        count--;
    uint32_t taken = choose(1 + count);
    if (taken != 0) {
        preemptions_left--;
        resume_other(others[taken - 1]);
    }
    note_step();
}

void yield_step(void)
{
    if (!is_concurrent)
        return;
    if (++steps > STEPS_MOST)
        interleave_fail("does not end: too many steps");
    note_step();
    threads[self].state = YIELDED;
    threads[self].before_it = 0;
    for (uint32_t i = 1; i < thread_count; i++)
        threads[self].before_it |= threads[i].state == READY ? 1u << i : 0;
    (void)leave();
    threads[self].state = READY;
}

_Noreturn static void fail_asleep(void)
{
    interleave_fail("no thread can go on: a wake-up is lost, or they wait for each other");
}

/* All are over, or asleep for good. */
static void end_asleep(void)
{
    for (uint32_t i = 1; i < thread_count; i++)
        if (threads[i].state != OVER && (waiting >> i & 1) == 0)
            fail_asleep();
    go_to_driver();
}

void sleep_on(const void *word, uint32_t most_ms)
{
    struct thread *thread = &threads[self];
    if (!is_concurrent)
        fail_asleep();
    thread->state = most_ms == 0          ? ASLEEP
                    : most_ms <= short_ms ? ASLEEP_SHORTLY
                                          : ASLEEP_FOR_A_TIME;
    thread->waits_for = word;
    thread->is_late = false;
    note_step();
    if (!leave())
        end_asleep();
    ms += thread->is_late ? most_ms : 0;
}

void interleave_let_wait(uint32_t bodies)
{
    waiting = bodies;
}

void interleave_end_waits(uint32_t most_ms)
{
    short_ms = most_ms;
}

void interleave_begin(uint32_t body)
{
    memory_order(self, body);
    begun |= 1u << body;
    wake_up(&begun + body, 1);
}

void interleave_wait_to_begin(void)
{
    is_watching = false;
    while ((begun >> self & 1) == 0)
        sleep_on(&begun + self, 0);
    begun &= ~(1u << self);
    is_watching = true;
}

void wake_up(const void *word, uint32_t most)
{
    for (; most > 0; most--) {
        uint32_t asleep[THREADS_MOST], count = 0;
        for (uint32_t i = 1; i < thread_count; i++)
            if (is_asleep(i) && threads[i].waits_for == word)
                asleep[count++] = i;
        if (count == 0)
            return;
        threads[asleep[choose(count)]].state = READY;
    }
}

jmp_buf *interleave_sequence_begin(void)
{
    threads[self].is_in_sequence = true;
    threads[self].is_to_restart = false;
    return &threads[self].sequence;
}

void interleave_sequence_end(void)
{
    threads[self].is_in_sequence = false;
}

void interleave_preempt(uint32_t thread)
{
    threads[thread].is_to_restart = threads[thread].is_in_sequence;
    memory_order(thread, self);
}

void restart_sequences(void)
{
    for (uint32_t i = 0; i < thread_count; i++)
        threads[i].is_to_restart = threads[i].is_in_sequence;
}

void leave_sequence(void)
{
    if (!threads[self].is_to_restart)
        return;
    threads[self].is_to_restart = false;
    is_watching = true;
    _longjmp(threads[self].sequence, 1);
}

void go_on_alone(void)
{
    for (uint32_t i = 1; i < thread_count; i++)
        if (i != self)
            threads[i].state = OVER;
    is_concurrent = false;
}

uint64_t model_ms(void)
{
    return ms;
}

uint32_t interleave_self(void)
{
    return self;
}

void interleave_note(uint32_t outcome)
{
    saw[outcome % 64] = true;
}

bool interleave_saw(uint32_t outcome)
{
    return saw[outcome % 64];
}

/* A fibre begins and ends here. */
static void run_body(void)
{
    is_watching = true;
    threads[self].body();
    is_watching = false;
    threads[self].state = OVER;
    note_step();
    if (is_concurrent && leave())
        __builtin_unreachable();
    if (is_concurrent)
        end_asleep();
    go_to_driver();
}

static void prepare(uint32_t index, void (*body)(void))
{
    struct thread *thread = &threads[index];
    void **top = (void **)(void *)((char *)thread->stack + STACK_BYTES);
    *--top = NULL; /* a function is entered with its stack 8 bytes off */
    *--top = (void *)run_body;
    thread->stack_pointer = top - 6;
    thread->body = body;
    thread->is_in_sequence = thread->is_to_restart = false;
    thread->state = (waiting & ~begun) >> index & 1 ? ASLEEP : READY;
    thread->waits_for = &begun + index;
}

static void run_from(uint32_t index)
{
    self = index;
    set_thread_pointer(threads[index].thread_pointer);
    is_in_fibre = true;
    switch_stack(&driver_stack_pointer, threads[index].stack_pointer);
    is_in_fibre = false;
}

static void run_alone(void (*body)(void))
{
    if (verdict != HOLDS || body == NULL)
        return;
    prepare(0, body);
    run_from(0);
}

static void run_bodies(void)
{
    for (uint32_t i = 1; i < thread_count; i++) {
        prepare(i, harness->bodies[i - 1]);
        memory_spawn(i);
    }
    uint32_t ready[THREADS_MOST + 2];
    self = 0;
    uint32_t count = find_others(ready);
    is_concurrent = true;
    if (count != 0) /* else all wait */
        run_from(ready[choose(count)]);
    is_concurrent = false;
    for (uint32_t i = 1; i < thread_count; i++)
        memory_join(i);
}

static uint32_t more(uint32_t bound)
{
    return bound == UNBOUNDED ? bound : bound + beyond;
}

static void run_once(void)
{
    verdict = HOLDS;
    depth = event_count = steps = 0;
    preemptions_left = more(harness->preemptions);
    oddities_left = more(harness->oddities);
    time_outs_left = harness->time_outs;
    ms = 1000;
    waiting = begun = short_ms = 0;
    memory_begin();
    run_alone(harness->start);
    if (verdict == HOLDS)
        run_bodies();
    run_alone(harness->end);
    memory_restore();
}

/* The next execution's choices; false: there is none. */
static bool turn_trail(void)
{
    while (trail_length > 0 && trail[trail_length - 1].taken + 1u == trail[trail_length - 1].count)
        trail_length--;
    if (trail_length > 0)
        trail[trail_length - 1].taken++;
    return trail_length > 0;
}

static void *lend_thread_pointer(void *to)
{
    __atomic_store_n((uintptr_t *)to, (uintptr_t)__builtin_thread_pointer(), __ATOMIC_RELEASE);
    for (;;)
        pause();
    return NULL;
}

static void on_fault(int signal)
{
    if (!is_in_fibre) {
        (void)sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
        return;
    }
    interleave_fail("touches memory that is not there");
}

static void furnish(void)
{
    static char signal_stack[64 * 1024];
    if (driver_thread_pointer != 0)
        return;
    driver_thread_pointer = (uintptr_t)__builtin_thread_pointer();
    for (uint32_t i = 0; i < THREADS_MOST; i++) {
        pthread_t lender;
        threads[i].stack =
            mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (threads[i].stack == MAP_FAILED ||
            pthread_create(&lender, NULL, lend_thread_pointer, &threads[i].thread_pointer) != 0)
            abort();
        while (__atomic_load_n(&threads[i].thread_pointer, __ATOMIC_ACQUIRE) == 0)
            sched_yield();
    }
    stack_t stack = {.ss_sp = signal_stack, .ss_size = sizeof signal_stack};
    struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_ONSTACK | SA_NODEFER};
    sigaltstack(&stack, NULL);
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
}

struct explored interleave_explore(const struct harness *asked)
{
    struct explored explored = {0, 0, NULL};
    furnish();
    if (harness != asked)
        memory_forget();
    memset(saw, 0, sizeof saw);
    harness = asked;
    thread_count = 1;
    while (thread_count < THREADS_MOST && harness->bodies[thread_count - 1] != NULL)
        thread_count++;
    trail_length = 0;
    do {
        run_once();
        if (verdict == BEGINS_ANEW) {
            explored.executions = trail_length = 0;
            continue;
        }
        explored.executions++;
        if (explored.choices_most < depth)
            explored.choices_most = depth;
        if (verdict == HOLDS && explored.executions == EXECUTIONS_MOST)
            snprintf(failure, sizeof failure, "too many executions"), verdict = FAILED;
    } while (verdict == BEGINS_ANEW || (verdict == HOLDS && turn_trail()));
    explored.failure = verdict == FAILED ? failure : NULL;
    return explored;
}

static void print_trace(void)
{
    char where[300];
    for (uint32_t i = 0; i < 2 && failure_pcs[i] != NULL; i++) {
        describe_pc(failure_pcs[i], where, sizeof where);
        printf("    at %s\n", where);
    }
    if (event_count > EVENTS_SHOWN)
        printf("    ... %u operations\n", event_count - EVENTS_SHOWN);
    for (uint32_t i = event_count > EVENTS_SHOWN ? event_count - EVENTS_SHOWN : 0; i < event_count;
         i++) {
        const struct event *event = &events[i];
        describe_pc(event->pc, where, sizeof where);
        printf("    %u: %-10s %-8s %#lx = %#lx%s  %s\n", event->thread,
               operation_names[event->operation], order_names[event->order],
               (unsigned long)event->address, (unsigned long)event->value,
               event->age != 0 ? " (not the newest)" : "", where);
    }
}

bool holds_within(const struct harness *asked)
{
    struct explored explored = interleave_explore(asked);
    printf("%s: %lu executions, up to %u choices, %u preemptions, %u oddities: %s\n", asked->name,
           (unsigned long)explored.executions, explored.choices_most, more(asked->preemptions),
           more(asked->oddities), explored.failure == NULL ? "holds" : explored.failure);
    if (explored.failure != NULL)
        print_trace();
    fflush(stdout);
    if (explored.failure != NULL && getenv("HAK_REPLAY") != NULL) {
        raise(SIGTRAP); /* for a debugger: the same execution once more */
        run_once();
    }
    return explored.failure == NULL;
}

bool interleave_hold(const struct harness *harnesses, uint32_t count)
{
    bool hold = true;
    beyond = getenv("HAK_FULL") != NULL;
    for (uint32_t i = 0; hold && i < count; i++)
        hold = holds_within(&harnesses[i]);
    beyond = 0;
    return hold;
}
