/* SPDX-License-Identifier: MIT */
/* api/malloc_x86_64.S - the hot path, whole, for x86-64.
 *
 * What it walks is drawn in heap/bins.h. Anything unusual - a thread without a cache, an empty or
 * full bin, a large or foreign block, NULL - goes to the slow function before anything is written,
 * with the arguments as they came.
 *
 * From `start` to `end` is a restartable sequence: the thread names it in its area, finds the bins
 * of its processor, and commits by one store, the last instruction. A thread that the kernel
 * interrupts in between begins anew at the function's entry; so nothing that it changed before
 * matters, and registers with arguments are never written. Nothing comes between the store that
 * names the sequence and `start`: interrupted there, the thread would go on without one, since the
 * kernel forgets a sequence that the thread is not in. */
#include "api/malloc_names.h"
#include "base/assembly.h"

#define HOT_BYTES_MAX 32768
#define CLASS_BYTES_MAX 131072

    .hidden hak_here, hak_rseq_id_offset, hak_region, hak_bins_of, hak_malloc_noted
    .hidden hak_operators_may_be_replaced, hak_bin_of_line
    .set    REGION_COMMITTED, 8
    .set    REGION_TAGS, 16
    .set    SIZES, -(32768 + 64)            /* from hak_bins_of (heap/cpu_cache_x86_64.S) */

.macro ENTRY name
    .section .text.hot, "ax"
    .p2align 6
    FUNCTION \name
.endm
.macro ENTRY_END name
    SEQUENCE_END \name, .data.rel.ro.hak_hot
.endm

/* A form of C++'s that calls others where the program replaces some (api/replaced.h) goes to the
 * slow function, behind the label 1. */
#define PLAIN   0
#define DERIVED 1
.macro FORM form
.if \form == DERIVED
    cmpb    $0, hak_operators_may_be_replaced(%rip)
    jne     1f
.endif
.endm

/* (bytes, ...) -> block, or what the slow function returns */
.macro WAY_IN name, slow, form=PLAIN
    .hidden \slow
ENTRY \name
    FORM    \form
    leaq    hak_bins_of(%rip), %rcx
    cmpq    $HOT_BYTES_MAX, %rdi
    ja      3f
    movzbl  SIZES(%rcx,%rdi), %r8d                  /* bin */
4:  movq    hak_here@GOTTPOFF(%rip), %rdx
    leaq    .Lsection_\name(%rip), %rsi
    movq    %fs:(%rdx), %rdx                        /* the thread's area */
    movl    hak_rseq_id_offset(%rip), %r9d
    movq    %rsi, 8(%rdx)
.Lstart_\name:
    movl    (%rdx,%r9), %eax                        /* id */
    movq    (%rcx,%rax,8), %rsi                     /* struct bins */
    movzwl  (%rsi,%r8,4), %eax                      /* top */
    movq    (%rsi,%rax,8), %rax                     /* block */
    testq   %rax, %rax
    je      1f
    subl    $0xffff, (%rsi,%r8,4)                   /* top, countdown */
.Lend_\name:
    jc      2f
    ret
1:  jmp     \slow
2:  movq    %rdi, %rcx
    movq    %rax, %rdi
    movq    %r8, %rdx
    jmp     hak_malloc_noted                        /* (block, bins, bin, bytes) */
3:  cmpq    $CLASS_BYTES_MAX, %rdi                  /* a table that does not change */
    ja      1b
    leaq    63(%rdi), %r8
    leaq    hak_bin_of_line(%rip), %rdx
    shrq    $6, %r8
    movzbl  (%rdx,%r8), %r8d                        /* bin */
    jmp     4b
ENTRY_END \name
.endm

/* (block, ...); `kind`: what the block is said to be, or -1: nothing is said */
.macro WAY_OUT_HOT name, form=PLAIN
ENTRY \name
    FORM    \form
    movq    %rdi, %rax
    subq    hak_region(%rip), %rax
    cmpq    hak_region+REGION_COMMITTED(%rip), %rax
    jae     1f
    shrq    $16, %rax
    addq    hak_region+REGION_TAGS(%rip), %rax
    movq    hak_here@GOTTPOFF(%rip), %rcx
    leaq    .Lsection_\name(%rip), %r8
    movq    %fs:(%rcx), %rcx                        /* the thread's area */
    movzbl  (%rax), %eax                            /* tag: the bin */
    movl    hak_rseq_id_offset(%rip), %r9d
    movq    %r8, 8(%rcx)
