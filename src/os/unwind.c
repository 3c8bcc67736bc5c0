/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "os/unwind.h"

#include "base/bits.h"
#include "base/limits.h"
#include "os/confine.h"
#include "os/dwarf.h"
#include "os/epilogue.h"
#include "os/find_object.h"
#include "os/own_code.h"
#include "os/rules.h"

#include <errno.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

/* Addresses that are asked for at once. */
#define UNWIND_MOST 64u
/* Frames of hakmem's own that a walk may begin with. */
#define OWN_FRAMES_MOST 24u

bool hak_os_module_of(uintptr_t address, struct os_module *module)
{
    struct found_object found;
    if (!hak_find_object(address, &found) || found.link_map == NULL)
        return false;
    *module = (struct os_module){.start = (uintptr_t)found.map_start,
                                 .end = (uintptr_t)found.map_end,
                                 .bias = found.link_map->l_addr,
                                 .path = found.link_map->l_name};
    return true;
}

void hak_os_program_path(char *path, size_t bytes)
{
    ssize_t length = -1;
    int saved = errno;
    if (hak_os_ask_begin()) {
        length = readlink("/proc/self/exe", path, bytes - 1);
        hak_os_ask_end();
    }
    errno = saved;
    path[length < 0 ? 0 : length] = '\0';
}

/* A page that was found to be readable by this walk. */
static HAK_TLS uintptr_t readable_page;

/* Somebody else's frames, which no checker knows. */
__attribute__((no_sanitize("address", "thread", "undefined"))) static bool read_word(
    uintptr_t address, uintptr_t *word)
{
    uintptr_t page = address / HAK_PAGE_BYTES_LEAST;
    if (address % sizeof *word != 0 || (page != readable_page && !hak_os_is_readable(address)))
        return false;
    readable_page = page;
    *word = *(const volatile uintptr_t *)address;
    return true;
}

/* Where the caller of this function's text stands; inline, since it is the caller's frame. */
HAK_INLINE void begin_here(struct dwarf_frame *frame)
{
    *frame = (struct dwarf_frame){.is_interrupted = true, .read = read_word};
#if defined(__x86_64__)
    __asm__ volatile("leaq 0f(%%rip), %%rax\n"
                     "movq %%rbx, 24(%1)\n"
                     "movq %%rbp, 48(%1)\n"
                     "movq %%rsp, 56(%1)\n"
                     "movq %%r12, 96(%1)\n"
                     "movq %%r13, 104(%1)\n"
                     "movq %%r14, 112(%1)\n"
                     "movq %%r15, 120(%1)\n"
                     "0: movq %%rax, %0"
                     : "=m"(frame->address)
                     : "r"(frame->registers)
                     : "rax", "memory");
#elif defined(__aarch64__)
    __asm__ volatile("adr x9, 0f\n"
                     "stp x19, x20, [%1, #152]\n"
                     "stp x21, x22, [%1, #168]\n"
                     "stp x23, x24, [%1, #184]\n"
                     "stp x25, x26, [%1, #200]\n"
                     "stp x27, x28, [%1, #216]\n"
                     "stp x29, x30, [%1, #232]\n"
                     "mov x10, sp\n"
                     "str x10, [%1, #248]\n"
                     "0: str x9, %0"
                     : "=m"(frame->address)
                     : "r"(frame->registers)
                     : "x9", "x10", "memory");
#elif defined(__riscv)
    __asm__ volatile("lla t0, 0f\n"
                     "sd ra, 8(%1)\n"
                     "sd sp, 16(%1)\n"
                     "sd s0, 64(%1)\n"
                     "sd s1, 72(%1)\n"
                     "sd s2, 144(%1)\n"
                     "sd s3, 152(%1)\n"
                     "sd s4, 160(%1)\n"
                     "sd s5, 168(%1)\n"
                     "sd s6, 176(%1)\n"
                     "sd s7, 184(%1)\n"
                     "sd s8, 192(%1)\n"
                     "sd s9, 200(%1)\n"
                     "sd s10, 208(%1)\n"
                     "sd s11, 216(%1)\n"
                     "0: sd t0, %0"
                     : "=m"(frame->address)
                     : "r"(frame->registers)
                     : "t0", "memory");
#endif
}

/* Without the bits that sign a return address (arm64). */
static uintptr_t plain(uintptr_t address)
{
    return address & (((uintptr_t)1 << 56) - 1);
}

static bool holds(const struct found_object *found, uintptr_t address)
{
    uintptr_t start = (uintptr_t)found->map_start;
    return address - start < (uintptr_t)found->map_end - start;
}

