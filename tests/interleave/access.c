/* SPDX-License-Identifier: MIT */
/* tests/interleave/access.c - what the compiler calls for each access (-fsanitize=thread), and what
 * the code calls of libc and of the kernel (the linker's --wrap).
 *
 * While no code under test runs, as in the checker itself and in the program's start, all of it
 * does what it says and no more.
 */
#include "machine.h"

#include <string.h>
#include <sys/syscall.h>

#define HERE __builtin_return_address(0)
#define ATOMIC_ORDER __ATOMIC_SEQ_CST

/* Plain accesses. */
static void touch(const void *address, size_t bytes, bool is_write, const void *pc)
{
    if (!is_watching)
        return;
    is_watching = false;
    memory_touch((uintptr_t)address, bytes, is_write, pc);
    is_watching = true;
}

void __tsan_init(void)
{
}

void __tsan_func_entry(void *pc)
{
    (void)pc;
}

void __tsan_func_exit(void)
{
}

#define PLAIN(name, bytes, is_write)                                                               \
    void __tsan_##name(void *address)                                                              \
    {                                                                                              \
        touch(address, bytes, is_write, HERE);                                                     \
    }
#define PLAIN_SIZE(bytes)                                                                          \
    PLAIN(read##bytes, bytes, false)                                                               \
    PLAIN(write##bytes, bytes, true)                                                               \
    PLAIN(unaligned_read##bytes, bytes, false)                                                     \
    PLAIN(unaligned_write##bytes, bytes, true)                                                     \
    PLAIN(volatile_read##bytes, bytes, false)                                                      \
    PLAIN(volatile_write##bytes, bytes, true)
PLAIN_SIZE(1)
PLAIN_SIZE(2)
PLAIN_SIZE(4)
PLAIN_SIZE(8)
PLAIN_SIZE(16)

void __tsan_read_range(void *address, size_t bytes)
{
    touch(address, bytes, false, HERE);
}

void __tsan_write_range(void *address, size_t bytes)
{
    touch(address, bytes, true, HERE);
}

void *__real_memcpy(void *to, const void *from, size_t bytes);
void *__wrap_memcpy(void *to, const void *from, size_t bytes)
{
    touch(from, bytes, false, HERE);
    touch(to, bytes, true, HERE);
    return __real_memcpy(to, from, bytes);
}

void *__real_memset(void *to, int value, size_t bytes);
void *__wrap_memset(void *to, int value, size_t bytes)
{
    touch(to, bytes, true, HERE);
    return __real_memset(to, value, bytes);
}

/* Atomic operations. */
#define CHANGE(bits, name, operation, plainly)                                                     \
    uint##bits##_t __tsan_atomic##bits##_##name(volatile uint##bits##_t *address,                  \
                                                uint##bits##_t operand, int order)                 \
    {                                                                                              \
        if (!is_watching)                                                                          \
            return plainly(address, operand, ATOMIC_ORDER);                                        \
        is_watching = false;                                                                       \
        uint64_t old = memory_change((uintptr_t)address, bits / 8, operation, operand,             \
                                     order_of(HERE, operation, order), HERE);                      \
        is_watching = true;                                                                        \
        return (uint##bits##_t)old;                                                                \
    }

#define COMPARE(bits, name, is_weak)                                                               \
    int __tsan_atomic##bits##_compare_exchange_##name(                                             \
        volatile uint##bits##_t *address, uint##bits##_t *expected, uint##bits##_t desired,        \
        int order, int failure_order)                                                              \
    {                                                                                              \
        if (!is_watching)                                                                          \
            return __atomic_compare_exchange_n(address, expected, desired, false, ATOMIC_ORDER,    \
                                               ATOMIC_ORDER);                                      \
        is_watching = false;                                                                       \
        int orders[2] = {order_of(HERE, is_weak ? CAS_WEAK : CAS, order),                          \
                         order_of(HERE, CAS_FAILED, failure_order)};                               \
        uint64_t wanted = *expected;                                                               \
        bool is_done =                                                                             \
            memory_cas((uintptr_t)address, bits / 8, &wanted, desired, orders, is_weak, HERE);     \
        if (!is_done)                                                                              \
            *expected = (uint##bits##_t)wanted;                                                    \
        is_watching = true;                                                                        \
        return is_done;                                                                            \
    }

#define ATOMICS(bits)                                                                              \
    uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t *address, int order)   \
    {                                                                                              \
        if (!is_watching)                                                                          \
            return __atomic_load_n(address, ATOMIC_ORDER);                                         \
        is_watching = false;                                                                       \
        uint64_t value =                                                                           \
            memory_load((uintptr_t)address, bits / 8, order_of(HERE, LOAD, order), HERE);          \
        is_watching = true;                                                                        \
        return (uint##bits##_t)value;                                                              \
    }                                                                                              \
    void __tsan_atomic##bits##_store(volatile uint##bits##_t *address, uint##bits##_t value,       \
                                     int order)                                                    \
    {                                                                                              \
        if (!is_watching) {                                                                        \
            __atomic_store_n(address, value, ATOMIC_ORDER);                                        \
            return;                                                                                \
        }                                                                                          \
        is_watching = false;                                                                       \
        memory_store((uintptr_t)address, bits / 8, value, order_of(HERE, STORE, order), HERE);     \
        is_watching = true;                                                                        \
    }                                                                                              \
    CHANGE(bits, exchange, EXCHANGE, __atomic_exchange_n)                                          \
    CHANGE(bits, fetch_add, ADD, __atomic_fetch_add)                                               \
    CHANGE(bits, fetch_sub, SUB, __atomic_fetch_sub)                                               \
    CHANGE(bits, fetch_and, AND, __atomic_fetch_and)                                               \
    CHANGE(bits, fetch_or, OR, __atomic_fetch_or)                                                  \
    CHANGE(bits, fetch_xor, XOR, __atomic_fetch_xor)                                               \
    COMPARE(bits, strong, false)                                                                   \
    COMPARE(bits, weak, true)
ATOMICS(8)
ATOMICS(16)
ATOMICS(32)
ATOMICS(64)

void __tsan_atomic_thread_fence(int order)
{
    if (!is_watching)
        return;
    is_watching = false;
    memory_fence(order_of(HERE, FENCE, order), HERE);
    is_watching = true;
}

void __tsan_atomic_signal_fence(int order)
{
    (void)order;
}

/* The kernel (os/os.h). */
void __real_hak_os_futex_wait(const void *word, uint32_t value, uint32_t timeout_ms);
void __wrap_hak_os_futex_wait(const void *word, uint32_t value, uint32_t timeout_ms)
{
    if (!is_watching) {
        __real_hak_os_futex_wait(word, value, timeout_ms);
        return;
    }
    is_watching = false;
    uint64_t found = memory_newest((uintptr_t)word, 4, HERE);
    note_event((struct event){HERE, (uintptr_t)word, found, (uint8_t)self, WAIT, HAPPENS, 0});
    if (found == value && choose_oddly(2) == 0) /* it may return for no reason */
        sleep_on(word, timeout_ms);
    is_watching = true;
}

void __real_hak_os_futex_wake(const void *word, uint32_t count);
void __wrap_hak_os_futex_wake(const void *word, uint32_t count)
{
    if (!is_watching) {
        __real_hak_os_futex_wake(word, count);
        return;
    }
    is_watching = false;
    step();
    note_event((struct event){HERE, (uintptr_t)word, count, (uint8_t)self, WAKE, HAPPENS, 0});
    if (order_of(HERE, WAKE, HAPPENS) == HAPPENS)
        wake_up(word, count);
    is_watching = true;
}

/* Its uses there: a short sleep, and the mask of signals, of which none come. */
long __real_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    if (!is_watching || number == SYS_getpid)
        return __real_syscall(number, a, b, c, d, e, f);
    if (number == SYS_rt_sigprocmask)
        return 0;
    is_watching = false;
    yield_step();
    is_watching = true;
    return 0;
}

void __real_hak_os_yield(void);
void __wrap_hak_os_yield(void)
{
    if (!is_watching) {
        __real_hak_os_yield();
        return;
    }
    is_watching = false;
    yield_step();
    is_watching = true;
}

uint64_t __real_hak_os_clock_ms(void);
uint64_t __wrap_hak_os_clock_ms(void)
{
    return is_watching ? model_ms() : __real_hak_os_clock_ms();
}

uint64_t __real_hak_os_clock_ns(void);
uint64_t __wrap_hak_os_clock_ns(void)
{
    return is_watching ? model_ms() * 1000000 : __real_hak_os_clock_ns();
}

bool __real_hak_os_rseq_fence(void);
bool __wrap_hak_os_rseq_fence(void)
{
    if (!is_watching)
        return __real_hak_os_rseq_fence();
    is_watching = false;
    step();
    if (order_of(HERE, RESTART, HAPPENS) == HAPPENS) {
        memory_fence_all();
        restart_sequences();
    }
    note_event((struct event){HERE, 0, 0, (uint8_t)self, RESTART, HAPPENS, 0});
    is_watching = true;
    return true;
}

/* The handlers of fork, which only a harness calls. */
static void (*before_fork)(void), (*after_fork)(void);

void __wrap_hak_os_at_fork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void))
{
    (void)in_parent;
    before_fork = before;
    after_fork = in_child;
}

void interleave_fork(void)
{
    before_fork();
    go_on_alone();
    after_fork();
}

/* Which heap is near, and no more. */
uint32_t __real_hak_os_processor(void);
uint32_t __wrap_hak_os_processor(void)
{
    return is_watching ? 0 : __real_hak_os_processor();
}

_Noreturn void __real_hak_panic(const char *what);
_Noreturn void __wrap_hak_panic(const char *what)
{
    if (is_watching)
        interleave_fail(what);
    __real_hak_panic(what);
}

_Noreturn void __real_hak_misuse(const char *what, const void *block, size_t bytes,
                                 const char *state);
_Noreturn void __wrap_hak_misuse(const char *what, const void *block, size_t bytes,
                                 const char *state)
{
    if (is_watching)
        interleave_fail(what);
    __real_hak_misuse(what, block, bytes, state);
}
