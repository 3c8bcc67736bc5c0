/* SPDX-License-Identifier: MIT */
#include "os/frames.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* What the ABIs of x86-64 and arm64 ask of frames. */
#define FRAME_ALIGNMENT 16u
/* Frames are smaller; what is farther is no link. */
#define FRAME_BYTES_MOST ((uintptr_t)1 << 16)
/* Code lies no lower. */
#define CODE_LEAST 65536u
/* The smallest pages that there are. */
#define PAGE_BYTES_LEAST 4096u
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

/* The kernel compares the word before it would sleep, which it may for no time at all; links are
 * even, so that it is another one. */
static int probe(uintptr_t address)
{
    static const struct timespec no_time;
    int saved = errno;
    long result = syscall(SYS_futex, address, FUTEX_WAIT_PRIVATE, 1, &no_time);
    int error = result == -1 ? errno : 0;
    errno = saved;
    return error;
}

bool hak_os_is_readable(uintptr_t address)
{
    int error = probe(address);
    return error == EAGAIN || error == ETIMEDOUT;
}

bool hak_os_is_unreadable(uintptr_t address)
{
    return probe(address) == EFAULT;
}

/* A frame of somebody else's, which no checker knows. */
__attribute__((no_sanitize("address", "thread", "undefined"))) static struct frame read_frame(
    uintptr_t at)
{
    const volatile struct frame *frame = (const volatile struct frame *)(at - WORDS_BEFORE);
    return (struct frame){frame->next, frame->address};
}

/* Follows the links from the frame at `at`, each of which lies above the last and `below`. */
static void follow(uintptr_t at, uintptr_t below, uintptr_t seen, uintptr_t *addresses,
                   uint32_t count)
{
    uint32_t used = 0;
    while (used < count) {
        if (at % FRAME_ALIGNMENT != 0 || at - below - 1 >= FRAME_BYTES_MOST)
            break;
        if (at / PAGE_BYTES_LEAST != seen && !hak_os_is_readable(at))
            break;
        seen = at / PAGE_BYTES_LEAST;
        struct frame link = read_frame(at);
        if (link.address < CODE_LEAST)
            break;
        addresses[used++] = link.address;
        below = at;
        at = link.next;
    }
    while (used < count)
        addresses[used++] = 0;
}

void hak_os_frames(uintptr_t caller, uintptr_t frame, uintptr_t *addresses, uint32_t count)
{
    if (count == 0)
        return;
    addresses[0] = caller;
    /* The first frame is the callee's own. */
    follow(read_frame(frame).next, frame, frame / PAGE_BYTES_LEAST, addresses + 1, count - 1);
}

void hak_os_frames_above(uintptr_t stack, uintptr_t frame, uintptr_t *addresses, uint32_t count)
{
    follow(frame, stack - 1, 0, addresses, count);
}
