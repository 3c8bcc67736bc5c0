/* SPDX-License-Identifier: MIT */
/* api/malloc_aarch64.S - the hot path, whole, for 64-bit Arm.
 *
 * What it walks is drawn in heap/bins.h. Anything unusual - a thread without a cache, an empty or
 * full bin, a large or foreign block, NULL - goes to the slow function before anything is written,
 * with the arguments as they came.
 *
 * From `start` to `end` is a restartable sequence, as in malloc_x86_64.S: it is named by the store
 * right before `start`, registers with arguments are never written, and the last instruction is the
 * one store that commits. The header's {top, countdown} is loaded once, as one word, changed in a
 * register and stored as one word: 32 bits, aligned, so that no other thread sees a part of it.
 * Whatever else runs on the same bins in between restarts this sequence: the kernel interrupted it.
 *
 * Other processors' stores may be seen in any order. These are the ones that a sequence can meet:
 *
 *   bins are swapped (a drain)  The entry of the table is read once. What new bins hold was written
 *                               before the entry (a release store) and is read through it: an
 *                               address dependency orders both. Old bins stay usable until the
 *                               fence, which is a full barrier on each processor and restarts the
 *                               sequences under way.
 *   a bin is opened             Only a closed bin is, by one 8-byte store with release, while top
 *                               and limit are 0. Pop reads slots through top, which orders them
 *                               behind it. Push reads limit and top by two loads, of which either
 *                               may be the older: with a top of 0, which is above no limit, the
 *                               bin is full; with a limit of 0, which is no slot, it is taken to
 *                               be full, too. Without this second test the block would go below
 *                               the slots of a bin that is full. (On x86-64 the limit is loaded
 *                               behind top. Here the test takes the place of that order: a load
 *                               with acquire before each push costs more.)
 *   a bin is closed             By a sequence on this processor only: never in the middle of one.
 *   a limit becomes smaller     Two bytes that no commit stores. The old limit is inside the same
 *                               slots.
 *   an id moves                 The threads that had the id (mm_cid) before and now are ordered
 *                               by the kernel: a full barrier when a thread leaves a processor, and
 *                               an atomic exchange where ids are taken.
 *   the window grows            A block comes from another thread by some synchronisation of the
 *                               program's, behind which its tag and the window's bounds are seen. A
 *                               pointer that is no block is looked at again in the slow function. */
#include "api/malloc_names.h"
#include "base/assembly.h"

    .hidden hak_here, hak_rseq_id_offset, hak_region, hak_bins_of, hak_malloc_noted
    .hidden hak_operators_may_be_replaced, hak_bin_of_line, hak_draw_mean_bytes
    .hidden hak_aligned_noted, hak_posix_memalign_noted
    .set    REGION_TAGS, 16
    .set    SIZES, 8                        /* x 4096, from hak_bins_of: heap/cpu_cache_aarch64.S */
    .set    HOT_BYTES_MAX, 8                /* x 4096 */
    .set    CLASS_BYTES_MAX, 32             /* x 4096 */
    .set    EVEN_BYTES_MAX, 1               /* x 4096 */
