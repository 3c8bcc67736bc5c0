/* SPDX-License-Identifier: MIT */
/* heap/cpu_cache_aarch64.S - changes of the bins of a processor, for 64-bit Arm (heap/cpu_cache.h).
 *
 * As cpu_cache_x86_64.S: each function names its sequence in the thread's area; from `start` on, it
 * finds the bins of the processor, works in registers and in slots that nobody looks at, and
 * commits by one store, the last instruction before `end`. The kernel sends an interrupted thread
 * to `abort`, which begins anew: arguments stay in their registers. What other processors may do
 * meanwhile, and why no order of loads is asked for, is in api/malloc_aarch64.S. */
#include "base/assembly.h"
#include "base/size_class_table.h"

    .hidden hak_rseq_id_offset, hak_here, hak_bins_closed
    .set    EQUAL, 4                        /* the flag Z alone */

/* What the hot path reaches from one register: bins by id, and behind them the bin of each size, by
 * eighths. */
    .section .data.hak_hot, "aw"
    .p2align 6
    .globl  hak_bins_of
    .hidden hak_bins_of
    .type   hak_bins_of, %object
    .size   hak_bins_of, 4096 * 8
hak_bins_of:
    .skip   4095 * 8
    .xword  hak_bins_closed

#define ROW(index, below, bytes) .fill ((bytes) - (below)) / 8, 1, HAK_BIN_OF_CLASS(index);
    .globl  hak_hot_sizes
    .hidden hak_hot_sizes
    .type   hak_hot_sizes, %object
    .size   hak_hot_sizes, 32768 / 8 + 1
hak_hot_sizes:
    .byte   0                               /* size 0: the slow way */
    .byte   HAK_BIN_OF_CLASS(0)
    HAK_SIZE_CLASSES_HOT(ROW)

