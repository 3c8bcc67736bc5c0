/* SPDX-License-Identifier: MIT */
/* tests/unit/os/epilogue_test.c - code without tables is left only as its instructions say. */
#include "os/epilogue.h"

#include "check.h"

#include <string.h>

static alignas(16) unsigned char code[64];
static uintptr_t stack[8];
static bool is_hidden;

static bool read_here(uintptr_t address, uintptr_t *word)
{
    if (is_hidden || address % sizeof *word != 0)
        return false;
    memcpy(word, (const void *)address, sizeof *word);
    return true;
}

static struct dwarf_frame frame_at(const void *instructions, size_t bytes, size_t at)
{
    struct dwarf_frame frame = {.read = read_here, .is_interrupted = true};
    memset(code, 0x90, sizeof code);
    memcpy(code + at, instructions, bytes);
    for (size_t i = 0; i < 8; i++)
        stack[i] = 1000 + i;
    frame.address = (uintptr_t)code + at;
    frame.registers[HAK_DWARF_STACK_POINTER] = (uintptr_t)stack;
    frame.registers[HAK_DWARF_FRAME_POINTER] = 77;
    return frame;
}

static bool is_as_before(const struct dwarf_frame *frame)
{
    return frame->address >= (uintptr_t)code && frame->address < (uintptr_t)code + sizeof code &&
           frame->registers[HAK_DWARF_STACK_POINTER] == (uintptr_t)stack &&
           frame->registers[HAK_DWARF_FRAME_POINTER] == 77 && frame->is_interrupted;
}

HAK_UNUSED static void check_step(const void *instructions, size_t bytes, uintptr_t address,
                                  size_t words_popped, uintptr_t frame_pointer)
{
    for (size_t at = 0; at < 16; at += 4) {
        struct dwarf_frame frame = frame_at(instructions, bytes, at);
        CHECK(hak_os_epilogue_step(&frame));
        CHECK_EQ(frame.address, address);
        CHECK_EQ(frame.registers[HAK_DWARF_STACK_POINTER], (uintptr_t)(stack + words_popped));
        CHECK_EQ(frame.registers[HAK_DWARF_FRAME_POINTER], frame_pointer);
        CHECK(!frame.is_interrupted);
    }
}

static void check_none(const void *instructions, size_t bytes)
{
    struct dwarf_frame frame = frame_at(instructions, bytes, 3);
    CHECK(!hak_os_epilogue_step(&frame));
    CHECK(is_as_before(&frame));
}

TEST(code_that_leaves_a_frame_leads_to_its_caller)
{
#if defined(__x86_64__)
    static const unsigned char trampoline[] = {0x48, 0x83, 0xc4, 0x08, 0xc3};
    static const unsigned char framed[] = {0x5d, 0xc3};
    static const unsigned char both[] = {0x48, 0x83, 0xc4, 0x10, 0x5d, 0xc3};
    check_step(trampoline, sizeof trampoline, 1001, 2, 77);
    check_step(framed, sizeof framed, 1001, 2, 1000);
    check_step(both, sizeof both, 1003, 4, 1002);
#elif defined(__aarch64__)
    static const unsigned char pair[] = {0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6};
    check_step(pair, sizeof pair, 1001, 2, 1000);
#else
    SKIP("on this architecture no code is known that leaves a frame so");
#endif
}

TEST(other_code_is_not_guessed_at)
{
    static const unsigned char down[] = {0x48, 0x83, 0xc4, 0xf8, 0xc3}; /* add $-8 */
    static const unsigned char jump[] = {0x48, 0x83, 0xc4, 0x08, 0xe9};
    static const unsigned char other[] = {0xfd, 0x7b, 0xc2, 0xa8, 0xc0, 0x03, 0x5f, 0xd6};
    check_none(down, sizeof down);
    check_none(jump, sizeof jump);
    check_none(other, sizeof other);
    check_none("", 1);
    struct dwarf_frame frame = frame_at(down, sizeof down, 0);
    is_hidden = true;
    CHECK(!hak_os_epilogue_step(&frame));
    CHECK(is_as_before(&frame));
}
