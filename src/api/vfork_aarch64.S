/* SPDX-License-Identifier: MIT */
/* api/vfork_aarch64.S - vfork, for 64-bit Arm.
 *
 * As vfork_x86_64.S says: the child has its parent's memory and area, and the kernel restarts
 * nothing for it, so it gets no cache. The child returns first. Nothing that matters afterwards is
 * on the stack meanwhile: the return address and the thread's area are in registers, which the
 * kernel keeps for each. */
#include "base/assembly.h"

#define SYS_CLONE 220
#define CLONE_VFORK_VM_SIGCHLD 0x4111

    .hidden hak_here, hak_here_never

    .text
    .p2align 4
FUNCTION hak_vfork
    mrs     x9, tpidr_el0
    adrp    x10, :gottprel:hak_here
    ldr     x10, [x10, #:gottprel_lo12:hak_here]
    adrp    x11, hak_here_never
    add     x11, x11, #:lo12:hak_here_never
    ldr     x12, [x9, x10]                  /* the thread's area */
    str     x11, [x9, x10]
    mov     x0, #CLONE_VFORK_VM_SIGCHLD
    mov     x1, #0                          /* the same stack */
    mov     x2, #0
    mov     x3, #0
    mov     x4, #0
    mov     x8, #SYS_CLONE
    svc     #0
    cbz     x0, 1f
    str     x12, [x9, x10]
    tbnz    x0, #63, 2f
1:  ret
2:  stp     x29, x30, [sp, #-32]!
    .cfi_adjust_cfa_offset 32
    .cfi_offset x29, -32
    .cfi_offset x30, -24
    neg     w0, w0
    str     w0, [sp, #16]
    bl      __errno_location
    ldr     w1, [sp, #16]
    str     w1, [x0]
    mov     w0, #-1
    ldp     x29, x30, [sp], #32
    .cfi_adjust_cfa_offset -32
    .cfi_restore x29
    .cfi_restore x30
    ret
FUNCTION_END hak_vfork

HAK_LIBC_ALIAS(vfork, hak_vfork)
HAK_LIBC_ALIAS(__vfork, hak_vfork)

    .section .note.GNU-stack, "", %progbits
