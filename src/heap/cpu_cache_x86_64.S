/* SPDX-License-Identifier: MIT */
/* heap/cpu_cache_x86_64.S - changes of the bins of a processor, for x86-64 (heap/cpu_cache.h).
 *
 * Each function is: name its sequence in the thread's area; from `start` on, find the bins of the
 * processor, do the work in registers and in slots that nobody looks at, and commit by one store,
 * the last instruction before `end`. The kernel sends a thread that it interrupted in between, or
 * that a fence asks for, to `abort`, which begins anew: arguments stay in their registers.
 * `start` is right behind the naming: before it the kernel would forget the sequence. Bins are
 * looked up once: the table may change meanwhile, until the fence. */
#include "base/assembly.h"
#include "base/size_class_table.h"

    .hidden hak_rseq_id_offset, hak_here, hak_bins_closed

/* What the hot path reaches from one register: bins by id, and before them the bin of each size.
 * By the byte: a line of the table serves 64 sizes, and no request has to be rounded first. The
 * table of sizes begins a page, so that the words of 504 ids lie on one. The last word is written
 * by the loader: being linked last (cmake/link_order.txt), it shares a page with zeroed data. */
    .section .data.hak_hot, "aw"
    .p2align 12
#define ROW(index, below, bytes) .fill (bytes) - (below), 1, HAK_BIN_OF_CLASS(index);
    .globl  hak_hot_sizes
    .hidden hak_hot_sizes
    .type   hak_hot_sizes, @object
    .size   hak_hot_sizes, 32768 + 1
hak_hot_sizes:
    .byte   0                               /* size 0: the slow way */
    .fill   8, 1, HAK_BIN_OF_CLASS(0)
    HAK_SIZE_CLASSES_HOT(ROW)

    .p2align 6
    .globl  hak_bins_of
    .hidden hak_bins_of
    .type   hak_bins_of, @object
    .size   hak_bins_of, 4096 * 8
hak_bins_of:
    .skip   4095 * 8
    .quad   hak_bins_closed

/* Opens a function. */
.macro SECTION name
    .section .text.hot, "ax"
    .p2align 4
    FUNCTION \name
    movq    hak_here@GOTTPOFF(%rip), %rax
    movq    %fs:(%rax), %r8
    movl    hak_rseq_id_offset(%rip), %r9d
    leaq    hak_bins_of(%rip), %r10
    leaq    .Lsection_\name(%rip), %rax
    movq    %rax, 8(%r8)
.Lstart_\name:
    movl    (%r8,%r9), %eax
    movq    (%r10,%rax,8), %r11             /* struct bins */
.endm

/* Closes it; .Lend_ is set behind the commit. */
.macro SECTION_END name
    SEQUENCE_END \name, .data.rel.ro.hak_sections
    .text
.endm

/* (scaled) -> block or NULL, bins to note or NULL */
SECTION hak_cpu_cache_pop
    movzwl  (%r11,%rdi,4), %ecx
    movq    (%r11,%rcx,8), %rax
    xorl    %edx, %edx
    testq   %rax, %rax
    je      1f
    subl    $0xffff, (%r11,%rdi,4)          /* top + 1, countdown - 1 */
.Lend_hak_cpu_cache_pop:
    jc      2f
1:  ret
2:  movq    %r11, %rdx
    ret
SECTION_END hak_cpu_cache_pop

/* (scaled, block) -> true, or false: full, or it is on top */
SECTION hak_cpu_cache_push
    xorl    %eax, %eax
    movzwl  (%r11,%rdi,4), %ecx             /* top */
    cmpw    4(%r11,%rdi,4), %cx             /* limit */
    jbe     1f
    cmpq    (%r11,%rcx,8), %rsi
    je      1f
    movq    %rsi, -8(%r11,%rcx,8)
    subl    $1, (%r11,%rdi,4)
.Lend_hak_cpu_cache_push:
    movl    $1, %eax
1:  ret
SECTION_END hak_cpu_cache_push

