/* SPDX-License-Identifier: MIT */
/* tests/machines/aid/mode.c - a short run of threads that allocate, and a line on what the kernel
 * and libc have of restartable sequences: "mode KEY=VALUE ...". hakmem's statistics of the run
 * say which caches served it. */
#include "preload/program.h"

#include <gnu/libc-version.h>
#include <stddef.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#define THREADS 4
#define ROUNDS 20000
#define AUX_RSEQ_FEATURE_SIZE 27
#define LENGTH_MOST 256

#if defined(__x86_64__)
#define SIGNATURE 0x53053053u
#elif defined(__aarch64__)
#define SIGNATURE 0xd428bc00u
#endif

extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

/* The length that libc registered the area with: the only one for which the kernel says EBUSY;
 * 0: it registered none. */
static unsigned registered_bytes(void)
{
    if (&__rseq_offset == NULL || &__rseq_size == NULL || __rseq_size == 0)
        return 0;
    char *area = (char *)__builtin_thread_pointer() + __rseq_offset;
    for (unsigned bytes = 32; bytes <= LENGTH_MOST; bytes++)
        if (syscall(SYS_rseq, area, bytes, 0, SIGNATURE) == -1 && errno == EBUSY)
            return bytes;
    return 0;
}

static void *allocate(void *argument)
{
    unsigned state = (unsigned)(uintptr_t)argument;
    char *held[64] = {NULL};
    for (unsigned i = 0; i < ROUNDS; i++) {
        char **at = &held[next_random(&state) % 64];
        free(*at);
        *at = malloc(1 + next_random(&state) % 1000);
        if (*at == NULL)
            _exit(9);
        **at = (char)i;
    }
    for (unsigned i = 0; i < 64; i++)
        free(held[i]);
    return NULL;
}

TEST(threads_allocate)
{
    struct utsname kernel;
    pthread_t threads[THREADS];
    check_is_served();
    CHECK_EQ(uname(&kernel), 0);
    check_print("mode kernel=%s libc=%s feature_bytes=%lu registered_bytes=%u requests=%u\n",
                kernel.release, gnu_get_libc_version(), getauxval(AUX_RSEQ_FEATURE_SIZE),
                registered_bytes(), THREADS * ROUNDS);
    for (uintptr_t i = 0; i < THREADS; i++)
        threads[i] = start_thread(allocate, (void *)(i + 1));
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}