/* Opens a function: x12 has the bins, x13 the bin. */
.macro SECTION name
    .text
    .p2align 4
    FUNCTION \name
    mrs     x9, tpidr_el0
    adrp    x10, :gottprel:hak_here
    ldr     x10, [x10, #:gottprel_lo12:hak_here]
    adrp    x11, hak_bins_of
    add     x11, x11, #:lo12:hak_bins_of
    adrp    x12, hak_rseq_id_offset
    ldr     w12, [x12, #:lo12:hak_rseq_id_offset]
    ldr     x9, [x9, x10]
    adrp    x10, .Lsection_\name
    add     x10, x10, #:lo12:.Lsection_\name
    str     x10, [x9, #8]
.Lstart_\name:
    ldr     w12, [x9, x12]
    ldr     x12, [x11, x12, lsl #3]         /* struct bins */
    add     x13, x12, x0, lsl #2
.endm

/* Closes it; .Lend_ is set behind the commit. */
.macro SECTION_END name
    SEQUENCE_END \name, .data.rel.ro.hak_sections
    .text
.endm

/* (scaled) -> block or NULL, bins to note or NULL */
SECTION hak_cpu_cache_pop
    ldr     w14, [x13]                      /* top, countdown */
    and     x15, x14, #0xffff
    ldr     x15, [x12, x15, lsl #3]
    cbz     x15, 1f
    add     w14, w14, #1
    subs    w14, w14, #0x10, lsl #12
    str     w14, [x13]
.Lend_hak_cpu_cache_pop:
    b.lo    2f
1:  mov     x0, x15
    mov     x1, #0
    ret
2:  mov     x0, x15
    mov     x1, x12
    ret
SECTION_END hak_cpu_cache_pop

/* (scaled, block) -> true, or false: full, or it is on top */
SECTION hak_cpu_cache_push
    ldrh    w15, [x13, #4]                  /* limit */
    ldr     w14, [x13]                      /* top, countdown */
    and     w9, w14, #0xffff
    cmp     w9, w15
    ccmp    w15, #0, #EQUAL, hi
    b.eq    1f
    add     x12, x12, x9, lsl #3
    ldr     x9, [x12]
    cmp     x9, x1
    b.eq    1f
    sub     w14, w14, #1
    str     x1, [x12, #-8]
    str     w14, [x13]
.Lend_hak_cpu_cache_push:
    mov     w0, #1
    ret
1:  mov     w0, #0
    ret
SECTION_END hak_cpu_cache_push

/* (scaled, blocks, most) -> count. Ends at the NULL above the oldest block. */
SECTION hak_cpu_cache_pop_some
    ldr     w14, [x13]                      /* top, countdown */
    and     w15, w14, #0xffff
    mov     w9, #0
1:  cmp     w9, w2
    b.hs    2f
    ldr     x10, [x12, x15, lsl #3]
    cbz     x10, 2f
    str     x10, [x1, x9, lsl #3]
    add     w15, w15, #1
    add     w9, w9, #1
    b       1b
2:  cbz     w9, 3f
    add     w14, w14, w9
    str     w14, [x13]
.Lend_hak_cpu_cache_pop_some:
3:  mov     w0, w9
    ret
SECTION_END hak_cpu_cache_pop_some

/* (scaled, blocks, count) -> count, from the last on */
SECTION hak_cpu_cache_push_some
    ldrh    w15, [x13, #4]                  /* limit */
    ldr     w14, [x13]                      /* top, countdown */
    and     w9, w14, #0xffff
    cmp     w9, w15
    ccmp    w15, #0, #EQUAL, hi
    b.eq    3f
    sub     w15, w9, w15                    /* room */
    cmp     w15, w2
    csel    w15, w15, w2, lo
    add     x12, x12, x9, lsl #3            /* top */
    add     x10, x1, w2, uxtw #3            /* behind the last */
    mov     w9, #0
1:  cmp     w9, w15
    b.hs    2f
    ldr     x11, [x10, #-8]!
    add     w9, w9, #1
    str     x11, [x12, #-8]!
    b       1b
2:  sub     w14, w14, w15
    str     w14, [x13]
.Lend_hak_cpu_cache_push_some:
    mov     w0, w15
    ret
3:  mov     w0, #0
    ret
SECTION_END hak_cpu_cache_push_some

/* (scaled, bins, countdown) -> what it was plus 1, or 0 */
SECTION hak_cpu_cache_lower
    mov     w15, #0
    cmp     x12, x1
    b.ne    1f
    ldr     w14, [x13]                      /* top, countdown */
    tst     w14, #0xffff
    b.eq    1f                              /* closed: opening it stores the whole header */
    lsr     w9, w14, #16
    add     w15, w9, #1
    subs    w9, w9, w2
    b.ls    1f
    sub     w14, w14, w9, lsl #16
    str     w14, [x13]
.Lend_hak_cpu_cache_lower:
1:  mov     w0, w15
    ret
SECTION_END hak_cpu_cache_lower

/* (scaled, bins) -> top, or 0: the thread runs on others. The header becomes
 * {0, countdown, 0, top} at once. */
SECTION hak_cpu_cache_close
    mov     w15, #0
    cmp     x12, x1
    b.ne    1f
    ldr     x14, [x13]
    ands    x15, x14, #0xffff
    b.eq    1f
    and     x14, x14, #0xffff0000
    orr     x14, x14, x15, lsl #48
    str     x14, [x13]
.Lend_hak_cpu_cache_close:
1:  mov     w0, w15
    ret
SECTION_END hak_cpu_cache_close

    .section .rodata
    .globl  hak_has_cpu_caches
    .hidden hak_has_cpu_caches
    .type   hak_has_cpu_caches, %object
    .size   hak_has_cpu_caches, 1
hak_has_cpu_caches:
    .byte   1
    .p2align 2
    .globl  hak_hot_size_step
    .hidden hak_hot_size_step
    .type   hak_hot_size_step, %object
    .size   hak_hot_size_step, 4
hak_hot_size_step:
    .long   8

    .section .note.GNU-stack, "", %progbits