/* (scaled, blocks, most) -> count; newest first */
SECTION hak_cpu_cache_pop_some
    movq    (%r11,%rdi,4), %rcx             /* the header whole: top and bottom of one moment */
    xorl    %eax, %eax
    movzwl  %cx, %r9d                       /* top */
    testl   %r9d, %r9d
    je      3f                              /* closed */
    shrq    $48, %rcx                       /* bottom */
    leaq    (%r11,%r9,8), %r10
    subl    %r9d, %ecx
    je      3f                              /* empty */
    cmpl    %edx, %ecx
    cmoval  %edx, %ecx
    movl    %ecx, %eax                      /* count */
    movq    %rsi, %r8
    shrl    $1, %ecx
    je      2f
1:  movups  (%r10), %xmm0
    addq    $16, %r10
    movups  %xmm0, (%r8)
    addq    $16, %r8
    decl    %ecx
    jne     1b
2:  testb   $1, %al
    je      4f
    movq    (%r10), %r10
    movq    %r10, (%r8)
4:  addl    %eax, (%r11,%rdi,4)
.Lend_hak_cpu_cache_pop_some:
3:  ret
SECTION_END hak_cpu_cache_pop_some

/* (scaled, blocks, count) -> count, from the last on */
SECTION hak_cpu_cache_push_some
    movzwl  (%r11,%rdi,4), %ecx             /* top */
    movzwl  4(%r11,%rdi,4), %r9d            /* limit */
    movl    %ecx, %eax
    subl    %r9d, %eax                      /* room */
    jbe     3f
    cmpl    %edx, %eax
    cmoval  %edx, %eax
    leaq    (%r11,%rcx,8), %r10             /* the top slot */
    leaq    (%rsi,%rdx,8), %r8              /* behind the last */
    movl    %eax, %ecx
    shrl    $1, %ecx
    je      2f
1:  movups  -16(%r8), %xmm0
    subq    $16, %r8
    movups  %xmm0, -16(%r10)
    subq    $16, %r10
    decl    %ecx
    jne     1b
2:  testb   $1, %al
    je      4f
    movq    -8(%r8), %r8
    movq    %r8, -8(%r10)
4:  subl    %eax, (%r11,%rdi,4)
.Lend_hak_cpu_cache_push_some:
    ret
3:  xorl    %eax, %eax
    ret
SECTION_END hak_cpu_cache_push_some

/* (scaled, bins, countdown) -> what it was plus 1, or 0 */
SECTION hak_cpu_cache_lower
    xorl    %eax, %eax
    cmpq    %rsi, %r11
    jne     1f
    movl    (%r11,%rdi,4), %ecx
    testw   %cx, %cx
    je      1f                              /* closed: opening it stores the whole header */
    shrl    $16, %ecx
    leal    1(%rcx), %eax
    subl    %edx, %ecx
    jbe     1f
    shll    $16, %ecx
    subl    %ecx, (%r11,%rdi,4)
.Lend_hak_cpu_cache_lower:
1:  ret
SECTION_END hak_cpu_cache_lower

/* (scaled, bins) -> top, or 0: the thread runs on others. The header becomes
 * {0, countdown, 0, top} at once (heap/bins.h). */
SECTION hak_cpu_cache_close
    xorl    %eax, %eax
    cmpq    %rsi, %r11
    jne     1f
    movq    (%r11,%rdi,4), %rcx
    movzwl  %cx, %eax
    testl   %eax, %eax
    je      1f
    movq    %rax, %rdx
    shlq    $48, %rdx
    andl    $0xffff0000, %ecx
    orq     %rcx, %rdx
    movq    %rdx, (%r11,%rdi,4)
.Lend_hak_cpu_cache_close:
1:  ret
SECTION_END hak_cpu_cache_close

    .section .rodata
    .globl  hak_has_cpu_caches
    .hidden hak_has_cpu_caches
    .type   hak_has_cpu_caches, @object
    .size   hak_has_cpu_caches, 1
hak_has_cpu_caches:
    .byte   1
    .p2align 2
    .globl  hak_hot_size_step
    .hidden hak_hot_size_step
    .type   hak_hot_size_step, @object
    .size   hak_hot_size_step, 4
hak_hot_size_step:
    .long   1

    .section .note.GNU-stack, "", @progbits
