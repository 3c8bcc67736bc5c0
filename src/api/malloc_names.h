/* SPDX-License-Identifier: MIT */
/* api/malloc_names.h - libc's and C++'s names of the hot path's functions.
 *
 * Owns        HAK_MALLOC_NAMES, for C and for assembly.
 * Invariants  plain macros, nothing that only C knows. LIBC(name, function) for names in builds
 *             that take malloc's place, PUBLIC for those in all; WEAK as LIBC, for what a program
 *             may define itself.
 * Tests       tests/install/exports.txt
 */
#ifndef HAK_API_MALLOC_NAMES_H
#define HAK_API_MALLOC_NAMES_H

/* The C++ allocation functions by their mangled names ([new.delete], Itanium C++ ABI); the others
 * are in replaced.c, long.c and glibc.c. */
#define HAK_MALLOC_NAMES(LIBC, PUBLIC, WEAK)                                                       \
    LIBC(malloc, hak_malloc)                                                                       \
    LIBC(free, hak_free)                                                                           \
    LIBC(cfree, hak_free)                                                                          \
    LIBC(__libc_malloc, hak_malloc)                                                                \
    LIBC(__libc_free, hak_free)                                                                    \
    LIBC(free_sized, hak_free_sized)                                                               \
    LIBC(free_aligned_sized, hak_free_aligned_sized)                                               \
    LIBC(aligned_alloc, hak_aligned_alloc)                                                         \
    LIBC(posix_memalign, hak_posix_memalign)                                                       \
    LIBC(memalign, hak_memalign)                                                                   \
    LIBC(__posix_memalign, hak_posix_memalign)                                                     \
    LIBC(__libc_memalign, hak_memalign)                                                            \
    PUBLIC(hakmem_malloc, hak_malloc)                                                              \
    PUBLIC(hakmem_free, hak_free)                                                                  \
    WEAK(_Znwm, hak_new)                                                                           \
    WEAK(_Znam, hak_new_array)                                                                     \
    WEAK(_ZnwmRKSt9nothrow_t, hak_new_nothrow)                                                     \
    WEAK(_ZnamRKSt9nothrow_t, hak_new_array_nothrow)                                               \
    WEAK(_ZnwmSt11align_val_t, hak_new_aligned)                                                    \
    WEAK(_ZnamSt11align_val_t, hak_new_array_aligned)                                              \
    WEAK(_ZnwmSt11align_val_tRKSt9nothrow_t, hak_new_aligned_nothrow)                              \
    WEAK(_ZnamSt11align_val_tRKSt9nothrow_t, hak_new_array_aligned_nothrow)                        \
    WEAK(_ZdlPv, hak_delete)                                                                       \
    WEAK(_ZdaPv, hak_delete_array)                                                                 \
    WEAK(_ZdlPvm, hak_delete_sized)                                                                \
    WEAK(_ZdaPvm, hak_delete_array_sized)                                                          \
    WEAK(_ZdlPvSt11align_val_t, hak_delete_aligned)                                                \
    WEAK(_ZdaPvSt11align_val_t, hak_delete_array_aligned)                                          \
    WEAK(_ZdlPvmSt11align_val_t, hak_delete_sized_aligned)                                         \
    WEAK(_ZdaPvmSt11align_val_t, hak_delete_array_sized_aligned)

#endif
