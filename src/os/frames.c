/* SPDX-License-Identifier: MIT */
#include "os/frames.h"

#include "base/limits.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The alignment that the ABIs of x86-64, arm64 and riscv64 require of frames. */
#define FRAME_ALIGNMENT 16u
/* Frames are smaller; a more distant address is no link. */
#define FRAME_BYTES_MOST ((uintptr_t)1 << 16)
/* Code lies no lower. */
#define CODE_LEAST 65536u
/* RISC-V's frame pointer points behind the two words. */
#if defined(__riscv)
#define WORDS_BEFORE sizeof(struct frame)
#else
#define WORDS_BEFORE 0
#endif

/* A frame begins so: the caller's frame, and where it goes on. */
struct frame {
    uintptr_t next;
    uintptr_t address;
};

/* Tests whether a word can be read: the kernel reads and compares it before it would requeue
 * waiters, of which there are none. (A wait with no timeout would do, too; but if the word happens
 * to equal the expected value, the thread sleeps for 50 microseconds or more.) */
static int probe(uintptr_t address)
{
    static uint32_t nobody;
    int saved = errno;
    long result = syscall(SYS_futex, address, FUTEX_CMP_REQUEUE_PRIVATE, 0, 0, &nobody, 1);
    int error = result == -1 ? errno : 0;
    errno = saved;
    return error;
}

bool hak_os_is_readable(uintptr_t address)
{
    int error = probe(address);
    return error == 0 || error == EAGAIN;
}

bool hak_os_is_unreadable(uintptr_t address)
{
    return probe(address) == EFAULT;
}

/* A frame of unknown code, so sanitizers must not check the reads. */
__attribute__((no_sanitize("address", "thread", "undefined"))) static struct frame read_frame(
    uintptr_t at)
{
    const volatile struct frame *frame = (const volatile struct frame *)(at - WORDS_BEFORE);
    return (struct frame){frame->next, frame->address};
}

/* The addresses that the chain from the frame at `at` leads to: each link lies above the last and
 * `below`. The page `seen` can be read. */
static uint32_t follow(uintptr_t at, uintptr_t below, uintptr_t seen, uintptr_t *addresses,
                       uint32_t count)
{
    uint32_t used = 0;
    while (used < count) {
        if (at % FRAME_ALIGNMENT != 0 || at - below - 1 >= FRAME_BYTES_MOST)
            break;
        uintptr_t page = (at - WORDS_BEFORE) / HAK_PAGE_BYTES_LEAST;
        if (page != seen && !hak_os_is_readable(at - WORDS_BEFORE))
            break;
        seen = page;
        struct frame link = read_frame(at);
        if (link.address < CODE_LEAST)
            break;
        addresses[used++] = link.address;
        below = at;
        at = link.next;
    }
    return used;
}

uint32_t hak_os_frames_follow(uintptr_t at, uintptr_t below, uintptr_t *addresses, uint32_t count)
{
    return follow(at, below, 0, addresses, count);
}

void hak_os_frames(uintptr_t caller, uintptr_t frame, uintptr_t *addresses, uint32_t count)
{
    uintptr_t seen = (frame - WORDS_BEFORE) / HAK_PAGE_BYTES_LEAST;
    uint32_t used = 0;
    if (used < count)
        addresses[used++] = caller;
    /* The first frame is the callee's own. */
    used += follow(read_frame(frame).next, frame, seen, addresses + used, count - used);
    while (used < count)
        addresses[used++] = 0;
}

void hak_os_frames_above(uintptr_t stack, uintptr_t frame, uintptr_t *addresses, uint32_t count)
{
    uint32_t used = follow(frame, stack - 1, 0, addresses, count);
    while (used < count)
        addresses[used++] = 0;
}
