/* SPDX-License-Identifier: MIT */
#include "os/epilogue.h"

#include <string.h>

#define CODE_BYTES 8u

static bool read_code(const struct dwarf_frame *frame, unsigned char code[CODE_BYTES])
{
    uintptr_t words[2], skipped = frame->address % sizeof *words;
    uintptr_t start = frame->address - skipped;
    if (!frame->read(start, &words[0]) || !frame->read(start + sizeof *words, &words[1]))
        return false;
    memcpy(code, (const unsigned char *)words + skipped, CODE_BYTES);
    return true;
}

#if defined(__x86_64__)

static bool pop(struct dwarf_frame *frame, uintptr_t *value)
{
    uintptr_t *stack = &frame->registers[HAK_DWARF_STACK_POINTER];
    bool is_read = frame->read(*stack, value);
    *stack += sizeof *value;
    return is_read;
}

/* [add $N, %rsp] [pop %rbp] ret */
static bool leave(struct dwarf_frame *frame, const unsigned char *code)
{
    static const unsigned char add[] = {0x48, 0x83, 0xc4};
    if (memcmp(code, add, sizeof add) == 0 && code[3] < 0x80) {
        frame->registers[HAK_DWARF_STACK_POINTER] += code[3];
        code += 4;
    }
    if (*code == 0x5d) {
        if (!pop(frame, &frame->registers[HAK_DWARF_FRAME_POINTER]))
            return false;
        code++;
    }
    return *code == 0xc3 && pop(frame, &frame->address);
}

#elif defined(__aarch64__)

/* ldp x29, x30, [sp], #16; ret */
static bool leave(struct dwarf_frame *frame, const unsigned char *code)
{
    static const unsigned char pair[] = {0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6};
    uintptr_t *stack = &frame->registers[HAK_DWARF_STACK_POINTER];
    if (memcmp(code, pair, sizeof pair) != 0 ||
        !frame->read(*stack, &frame->registers[HAK_DWARF_FRAME_POINTER]) ||
        !frame->read(*stack + sizeof(uintptr_t), &frame->address))
        return false;
    *stack += 2 * sizeof(uintptr_t);
    return true;
}

#elif defined(__riscv)

/* Behind siginfo_t and what ucontext_t begins with: the program counter, then x1 and so on. */
#define SIGNAL_REGISTERS_BYTES (128 + 176)

/* li a7, __NR_rt_sigreturn; ecall: what a signal handler returns to. */
static bool leave(struct dwarf_frame *frame, const unsigned char *code)
{
    static const unsigned char sigreturn[] = {0x93, 0x08, 0xb0, 0x08, 0x73, 0x00, 0x00, 0x00};
    uintptr_t at = frame->registers[HAK_DWARF_STACK_POINTER] + SIGNAL_REGISTERS_BYTES;
    if (memcmp(code, sigreturn, sizeof sigreturn) != 0 || !frame->read(at, &frame->address))
        return false;
    for (uint32_t i = 1; i < HAK_DWARF_REGISTERS; i++)
        if (!frame->read(at + i * sizeof(uintptr_t), &frame->registers[i]))
            return false;
    frame->is_interrupted = true;
    return true;
}

#else

static bool leave(struct dwarf_frame *frame, const unsigned char *code)
{
    (void)frame;
    (void)code;
    return false;
}

#endif

bool hak_os_epilogue_step(struct dwarf_frame *frame)
{
    struct dwarf_frame caller = *frame;
    unsigned char code[CODE_BYTES];
    caller.is_interrupted = false;
    if (!read_code(frame, code) || !leave(&caller, code))
        return false;
    *frame = caller;
    return true;
}
