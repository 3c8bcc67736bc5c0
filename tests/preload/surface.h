/* SPDX-License-Identifier: MIT */
/* tests/preload/surface.h - names of malloc's family that no header of libc declares.
 *
 * Owns        the declarations, and sizes that the compiler knows nothing about. Include program.h
 *             before it.
 */
#ifndef TESTS_PRELOAD_SURFACE_H
#define TESTS_PRELOAD_SURFACE_H

#include "program.h"

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void __libc_free(void *);
extern void *__libc_memalign(size_t, size_t);
extern void *__libc_valloc(size_t);
extern void *__libc_pvalloc(size_t);
extern int __posix_memalign(void **, size_t, size_t);
extern void free_sized(void *, size_t);
extern void free_aligned_sized(void *, size_t, size_t);
extern void cfree(void *);
extern void *reallocf(void *, size_t);

/* What errno is before a call that must leave it alone. */
#define UNTOUCHED 77

/* The compiler knows what the standard says of some sizes. */
static inline size_t hidden_bytes(size_t bytes)
{
    return (size_t)hidden((void *)bytes);
}

#endif
