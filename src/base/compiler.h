/* SPDX-License-Identifier: MIT */
/* base/compiler.h - what the code needs from the compiler, in one place.
 *
 * Owns        the build switches HAK_INTERPOSE, HAK_CHECK_LEVEL, HAK_TINY and HAK_SMALL_WINDOW,
 *             which the build always defines, and the attributes that the rest of the code uses by
 *             name.
 * Invariants  no other folder but os/ tests a preprocessor switch.
 * Tests       tests/unit/base/compiler_test.c
 */
#ifndef HAK_BASE_COMPILER_H
#define HAK_BASE_COMPILER_H

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if !defined(__LP64__)
#error "hakmem needs a 64-bit target: its address map covers up to 1 TiB"
#endif

#define HAK_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define HAK_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define HAK_NOINLINE __attribute__((noinline))
#define HAK_INLINE static inline __attribute__((always_inline))
#define HAK_UNUSED __attribute__((unused))
#define HAK_EXPORT __attribute__((visibility("default")))
/* Begins on a cache line of its own: a hot function then takes no more lines than it must. */
#define HAK_HOT __attribute__((hot, aligned(64)))
/* Reads what others may be writing, and believes it only after another look: a race that
 * ThreadSanitizer is not to report. */
#define HAK_RACY __attribute__((noinline, no_sanitize("thread")))
/* Jumps to what it calls last, even where the build does not optimise. Clang has no such attribute;
 * its builds do so where they optimise. */
#if defined(__clang__)
#define HAK_ENDS_IN_JUMP
#else
#define HAK_ENDS_IN_JUMP __attribute__((optimize("optimize-sibling-calls")))
#endif
/* Zero at first, and read or written by every process, in a file with large tables of zeros: stands
 * with the data that is not zero, where others are. */
#define HAK_AT_HAND __attribute__((section(".data")))
/* A text that every process reads: stands with the constants, not with other texts, which hardly
 * any process reads (docs/adr/0046-short-programs.md). */
#define HAK_TEXT_AT_HAND(words)                                                                    \
    (__extension__({                                                                               \
        static const char hak_words[] = words;                                                     \
        hak_words;                                                                                 \
    }))
#define HAK_CACHE_LINE_BYTES 64
#define HAK_CACHE_ALIGNED alignas(HAK_CACHE_LINE_BYTES)

/* Thread-local, reached by one offset from the thread pointer. */
#define HAK_TLS __thread __attribute__((tls_model("initial-exec")))

#define hak_static_assert(condition, message) _Static_assert(condition, message)

/* A fence for the compiler only: the processor may still reorder. */
#define hak_compiler_fence() __atomic_signal_fence(__ATOMIC_SEQ_CST)

/* A hint that this thread spins. */
#if defined(__x86_64__)
#define hak_cpu_relax() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define hak_cpu_relax() __asm__ volatile("yield" ::: "memory")
#else
#define hak_cpu_relax() hak_compiler_fence()
#endif

/* Sanitizers know threads that libc made, and no others (os/thread.h). */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define HAK_OWN_THREADS_ALLOWED 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define HAK_OWN_THREADS_ALLOWED 0
#endif
#endif
#ifndef HAK_OWN_THREADS_ALLOWED
#define HAK_OWN_THREADS_ALLOWED 1
#endif

#if HAK_INTERPOSE
/* Where syscall(2) is called here, the kernel is, by os/kernel_call.c: not another library that has
 * the name as well, and locks of its own around it. */
long syscall(long number, ...) __asm__("hak_kernel_call");
#endif

/* Gives `target`, defined in the same file, the name `name` as well: a public one in every build,
 * or libc's in those that take malloc's place. */
#if defined(__clang__)
#define HAK_LIKE(target)
#else
#define HAK_LIKE(target) , copy(target)
#endif
#define HAK_PUBLIC_ALIAS(name, target)                                                             \
    extern __typeof__(target) name                                                                 \
        __attribute__((alias(#target), used, visibility("default") HAK_LIKE(target)));
#if HAK_INTERPOSE
#define HAK_LIBC_ALIAS(name, target) HAK_PUBLIC_ALIAS(name, target)
/* The same for a name that is not libc's: a program that has its own keeps it. */
#define HAK_WEAK_ALIAS(name, target)                                                               \
    extern __typeof__(target) name                                                                 \
        __attribute__((weak, alias(#target), used, visibility("default") HAK_LIKE(target)));
/* Declares what the loader finds by `name`, which `own` has as well: the program's, if it has
 * one. */
#define HAK_DECLARE_LOADERS(name, own)                                                             \
    extern __typeof__(own) name __attribute__((visibility("default")));
#else
#define HAK_LIBC_ALIAS(name, target)
#define HAK_WEAK_ALIAS(name, target)
#define HAK_DECLARE_LOADERS(name, own) static __typeof__(own) *const name = own;
#endif

/* Whether a name leads to this function, as the loader has bound it. The compiler is not asked:
 * clang takes two names for two functions. */
HAK_INLINE bool hak_is_same_code(const void *name, const void *function)
{
    __asm__("" : "+r"(name));
    return name == function;
}

#endif
