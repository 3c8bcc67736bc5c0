/* SPDX-License-Identifier: MIT */
/* tests/unit/os/unwind_test.c - stacks are what they are, with frame pointers and without, through
 * signal handlers, and where they are broken. */
#define _GNU_SOURCE
#include "os/unwind.h"

#include "../../check.h"
#include "threads.h"
#include "unit/asan.h"

#include <execinfo.h>
#include <signal.h>
#include <string.h>

#define DISTINCT __attribute__((noinline, noclone))

static uintptr_t frames[64];
static uintptr_t stacks[64];
static uint32_t count, first_count;

DISTINCT static void look(void)
{
    count = hak_os_unwind(HAK_OS_CALLER(), frames, 64);
    __asm__ volatile("" ::: "memory");
}

DISTINCT static void look_with_stacks(void)
{
    count = hak_os_unwind_stacks(HAK_OS_CALLER(), frames, stacks, 64);
    __asm__ volatile("" ::: "memory");
}

static bool is_in(uintptr_t address, const void *function)
{
    return address - (uintptr_t)function < (UNDER_ASAN ? 4000 : 400);
}

DISTINCT static int descend(int depth)
{
    volatile char room[100];
    room[depth % 100] = 1;
    if (depth == 0)
        look();
    else
        room[1] = (char)descend(depth - 1);
    return room[depth % 100];
}

TEST(as_many_frames_are_found_as_there_are)
{
    descend(40);
    CHECK(count >= 42);
    for (int i = 0; i <= 40; i++)
        CHECK(is_in(frames[i], (const void *)descend));
    void *others[64];
    int of_libc = backtrace(others, 64);
    CHECK(of_libc > 2);
    for (int i = 1; i < 3; i++) /* the outermost two are the same: libc's start, the program's */
        CHECK_EQ(frames[count - (uint32_t)i], others[of_libc - i]);
    CHECK_EQ(hak_os_unwind(HAK_OS_CALLER(), frames, 1), 1);
}

/* A frame of a size that only its frame pointer tells, between two that need none. */
DISTINCT static int descend_unevenly(int depth)
{
    volatile char *room = __builtin_alloca((size_t)depth * 24 + 16);
    room[depth] = (char)descend(depth % 3);
    if (depth > 0)
        room[1] = (char)descend_unevenly(depth - 1);
    else
        look_with_stacks();
    return room[depth];
}

/* The first walk reads the tables, the others go by what it kept. */
TEST(a_walk_by_kept_rules_finds_what_the_tables_say)
{
    static uintptr_t first_frames[64], first_stacks[64];
    volatile int walks = 3; /* from one place */
    for (int i = 0; i < walks; i++) {
        descend_unevenly(20);
        CHECK(count >= 22);
        for (uint32_t k = 0; k < count; k++) {
            CHECK(i == 0 || (frames[k] == first_frames[k] && stacks[k] == first_stacks[k]));
            CHECK(k == 0 || stacks[k] > stacks[k - 1]);
            first_frames[k] = frames[k];
            first_stacks[k] = stacks[k];
        }
        CHECK(i == 0 || count == first_count);
        first_count = count;
    }
}

static void on_signal(int number)
{
    (void)number;
    look();
    __asm__ volatile("" ::: "memory");
}

DISTINCT static void interrupted(void)
{
    raise(SIGUSR1);
    __asm__ volatile("" ::: "memory");
}

static bool has(const void *function)
{
    for (uint32_t i = 0; i < count; i++)
        if (is_in(frames[i], function))
            return true;
    return false;
}

TEST(frames_below_a_signal_handler_are_found)
{
    signal(SIGUSR1, on_signal);
    interrupted();
    CHECK(has((const void *)on_signal));
    if (!has((const void *)interrupted) && is_emulated())
        SKIP("the emulator returns from signals by code without tables");
    CHECK(has((const void *)interrupted));
}

TEST(frames_below_a_handler_on_a_stack_of_its_own_are_found)
{
    static char room[65536];
    stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    CHECK_EQ(sigaltstack(&stack, NULL), 0);
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    interrupted();
    if (!has((const void *)interrupted) && is_emulated())
        SKIP("the emulator returns from signals by code without tables");
    CHECK(has((const void *)interrupted));
}

#if defined(__x86_64__)
/* A frame of a linked file that has tables, but not of this function. */
void unknown(void (*function)(void));
__asm__(".text\n"
        "unknown:\n"
        "    pushq %rbp\n"
        "    movq  %rsp, %rbp\n"
        "    subq  $32, %rsp\n"
        "    call  *%rdi\n"
        "    nop\n"
        "    leave\n"
        "    ret\n"
        "    .skip 16, 0x90\n");

DISTINCT static void call_unknown(void)
{
    unknown(look);
    __asm__ volatile("" ::: "memory");
}
#endif

TEST(code_that_the_tables_of_its_file_leave_out_is_left_by_its_frame_pointer)
{
#if defined(__x86_64__)
    call_unknown();
    CHECK(count >= 2 && has((const void *)unknown));
    CHECK(has((const void *)call_unknown));
#else
    SKIP("written for x86-64");
#endif
}

static void *run_thread(void *unused)
{
    look();
    return unused;
}

DISTINCT static void smash(void)
{
    /* The return address of this function and all above: no code has such addresses. */
    uintptr_t *frame = __builtin_frame_address(0);
#if defined(__riscv)
    frame -= 2; /* its frame pointer points behind the two words */
#endif
    uintptr_t saved[2] = {frame[0], frame[1]};
    frame[0] = 0x4141414141414140;
    frame[1] = 0x4242424242424242;
    __asm__ volatile("" ::: "memory");
    look();
    frame[0] = saved[0];
    frame[1] = saved[1];
    __asm__ volatile("" ::: "memory");
}

TEST(a_broken_stack_ends_the_walk)
{
    smash();
    CHECK(count >= 1 && count <= 4);
    in_thread(run_thread, NULL);
    CHECK(count >= 2);
}

TEST(the_file_that_code_is_from_is_known)
{
    struct os_module module;
    char path[256];
    CHECK(hak_os_module_of((uintptr_t)&look, &module));
    CHECK_EQ(module.path[0], '\0');
    CHECK((uintptr_t)&look >= module.start && (uintptr_t)&look < module.end);
    CHECK(hak_os_module_of((uintptr_t)&getppid, &module));
    CHECK(strstr(module.path, "libc") != NULL);
    CHECK(!hak_os_module_of((uintptr_t)&module, &module));
    hak_os_program_path(path, sizeof path);
    CHECK(strstr(path, "unwind_test") != NULL);
}
