/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "os/fault.h"

#include "os/dwarf.h"
#include "os/frames.h"
#include "os/unwind.h"

#include <signal.h>
#include <ucontext.h>

struct registers {
    uintptr_t instruction, stack, frame;
};

#if defined(__x86_64__)

#define WRITE_BIT 2
#define EXECUTE_BIT 16

static struct registers registers_of(const ucontext_t *context)
{
    const greg_t *all = context->uc_mcontext.gregs;
    return (struct registers){(uintptr_t)all[REG_RIP], (uintptr_t)all[REG_RSP],
                              (uintptr_t)all[REG_RBP]};
}

static bool frame_of(struct dwarf_frame *frame, const ucontext_t *context)
{
    static const int order[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                                REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                REG_R12, REG_R13, REG_R14, REG_R15};
    for (uint32_t i = 0; i < sizeof order / sizeof *order; i++)
        frame->registers[i] = (uintptr_t)context->uc_mcontext.gregs[order[i]];
    frame->address = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
    return true;
}

static enum access access_of(const ucontext_t *context)
{
    greg_t error = context->uc_mcontext.gregs[REG_ERR];
    if (error & EXECUTE_BIT)
        return ACCESS_EXECUTE;
    return error & WRITE_BIT ? ACCESS_WRITE : ACCESS_READ;
}

#elif defined(__aarch64__)

/* Records that the kernel appends to the registers, of which one has the syndrome
 * (<asm/sigcontext.h> names them; not every libc's headers let it be included). */
struct record {
    uint32_t magic, bytes;
    uint64_t syndrome;
};
#define SYNDROME_MAGIC 0x45535201u
#define WRITE_BIT (1u << 6)
#define KIND_OF(syndrome) ((syndrome) >> 26 & 63)
#define KIND_EXECUTE 0x20u

static struct registers registers_of(const ucontext_t *context)
{
    return (struct registers){context->uc_mcontext.pc, context->uc_mcontext.sp,
                              context->uc_mcontext.regs[29]};
}

static bool frame_of(struct dwarf_frame *frame, const ucontext_t *context)
{
    for (uint32_t i = 0; i < 31; i++)
        frame->registers[i] = context->uc_mcontext.regs[i];
    frame->registers[HAK_DWARF_STACK_POINTER] = context->uc_mcontext.sp;
    frame->address = context->uc_mcontext.pc;
    return true;
}

static enum access access_of(const ucontext_t *context)
{
    const char *at = (const char *)context->uc_mcontext.__reserved;
    const char *end = at + sizeof context->uc_mcontext.__reserved;
    while (at + sizeof(struct record) <= end) {
        const struct record *record = (const struct record *)(const void *)at;
        if (record->magic == SYNDROME_MAGIC) {
            if (KIND_OF(record->syndrome) == KIND_EXECUTE)
                return ACCESS_EXECUTE;
            return record->syndrome & WRITE_BIT ? ACCESS_WRITE : ACCESS_READ;
        }
        if (record->magic == 0 || record->bytes == 0)
            break;
        at += record->bytes;
    }
    return ACCESS_UNKNOWN;
}

#elif defined(__riscv)

static struct registers registers_of(const ucontext_t *context)
{
    const unsigned long *all = (const unsigned long *)context->uc_mcontext.__gregs;
    return (struct registers){all[0], all[2], all[8]};
}

static bool frame_of(struct dwarf_frame *frame, const ucontext_t *context)
{
    for (uint32_t i = 1; i < HAK_DWARF_REGISTERS; i++)
        frame->registers[i] = context->uc_mcontext.__gregs[i];
    frame->address = context->uc_mcontext.__gregs[0];
    return true;
}

#else

static struct registers registers_of(const ucontext_t *context)
{
    (void)context;
    return (struct registers){0, 0, 0};
}

static bool frame_of(struct dwarf_frame *frame, const ucontext_t *context)
{
    (void)frame;
    (void)context;
    return false;
}

#endif

#if !defined(__x86_64__) && !defined(__aarch64__)

static enum access access_of(const ucontext_t *context)
{
    (void)context;
    return ACCESS_UNKNOWN;
}

#endif

/* The addresses of the calls, not the return addresses, which may be on another line. */
static void to_calls(struct os_fault *fault)
{
    for (uint32_t i = 1; i < HAK_OS_FAULT_FRAMES && fault->places[i] != 0; i++)
        fault->places[i]--;
}

void hak_os_fault_read(struct os_fault *fault, const void *context)
{
    struct registers registers = registers_of(context);
    fault->access = access_of(context);
    fault->places[0] = registers.instruction;
    hak_os_frames_above(registers.stack, registers.frame, fault->places + 1,
                        HAK_OS_FAULT_FRAMES - 1);
    to_calls(fault);
}

void hak_os_fault_unwind(struct os_fault *fault, const void *context)
{
    struct dwarf_frame frame = {.address = 0};
    uintptr_t places[HAK_OS_FAULT_FRAMES] = {0};
    if (!frame_of(&frame, context) || hak_os_unwind_from(&frame, places, HAK_OS_FAULT_FRAMES) < 2 ||
        places[0] != fault->places[0])
        return;
    for (uint32_t i = 1; i < HAK_OS_FAULT_FRAMES; i++)
        fault->places[i] = places[i];
    to_calls(fault);
}
