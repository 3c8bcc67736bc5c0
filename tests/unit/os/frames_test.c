/* SPDX-License-Identifier: MIT */
/* tests/unit/os/frames_test.c - the chain of frame pointers is followed as far as it is one. */
#include "../../check.h"

#include "os/frames.h"
#include "os/os.h"

#include <stdint.h>
#include <sys/mman.h>

#define COUNT 6

static uintptr_t addresses[COUNT];

/* Links at multiples of two words; the first one is the callee's own. */
static uintptr_t *frames;

/* What a frame register has for the two words: RISC-V's points behind them. */
static uintptr_t pointer_to(int frame)
{
#if defined(__riscv)
    frame++;
#endif
    return (uintptr_t)&frames[2 * frame];
}

static void link_frames(int from, int to, uintptr_t address)
{
    frames[2 * from] = pointer_to(to);
    frames[2 * to + 1] = address;
}

static void start(void)
{
    if (sizeof(void *) != 8)
        SKIP("64 bits only");
    frames = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(frames != MAP_FAILED);
}

static void follow(void)
{
    hak_os_frames(0x111111, pointer_to(0), addresses, COUNT);
    CHECK_EQ(addresses[0], 0x111111);
}

TEST(a_chain_is_followed_to_its_end)
{
    start();
    link_frames(0, 2, 0x222222);
    link_frames(2, 8, 0x333333);
    follow();
    CHECK_EQ(addresses[1], 0x222222);
    CHECK_EQ(addresses[2], 0x333333);
    CHECK_EQ(addresses[3], 0);
    CHECK_EQ(addresses[5], 0);
}

TEST(no_more_frames_are_returned_than_there_is_room_for)
{
    start();
    for (int i = 0; i < 20; i++)
        link_frames(i, i + 1, (uintptr_t)(0x100000 + i));
    follow();
    CHECK_EQ(addresses[COUNT - 1], 0x100000 + COUNT - 2);
}

TEST(an_invalid_link_ends_the_chain)
{
    start();
    frames[0] = pointer_to(0); /* to itself */
    follow();
    CHECK_EQ(addresses[1], 0);
    frames[0] = pointer_to(0) + 24; /* misaligned */
    follow();
    CHECK_EQ(addresses[1], 0);
    frames[0] = 7;
    follow();
    CHECK_EQ(addresses[1], 0);
    frames[0] = pointer_to(0) + (1 << 20); /* far */
    follow();
    CHECK_EQ(addresses[1], 0);
    link_frames(0, 2, 5); /* no code is there */
    follow();
    CHECK_EQ(addresses[1], 0);
}

TEST(memory_that_cannot_be_read_ends_the_chain)
{
    start();
    link_frames(0, 2, 0x222222);
    link_frames(2, 300, 0x333333); /* on the second page */
    CHECK_EQ(mprotect((char *)frames + 4096, 4096, PROT_NONE), 0);
    follow();
    CHECK_EQ(addresses[1], 0x222222);
    CHECK_EQ(addresses[2], 0);
    CHECK_EQ(mprotect((char *)frames + 4096, 4096, PROT_READ), 0);
    follow();
    CHECK_EQ(addresses[2], 0x333333);
}