/* The loaded file that the code is in; `found` is that of the frame before. It is on the stack, so
 * it stays loaded: another frame of it needs no search. */
static bool find_object(uintptr_t address, struct found_object *found)
{
    return holds(found, address) || hak_find_object(address, found);
}

static bool find_object_of(const struct dwarf_frame *frame, struct found_object *found)
{
    return find_object(frame->address - !frame->is_interrupted, found);
}

/* The frame's caller; false: there is none, or only frame pointers can tell. */
static bool step(struct dwarf_frame *frame, struct found_object *found)
{
    uintptr_t stack = frame->registers[HAK_DWARF_STACK_POINTER];
    if (!find_object_of(frame, found) || found->eh_frame == NULL ||
        !hak_dwarf_step(frame, found->eh_frame))
        return false;
    frame->address = plain(frame->address);
    /* An alternate stack may lie anywhere; else stacks are left upwards. */
    return frame->is_interrupted || frame->registers[HAK_DWARF_STACK_POINTER] > stack;
}

/* Whether tables say something of the frame, be it that it is the outermost. */
static bool has_tables(const struct dwarf_frame *frame, struct found_object *found)
{
    return find_object_of(frame, found) && found->eh_frame != NULL &&
           hak_dwarf_covers(frame, found->eh_frame);
}

/* Walks out of hakmem to where it was called: true with the frame that goes on there. */
static bool leave(struct dwarf_frame *frame, uintptr_t caller)
{
    struct found_object found = {0};
    for (uint32_t i = 0; i < OWN_FRAMES_MOST; i++) {
        if (!step(frame, &found))
            return false;
        if (frame->address == caller)
            return true;
    }
    return false;
}

/* The addresses from `used` on, by frame pointers. */
static uint32_t follow(const struct dwarf_frame *frame, uintptr_t *addresses, uint32_t used,
                       uint32_t most)
{
    return used + hak_os_frames_follow(frame->registers[HAK_DWARF_FRAME_POINTER],
                                       frame->registers[HAK_DWARF_STACK_POINTER], addresses + used,
                                       most - used);
}

/* Whether hakmem's code is in a library; all that this library holds is left out then. */
static bool is_library(const struct found_object *own)
{
    return own->link_map != NULL && own->link_map->l_name[0] != '\0';
}

static uint32_t walk(struct dwarf_frame *frame, uintptr_t *addresses, uintptr_t *stacks,
                     uint32_t most)
{
    uint32_t used = 0;
    struct found_object own = {0}, found = {0};
    bool leaves_out = hak_find_object((uintptr_t)&hak_os_unwind, &own) && is_library(&own);
    while (used < most && frame->address != 0) {
        uintptr_t address = frame->address;
        bool is_own = (leaves_out && holds(&own, address)) || hak_own_code_holds(address);
        if (used != 0 || !is_own) {
            stacks[used] = frame->registers[HAK_DWARF_STACK_POINTER];
            addresses[used++] = address;
        }
        struct dwarf_frame last = *frame;
        if (step(frame, &found))
            continue;
        if (has_tables(&last, &found))
            return used;
        *frame = last;
        if (!hak_os_epilogue_step(frame))
            return follow(&last, addresses, used, most);
    }
    return used;
}

/* A frame of which only what most rules need is known. */
struct lean_frame {
    uintptr_t address;
    uintptr_t stack;
    uintptr_t pointer;
};

enum lean_step { LEAN_STEPPED, LEAN_OUTERMOST, LEAN_UNKNOWN };

/* The rule that is kept. The tables of the file that this code is in cannot have changed. */
static bool find_rule(const struct found_object *found, uintptr_t address, struct frame_rule *rule)
{
    if (holds(found, (uintptr_t)&hak_os_unwind))
        return hak_rules_find_lasting(found->eh_frame, address, rule);
    return found->eh_frame != NULL && hak_rules_find(found->eh_frame, address, rule);
}

static uintptr_t saved_at(const struct lean_frame *frame, int16_t words)
{
    return frame->stack + (uintptr_t)(intptr_t)words * sizeof(uintptr_t);
}

/* Whether all that the rule needs is known; then `stack` is the caller's. */
static bool find_stack(const struct lean_frame *frame, const struct frame_rule *rule,
                       uintptr_t *stack)
{
    if (rule->frame_register == HAK_DWARF_STACK_POINTER)
        *stack = frame->stack;
    else if (rule->frame_register == HAK_DWARF_FRAME_POINTER)
        *stack = frame->pointer;
    else
        return false;
    *stack += (uintptr_t)(intptr_t)rule->frame_offset;
    return *stack > frame->stack;
}

