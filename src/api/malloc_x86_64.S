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

#define EVEN_BYTES_MAX  4096
#define HOT_BYTES_MAX   32768
#define CLASS_BYTES_MAX 131072
/* Of a block of any class; of one that is a multiple of a line; from where on only powers of two
 * serve above EVEN_BYTES_MAX; the most that is served here, a small page (slab/size_class.c). */
#define ORDINARY_ALIGNMENT 16
#define LINE_ALIGNMENT     64
#define POWERS_ALIGNMENT   512
#define PAGE_ALIGNMENT     4096

    .hidden hak_here, hak_rseq_id_offset, hak_region, hak_bins_of, hak_malloc_noted
    .hidden hak_operators_may_be_replaced, hak_bin_of_line, hak_draw_mean_bytes
    .hidden hak_aligned_noted, hak_posix_memalign_noted
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

/* Pops from the bin %r8 of the bins by id at %rcx: the block in %rax, struct bins in `bins`. To the
 * label 1 where the bin is empty; carry: the countdown passed 0. */
.macro POP name, area, section, bins
    movq    hak_here@GOTTPOFF(%rip), \area
    leaq    .Lsection_\name(%rip), \section
    movq    %fs:(\area), \area                      /* the thread's area */
    movl    hak_rseq_id_offset(%rip), %r9d
    movq    \section, 8(\area)
.Lstart_\name:
    movl    (\area,%r9), %eax                       /* id */
    movq    (%rcx,%rax,8), \bins                    /* struct bins */
    movzwl  (\bins,%r8,4), %eax                     /* top */
    movq    (\bins,%rax,8), %rax                    /* block */
    testq   %rax, %rax
    je      1f
    subl    $0xffff, (\bins,%r8,4)                  /* top, countdown */
.Lend_\name:
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
4:  POP     \name, %rdx, %rsi, %rsi
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

/* Behind FORM: the block in %rax, its bin in %r8, and struct bins in %r9. Or to the slow function,
 * behind the label 1: for an alignment that is no power of two from `least` to a small page, one of
 * 128 or 256 above 4 KiB, a block above 128 KiB, while samples are drawn, and where the bin is
 * empty. Bytes that are 0, or would pass the end of the address space, lead to the bin 0, which
 * takes nothing. */
.macro WAY_IN_ALIGNED name, bytes, alignment, least
    leaq    -1(\alignment), %rcx
    leaq    -\least(\alignment), %rax
    leaq    (\bytes,%rcx), %r8
    testq   %rcx, \alignment
    jne     1f
    cmpq    $PAGE_ALIGNMENT - \least, %rax
    ja      1f
    cmpq    $0, hak_draw_mean_bytes(%rip)
    jne     1f
    notq    %rcx
    andq    %rcx, %r8                               /* bytes, rounded up */
    cmpq    $EVEN_BYTES_MAX, %r8
    ja      3f
2:  leaq    hak_bins_of(%rip), %rcx
    movzbl  SIZES(%rcx,%r8), %r8d                   /* bin */
4:  POP     \name, %r10, %rax, %r9
    jc      7f
.endm
/* What follows: the returns and the label 7, then the rest, then the way to the slow function. */
.macro WAY_IN_ALIGNED_REST alignment
3:  cmpq    $CLASS_BYTES_MAX, %r8
    ja      1f
    cmpq    $POWERS_ALIGNMENT, \alignment
    jb      5f
    leaq    -1(%r8), %rcx
    movl    $2, %r8d
    bsrl    %ecx, %ecx
    shll    %cl, %r8d                               /* the next power of two */
6:  leaq    hak_bin_of_line(%rip), %rcx
    addl    $63, %r8d
    shrl    $6, %r8d
    movzbl  (%rcx,%r8), %r8d                        /* bin */
    leaq    hak_bins_of(%rip), %rcx
    jmp     4b
5:  cmpq    $LINE_ALIGNMENT, \alignment
    ja      1f
    cmpq    $ORDINARY_ALIGNMENT, \alignment
    ja      6b
    cmpq    $HOT_BYTES_MAX, %r8
    ja      6b
    jmp     2b
1:
.endm

/* (alignment, bytes), or (bytes, alignment, ...) with what the slow function takes besides: `kind`
 * and the partition */
.macro WAY_IN_BLOCK name, slow, bytes, alignment, form=PLAIN, kind=-1
    .hidden \slow
ENTRY \name
    FORM    \form
    WAY_IN_ALIGNED \name, \bytes, \alignment, 1
    ret
7:  movq    %rax, %rdi
    movq    %r9, %rsi
    movq    %r8, %rdx
    jmp     hak_aligned_noted                       /* (block, bins, bin) */
    WAY_IN_ALIGNED_REST \alignment
.if \kind >= 0
    movl    $\kind, %edx
    xorl    %ecx, %ecx                              /* PARTITION_ORDINARY */
.endif
    jmp     \slow
ENTRY_END \name
.endm

/* (block, ...). The word of top and countdown is read once, and stored: an instruction that does
 * both waits longer for the call before, of the same size
 * (docs/adr/0062-a-push-reads-its-word-once.md). */
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
    movl    (%r9,%rax,4), %r8d                      /* top, countdown */
    movzwl  %r8w, %ecx
    cmpw    4(%r9,%rax,4), %cx                      /* limit */
    jbe     1f
    cmpq    (%r9,%rcx,8), %rdi                      /* freed just before */
    je      1f
    movq    %rdi, -8(%r9,%rcx,8)
    subl    $1, %r8d
    movl    %r8d, (%r9,%rax,4)
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

    .hidden hak_posix_memalign_slow
ENTRY hak_posix_memalign                            /* (result, alignment, bytes) */
    WAY_IN_ALIGNED hak_posix_memalign, %rdx, %rsi, 8
    movq    %rax, (%rdi)
    xorl    %eax, %eax
    ret
7:  movq    %rax, %rsi
    movq    %r9, %rdx
    movq    %r8, %rcx
    jmp     hak_posix_memalign_noted                /* (result, block, bins, bin) */
    WAY_IN_ALIGNED_REST %rsi
    jmp     hak_posix_memalign_slow
ENTRY_END hak_posix_memalign

WAY_IN_BLOCK hak_aligned_alloc, hak_aligned_alloc_slow, %rsi, %rdi
WAY_IN_BLOCK hak_memalign, hak_memalign_slow, %rsi, %rdi
WAY_IN_BLOCK hak_new_aligned, hak_new_aligned_slow, %rdi, %rsi, PLAIN, NEW
WAY_IN_BLOCK hak_new_array_aligned, hak_new_aligned_slow, %rdi, %rsi, DERIVED, NEW_ARRAY
WAY_IN_BLOCK hak_new_aligned_nothrow, hak_new_aligned_nothrow_slow, %rdi, %rsi, DERIVED, NEW
WAY_IN_BLOCK hak_new_array_aligned_nothrow, hak_new_aligned_nothrow_slow, %rdi, %rsi, DERIVED, NEW_ARRAY

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
