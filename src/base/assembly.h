/* SPDX-License-Identifier: MIT */
/* base/assembly.h - what assembly files share: names, and the beginning and end of functions.
 *
 * Owns        nothing.
 * Invariants  the counterpart of base/compiler.h: names of libc's are given in builds that take
 *             malloc's place, hakmem's own in all. A restartable sequence lasts from `start` to
 *             `end` of a function and begins anew at the function's entry.
 * Tests       tests/golden/, tests/install/exports.txt
 */
#ifndef HAK_BASE_ASSEMBLY_H
#define HAK_BASE_ASSEMBLY_H

#define HAK_PUBLIC_ALIAS(name, target)                                                             \
    .globl name;                                                                                   \
    .type name, @function;                                                                         \
    .set name, target;
#if HAK_INTERPOSE
#define HAK_LIBC_ALIAS(name, target) HAK_PUBLIC_ALIAS(name, target)
#define HAK_WEAK_ALIAS(name, target)                                                               \
    .weak name;                                                                                    \
    .type name, @function;                                                                         \
    .set name, target;
#else
#define HAK_LIBC_ALIAS(name, target)
#define HAK_WEAK_ALIAS(name, target)
#endif

#ifdef __ASSEMBLER__
/* clang-format off */

/* Opens a function and closes it. */
.macro FUNCTION name
    .globl  \name
    .hidden \name
    .type   \name, %function
\name:
    .cfi_startproc
.endm
.macro FUNCTION_END name
    .cfi_endproc
    .size   \name, . - \name
.endm

/* Closes a function with a sequence, from .Lstart_NAME to .Lend_NAME, and says so in `table`. */
.macro SEQUENCE_END name, table
    FUNCTION_END \name
#if defined(__x86_64__)
    .byte   0x0f, 0xb9, 0x3d                /* ud1: the signature is never an instruction */
    .long   0x53053053
.Labort_\name:
    jmp     \name
#else
    .inst   0xd428bc00                      /* brk: the signature */
.Labort_\name:
    b       \name
#endif
    .section \table, "aw"
    .p2align 5
.Lsection_\name:
    .long   0, 0                            /* version, flags */
    .quad   .Lstart_\name, .Lend_\name - .Lstart_\name, .Labort_\name
    .section __rseq_cs_ptr_array, "aw"      /* for debuggers */
    .quad   .Lsection_\name
.endm

/* clang-format on */
#endif

#endif