/* Of a block of any class; of one that is a multiple of a line; from where on only powers of two
 * serve above EVEN_BYTES_MAX; the most that is served here, a small page (slab/size_class.c). */
    .set    ORDINARY_ALIGNMENT, 16
    .set    LINE_ALIGNMENT, 64
    .set    POWERS_ALIGNMENT, 512
    .set    PAGE_ALIGNMENT, 4096
    .set    EQUAL, 4                        /* the flag Z alone */

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
    adrp    x9, hak_operators_may_be_replaced
    ldrb    w9, [x9, #:lo12:hak_operators_may_be_replaced]
    cbnz    w9, 1f
.endif
.endm

/* Pops from the bin that the byte at x13 + x11 names, of the bins by id at x12: the block in x10,
 * its bin in x13, struct bins in x14. To the label 1 where the bin is empty; "lower" in the flags:
 * the countdown passed 0. */
.macro POP name
    mrs     x9, tpidr_el0
    adrp    x10, :gottprel:hak_here
    ldr     x10, [x10, #:gottprel_lo12:hak_here]
    adrp    x14, hak_rseq_id_offset
    ldr     x9, [x9, x10]                           /* the thread's area */
    adrp    x10, .Lsection_\name
    ldrb    w13, [x13, x11]                         /* bin */
    add     x10, x10, #:lo12:.Lsection_\name
    ldr     w14, [x14, #:lo12:hak_rseq_id_offset]
    str     x10, [x9, #8]
.Lstart_\name:
    ldr     w14, [x9, x14]                          /* id */
    ldr     x14, [x12, x14, lsl #3]                 /* struct bins */
    add     x11, x14, x13, lsl #2
    ldr     w15, [x11]                              /* top, countdown */
    and     x10, x15, #0xffff
    ldr     x10, [x14, x10, lsl #3]                 /* block */
    cbz     x10, 1f
    add     w15, w15, #1
    subs    w15, w15, #0x10, lsl #12
    str     w15, [x11]
.Lend_\name:
.endm

/* (bytes, ...) -> block, or what the slow function returns */
.macro WAY_IN name, slow, form=PLAIN
    .hidden \slow
ENTRY \name
    FORM    \form
    cmp     x0, #HOT_BYTES_MAX, lsl #12
    adrp    x12, hak_bins_of
    add     x12, x12, #:lo12:hak_bins_of
    b.hi    3f
    add     x11, x0, #7
    lsr     x11, x11, #3
    add     x13, x12, #SIZES, lsl #12
4:  POP     \name
    b.lo    2f
    mov     x0, x10
    ret
1:  b       \slow
2:  mov     x3, x0
    mov     x0, x10
    mov     x1, x14
    mov     x2, x13
    b       hak_malloc_noted                        /* (block, bins, bin, bytes) */
3:  cmp     x0, #CLASS_BYTES_MAX, lsl #12           /* a table that does not change */
    b.hi    1b
    add     x11, x0, #63
    adrp    x13, hak_bin_of_line
    lsr     x11, x11, #6
    add     x13, x13, #:lo12:hak_bin_of_line
    b       4b
ENTRY_END \name
.endm

/* Behind FORM: the block in x10, its bin in x13, and struct bins in x14. Or to the slow function,
 * behind the label 1: for an alignment that is no power of two from `least` to a small page, one of
 * 128 or 256 above 4 KiB, a block above 128 KiB, while samples are drawn, and where the bin is
 * empty. Bytes that are 0, or would pass the end of the address space, lead to the bin 0, which
 * takes nothing. */
.macro WAY_IN_ALIGNED name, bytes, alignment, least
    sub     x9, \alignment, #1
    sub     x10, \alignment, #\least
    tst     x9, \alignment
    b.ne    1f
    cmp     x10, #PAGE_ALIGNMENT - \least
    b.hi    1f
    adrp    x10, hak_draw_mean_bytes
    ldr     x10, [x10, #:lo12:hak_draw_mean_bytes]
    add     x11, \bytes, x9
    cbnz    x10, 1f
    bic     x11, x11, x9                            /* bytes, rounded up */
    adrp    x12, hak_bins_of
    add     x12, x12, #:lo12:hak_bins_of
    cmp     x11, #EVEN_BYTES_MAX, lsl #12
    b.hi    3f
2:  add     x11, x11, #7
    lsr     x11, x11, #3
    add     x13, x12, #SIZES, lsl #12
4:  POP     \name
    b.lo    7f
.endm
/* What follows: the returns and the label 7, then the rest, then the way to the slow function. */
.macro WAY_IN_ALIGNED_REST alignment
3:  cmp     x11, #CLASS_BYTES_MAX, lsl #12
    b.hi    1f
    cmp     \alignment, #POWERS_ALIGNMENT
    b.lo    5f
    sub     x11, x11, #1
    clz     x11, x11
    neg     x11, x11                                /* modulo 64 */
    mov     x13, #1
    lsl     x11, x13, x11                           /* the next power of two */
6:  add     x11, x11, #63
    adrp    x13, hak_bin_of_line
    lsr     x11, x11, #6
    add     x13, x13, #:lo12:hak_bin_of_line
    b       4b
5:  cmp     \alignment, #LINE_ALIGNMENT
    b.hi    1f
    cmp     \alignment, #ORDINARY_ALIGNMENT
    b.hi    6b
    cmp     x11, #HOT_BYTES_MAX, lsl #12
    b.hi    6b
    b       2b
1:
.endm

/* (alignment, bytes), or (bytes, alignment, ...) with what the slow function takes besides: `kind`
 * and the partition */
.macro WAY_IN_BLOCK name, slow, bytes, alignment, form=PLAIN, kind=-1
    .hidden \slow
ENTRY \name
    FORM    \form
    WAY_IN_ALIGNED \name, \bytes, \alignment, 1
    mov     x0, x10
    ret
7:  mov     x0, x10
    mov     x1, x14
    mov     x2, x13
    b       hak_aligned_noted                       /* (block, bins, bin) */
    WAY_IN_ALIGNED_REST \alignment
.if \kind >= 0
    mov     w2, #\kind
    mov     w3, #0                                  /* PARTITION_ORDINARY */
.endif
    b       \slow
ENTRY_END \name
.endm

/* (block, ...); `kind`: what the block is said to be, or -1: nothing is said */
.macro WAY_OUT_HOT name, form=PLAIN
ENTRY \name
    FORM    \form
    adrp    x9, hak_region
    add     x9, x9, #:lo12:hak_region
    ldp     x10, x11, [x9]                          /* base, committed bytes */
    sub     x10, x0, x10
    cmp     x10, x11
    b.hs    1f
    mrs     x11, tpidr_el0
    adrp    x12, :gottprel:hak_here
    ldr     x9, [x9, #REGION_TAGS]
    ldr     x12, [x12, #:gottprel_lo12:hak_here]
    lsr     x10, x10, #16
    adrp    x13, .Lsection_\name
    adrp    x14, hak_bins_of
    ldr     x11, [x11, x12]                         /* the thread's area */
    adrp    x12, hak_rseq_id_offset
    ldrb    w10, [x9, x10]                          /* tag: the bin */
    add     x13, x13, #:lo12:.Lsection_\name
    ldr     w12, [x12, #:lo12:hak_rseq_id_offset]
    add     x14, x14, #:lo12:hak_bins_of
    str     x13, [x11, #8]
.Lstart_\name:
    ldr     w12, [x11, x12]                         /* id */
    ldr     x12, [x14, x12, lsl #3]                 /* struct bins */
    add     x13, x12, x10, lsl #2
    ldrh    w9, [x13, #4]                           /* limit */
    ldr     w15, [x13]                              /* top, countdown */
    and     w11, w15, #0xffff
    cmp     w11, w9
    ccmp    w9, #0, #EQUAL, hi                      /* limit 0: as if above top */
    b.eq    1f
    add     x12, x12, x11, lsl #3
    ldr     x11, [x12]
    cmp     x11, x0                                 /* freed just before */
    b.eq    1f
    sub     w15, w15, #1
    str     x0, [x12, #-8]
    str     w15, [x13]
.Lend_\name:
    ret
1:
.endm

    .hidden hak_free_slow, hak_free_claimed_slow
/* What the slow function takes: (block, bytes, alignment, kind). */
.macro WAY_OUT name, kind, form=PLAIN
WAY_OUT_HOT \name, \form
    mov     x1, #-1
    mov     x2, #0
    mov     w3, #\kind
    b       hak_free_claimed_slow
ENTRY_END \name
.endm
.macro WAY_OUT_SIZED name, kind, form=PLAIN
WAY_OUT_HOT \name, \form
    mov     x2, #0
    mov     w3, #\kind
    b       hak_free_claimed_slow
ENTRY_END \name
.endm
.macro WAY_OUT_ALIGNED name, kind, form=PLAIN
WAY_OUT_HOT \name, \form
    mov     x2, x1
    mov     x1, #-1
    mov     w3, #\kind
    b       hak_free_claimed_slow
ENTRY_END \name
.endm
.macro WAY_OUT_SIZED_ALIGNED name, kind, form=PLAIN
WAY_OUT_HOT \name, \form
    mov     w3, #\kind
    b       hak_free_claimed_slow
ENTRY_END \name
.endm

/* enum mark_kind (misuse/mark.h) */
#define MALLOC    0
#define NEW       1
#define NEW_ARRAY 2

WAY_IN hak_malloc, hak_malloc_slow
WAY_OUT_HOT hak_free
    b       hak_free_slow
ENTRY_END hak_free

WAY_IN hak_new, hak_new_slow
WAY_IN hak_new_array, hak_new_array_slow, DERIVED
WAY_IN hak_new_nothrow, hak_new_nothrow_slow, DERIVED
WAY_IN hak_new_array_nothrow, hak_new_array_nothrow_slow, DERIVED

    .hidden hak_posix_memalign_slow
ENTRY hak_posix_memalign                            /* (result, alignment, bytes) */
    WAY_IN_ALIGNED hak_posix_memalign, x2, x1, 8
    str     x10, [x0]
    mov     w0, #0
    ret
7:  mov     x1, x10
    mov     x2, x14
    mov     x3, x13
    b       hak_posix_memalign_noted                /* (result, block, bins, bin) */
    WAY_IN_ALIGNED_REST x1
    b       hak_posix_memalign_slow
ENTRY_END hak_posix_memalign

WAY_IN_BLOCK hak_aligned_alloc, hak_aligned_alloc_slow, x1, x0
WAY_IN_BLOCK hak_memalign, hak_memalign_slow, x1, x0
WAY_IN_BLOCK hak_new_aligned, hak_new_aligned_slow, x0, x1, PLAIN, NEW
WAY_IN_BLOCK hak_new_array_aligned, hak_new_aligned_slow, x0, x1, DERIVED, NEW_ARRAY
WAY_IN_BLOCK hak_new_aligned_nothrow, hak_new_aligned_nothrow_slow, x0, x1, DERIVED, NEW
WAY_IN_BLOCK hak_new_array_aligned_nothrow, hak_new_aligned_nothrow_slow, x0, x1, DERIVED, NEW_ARRAY

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
    mov     x9, x1
    mov     x1, x2
    mov     x2, x9
    mov     w3, #MALLOC
    b       hak_free_claimed_slow
ENTRY_END hak_free_aligned_sized

    .section .text.hot, "ax"
HAK_MALLOC_NAMES(HAK_LIBC_ALIAS, HAK_PUBLIC_ALIAS, HAK_WEAK_ALIAS)

    .section .note.GNU-stack, "", %progbits