.Lstart_\name:
    leaq    hak_bins_of(%rip), %r8
    movl    (%rcx,%r9), %ecx                        /* id */
    movq    (%r8,%rcx,8), %r9                       /* struct bins */
    movzwl  (%r9,%rax,4), %ecx                      /* top */
    cmpw    4(%r9,%rax,4), %cx                      /* limit */
    jbe     1f
    cmpq    (%r9,%rcx,8), %rdi                      /* freed just before */
    je      1f
    movq    %rdi, -8(%r9,%rcx,8)
    subl    $1, (%r9,%rax,4)
.Lend_\name:
    ret
1:
.endm

    .hidden hak_free_slow, hak_free_claimed_slow
/* What the slow function takes: (block, bytes, alignment, kind). */
.macro WAY_OUT name, kind, form=PLAIN
WAY_OUT_HOT \name, \form
    movq    $-1, %rsi
    xorl    %edx, %edx
    movl    $\kind, %ecx
    jmp     hak_free_claimed_slow
ENTRY_END \name
.endm
.macro WAY_OUT_SIZED name, kind, form=PLAIN
WAY_OUT_HOT \name, \form
    xorl    %edx, %edx
    movl    $\kind, %ecx
    jmp     hak_free_claimed_slow
ENTRY_END \name
.endm
.macro WAY_OUT_ALIGNED name, kind, form=PLAIN
WAY_OUT_HOT \name, \form
    movq    %rsi, %rdx
    movq    $-1, %rsi
    movl    $\kind, %ecx
    jmp     hak_free_claimed_slow
ENTRY_END \name
.endm
.macro WAY_OUT_SIZED_ALIGNED name, kind, form=PLAIN
WAY_OUT_HOT \name, \form
    movl    $\kind, %ecx
    jmp     hak_free_claimed_slow
ENTRY_END \name
.endm

/* enum mark_kind (misuse/mark.h) */
#define MALLOC    0
#define NEW       1
#define NEW_ARRAY 2

WAY_IN hak_malloc, hak_malloc_slow
WAY_OUT_HOT hak_free
    jmp     hak_free_slow
ENTRY_END hak_free

WAY_IN hak_new, hak_new_slow
WAY_IN hak_new_array, hak_new_array_slow, DERIVED
WAY_IN hak_new_nothrow, hak_new_nothrow_slow, DERIVED
WAY_IN hak_new_array_nothrow, hak_new_array_nothrow_slow, DERIVED

WAY_OUT hak_delete, NEW
WAY_OUT hak_delete_array, NEW_ARRAY, DERIVED
WAY_OUT_SIZED hak_free_sized, MALLOC
WAY_OUT_SIZED hak_delete_sized, NEW, DERIVED
WAY_OUT_SIZED hak_delete_array_sized, NEW_ARRAY, DERIVED
WAY_OUT_ALIGNED hak_delete_aligned, NEW
WAY_OUT_ALIGNED hak_delete_array_aligned, NEW_ARRAY, DERIVED
WAY_OUT_SIZED_ALIGNED hak_delete_sized_aligned, NEW, DERIVED
WAY_OUT_SIZED_ALIGNED hak_delete_array_sized_aligned, NEW_ARRAY, DERIVED

/* C23 has the alignment first. */
WAY_OUT_HOT hak_free_aligned_sized
    xchgq   %rsi, %rdx
    movl    $MALLOC, %ecx
    jmp     hak_free_claimed_slow
ENTRY_END hak_free_aligned_sized

    .section .text.hot, "ax"
HAK_MALLOC_NAMES(HAK_LIBC_ALIAS, HAK_PUBLIC_ALIAS, HAK_WEAK_ALIAS)

    .section .note.GNU-stack, "", @progbits