/* What the caller's frame holds for it; its stack is known. The rule's registers are in the order
 * of their numbers: the return address is the last one. */
static bool read_saved(struct lean_frame *caller, const struct frame_rule *rule)
{
    uint32_t last = rule->count - 1u;
    if (rule->count == 0 || rule->registers[last] != rule->return_register ||
        !read_word(saved_at(caller, rule->words[last]), &caller->address))
        return false;
    for (uint32_t i = 0; i < last && rule->registers[i] <= HAK_DWARF_FRAME_POINTER; i++)
        if (rule->registers[i] == HAK_DWARF_FRAME_POINTER)
            return read_word(saved_at(caller, rule->words[i]), &caller->pointer);
    return true;
}

/* Makes the frame its caller's, if a rule is kept that needs no more than is known. */
static enum lean_step step_lean(struct lean_frame *frame, struct found_object *found)
{
    struct frame_rule rule;
    struct lean_frame caller = {.pointer = frame->pointer};
    if (!find_object(frame->address - 1, found) || !find_rule(found, frame->address - 1, &rule))
        return LEAN_UNKNOWN;
    if (rule.is_outermost)
        return LEAN_OUTERMOST;
    if (!find_stack(frame, &rule, &caller.stack) || !read_saved(&caller, &rule))
        return LEAN_UNKNOWN;
    *frame = caller;
    return LEAN_STEPPED;
}

/* The walk by kept rules from the frame that called this code; 0: they are not enough. */
static uint32_t walk_lean(struct lean_frame frame, uintptr_t caller, uintptr_t *addresses,
                          uintptr_t *stacks, uint32_t most)
{
    uint32_t used = 0;
    struct found_object found = {0};
    for (uint32_t i = 0; frame.address != caller; i++)
        if (i == OWN_FRAMES_MOST || step_lean(&frame, &found) != LEAN_STEPPED)
            return 0;
    enum lean_step end = LEAN_STEPPED;
    while (end == LEAN_STEPPED && used < most && frame.address != 0) {
        struct lean_frame last = frame;
        end = step_lean(&frame, &found);
        bool is_of_library = holds(&found, (uintptr_t)&hak_os_unwind) && is_library(&found);
        if (used == 0 && (is_of_library || hak_own_code_holds(last.address)))
            continue;
        stacks[used] = last.stack;
        addresses[used++] = last.address;
    }
    return end == LEAN_UNKNOWN ? 0 : used;
}

static uint32_t by_frame_pointers(struct os_caller caller, uintptr_t *addresses, uint32_t most)
{
    uint32_t used = 0;
    hak_os_frames(caller.address, caller.frame, addresses, most);
    while (used < most && addresses[used] != 0)
        used++;
    return used;
}

uint32_t hak_os_unwind(struct os_caller caller, uintptr_t *addresses, uint32_t most)
{
    uintptr_t stacks[UNWIND_MOST];
    return hak_os_unwind_stacks(caller, addresses, stacks, (uint32_t)hak_least(most, UNWIND_MOST));
}

HAK_NOINLINE uint32_t hak_os_unwind_stacks(struct os_caller caller, uintptr_t *addresses,
                                           uintptr_t *stacks, uint32_t most)
{
    struct dwarf_frame frame;
    const uintptr_t *own = __builtin_frame_address(0);     /* the caller's, and where it goes on */
    readable_page = (uintptr_t)own / HAK_PAGE_BYTES_LEAST; /* needs no look */
    uint32_t used = HAK_OS_RETURNS_ON_STACK
                        ? walk_lean((struct lean_frame){.address = own[1],
                                                        .stack = (uintptr_t)(own + 2),
                                                        .pointer = own[0]},
                                    caller.address, addresses, stacks, most)
                        : 0;
    if (used != 0)
        return used;
    memset(stacks, 0, most * sizeof *stacks);
    begin_here(&frame);
    if (frame.address == 0 || !leave(&frame, caller.address))
        return by_frame_pointers(caller, addresses, most);
    return walk(&frame, addresses, stacks, most);
}

uint32_t hak_os_unwind_from(struct dwarf_frame *frame, uintptr_t *addresses, uint32_t most)
{
    uintptr_t stacks[UNWIND_MOST];
    readable_page = (uintptr_t)__builtin_frame_address(0) / HAK_PAGE_BYTES_LEAST;
    frame->is_interrupted = true;
    frame->read = read_word;
    return walk(frame, addresses, stacks, (uint32_t)hak_least(most, UNWIND_MOST));
}
