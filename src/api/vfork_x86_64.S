/* SPDX-License-Identifier: MIT */
/* api/vfork_x86_64.S - vfork, for x86-64.
 *
 * A child of vfork lives in its parent's memory, variables of the thread included, yet the kernel
 * knows no area of restartable sequences for it: it would read where its parent ran last, and
 * nothing would begin anew when it is interrupted. So it gets no cache: hak_here says so from before
 * the call until the parent goes on.
 *
 * The child returns first, through the frame that the parent needs again. So nothing that matters
 * afterwards is on the stack meanwhile: the return address and the thread's area are in registers,
 * which the kernel keeps for each. The child jumps instead of returning, since a shadow stack would
 * be the parent's, too. */
#include "base/assembly.h"

#define SYS_VFORK 58
#define ERRORS_FROM -4095

    .hidden hak_here, hak_here_never

    .text
    .p2align 4
FUNCTION hak_vfork
    movq    hak_here@GOTTPOFF(%rip), %r8
    leaq    hak_here_never(%rip), %rax
    movq    %fs:(%r8), %rsi                 /* the thread's area */
    popq    %rdi                            /* return address */
    .cfi_adjust_cfa_offset -8
    .cfi_register %rip, %rdi
    movq    %rax, %fs:(%r8)
    movl    $SYS_VFORK, %eax
    syscall
    testl   %eax, %eax
    je      1f
    movq    %rsi, %fs:(%r8)
    pushq   %rdi
    .cfi_adjust_cfa_offset 8
    .cfi_offset %rip, -8
    cmpq    $ERRORS_FROM, %rax
    jae     2f
    ret
    .cfi_adjust_cfa_offset -8
    .cfi_register %rip, %rdi
1:  jmp     *%rdi
    .cfi_adjust_cfa_offset 8
    .cfi_offset %rip, -8
2:  negl    %eax
    pushq   %rax
    .cfi_adjust_cfa_offset 8
    call    __errno_location@PLT
    popq    %rdx
    .cfi_adjust_cfa_offset -8
    movl    %edx, (%rax)
    movl    $-1, %eax
    ret
FUNCTION_END hak_vfork

HAK_LIBC_ALIAS(vfork, hak_vfork)
HAK_LIBC_ALIAS(__vfork, hak_vfork)

    .section .note.GNU-stack, "", @progbits
