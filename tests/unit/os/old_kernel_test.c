/* SPDX-License-Identifier: MIT */
/* tests/unit/os/old_kernel_test.c - kernels that lack a call, or begin to refuse it: a filter in
 * front of the real one answers in their place. */
#include "api/api.h"
#include "base/bits.h"
#include "base/limits.h"
#include "check.h"
#include "heap/census.h"
#include "os/os.h"
#include "process/reclaim.h"
#include "region/region.h"
#include "span/large.h"
#include "span/span_heap.h"
#include "stats/snapshot.h"
#include "stats/snapshot_take.h"
#include "threads.h"
#include "unit/asan.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* From now on the call fails with `error`, in this process. */
static void refuse_call(unsigned number, unsigned error)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {4, code};
    if (UNDER_ASAN)
        SKIP("the sanitizer needs the call, too");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        SKIP("this process may not filter system calls");
}

static struct snapshot snapshot_now(void)
{
    static struct snapshot snapshot;
    hak_snapshot_take(&snapshot, &(struct census){0});
    return snapshot;
}

/* Grows a block from 1 to 64 MiB and frees it; its contents are checked. */
static void grow_and_free(void)
{
    unsigned char *block = hak_malloc(HAK_MIB);
    CHECK(block != NULL);
    for (size_t bytes = HAK_MIB; bytes < 64 * HAK_MIB; bytes *= 2) {
        for (size_t i = bytes / 2; i < bytes; i += 1000)
            block[i] = (unsigned char)(i >> 12);
        CHECK(hak_malloc(200000) != NULL); /* something stands behind it */
        block = hak_realloc(block, 2 * bytes);
        CHECK(block != NULL);
        for (size_t i = bytes / 2; i < bytes; i += 1000)
            if (block[i] != (unsigned char)(i >> 12))
                CHECK_EQ(block[i], (unsigned char)(i >> 12));
    }
    hak_free(block);
    CHECK(hak_span_heap_is_sound());
}

static void work_without_moves(unsigned error)
{
    refuse_call(SYS_mremap, error);
    errno = 77;
    grow_and_free();
    CHECK_EQ(errno, 77);
    CHECK_EQ(snapshot_now().move_calls, 0);
    CHECK_EQ(hak_span_lost_bytes(), 0);
}

/* Before Linux 5.7 the flag that keeps the source mapped is unknown. */
TEST(without_mremap_that_keeps_the_source_blocks_are_copied)
{
    work_without_moves(EINVAL);
}

TEST(without_mremap_blocks_are_copied)
{
    work_without_moves(ENOSYS);
}

/* As when the process has too many mappings. */
TEST(an_mremap_that_begins_to_fail_costs_no_addresses_and_no_contents)
{
    grow_and_free();
    if (snapshot_now().move_calls == 0)
        SKIP("the kernel does not move pages");
    refuse_call(SYS_mremap, ENOMEM);
    for (int i = 0; i < 10; i++)
        grow_and_free();
    CHECK_EQ(hak_span_lost_bytes(), 0);
}

static void work_without_advice(unsigned error)
{
    refuse_call(SYS_madvise, error);
    grow_and_free();
    for (size_t bytes = 1; bytes <= 32 * HAK_MIB; bytes = bytes * 3 + 1) {
        unsigned char *block = hak_malloc(bytes);
        CHECK(block != NULL);
        memset(block, 0xdd, bytes);
        hak_free(block);
        CHECK_EQ(hak_reclaim_purge_all(), 0);
        block = hak_calloc(1, bytes);
        CHECK(block != NULL);
        CHECK_BYTES(block, bytes, 0);
        memset(block, 0xdd, bytes);
        hak_free(block);
    }
    CHECK_EQ(hak_malloc_trim(0), 0);
    CHECK(hak_span_heap_is_sound());
    CHECK_EQ(hak_load_relaxed(&hak_os_counters.purged_bytes), 0);
}

TEST(without_madvise_nothing_is_given_back_and_nothing_is_taken_for_zero)
{
    work_without_advice(ENOSYS);
}

TEST(when_madvise_refuses_nothing_is_given_back_and_nothing_is_taken_for_zero)
{
    work_without_advice(EINVAL);
}

/* A child of fork that allocates and frees. */
static void live_on(void)
{
    for (size_t bytes = 1; bytes < 4 * HAK_MIB; bytes = bytes * 2 + 1)
        hak_free(hak_calloc(2, bytes));
    CHECK(hak_span_heap_is_sound());
}

static void *allocate(void *argument)
{
    (void)argument;
    for (size_t i = 0; i < 2000; i++) {
        void *block = hak_malloc(i * 37 % 5000);
        CHECK(block != NULL);
        hak_free(block);
    }
    return hak_malloc(100);
}

static void live_with_threads(void)
{
    for (int round = 0; round < 20; round++) {
        pthread_t threads[3];
        start_threads(threads, 3, allocate);
        hak_malloc_trim(0);
        for (int i = 0; i < 3; i++)
            hak_free(join_thread(threads[i]));
    }
    CHECK_EXITS(live_on(), 0);
    CHECK(hak_span_heap_is_sound());
}

/* Containers whose filter does not know the call. */
TEST(without_a_processor_number_threads_come_and_go_and_all_is_trimmed)
{
    refuse_call(SYS_getcpu, ENOSYS);
    live_with_threads();
}

/* Memory that cannot be had: NULL and ENOMEM, and all goes on when it can. */
TEST(without_mmap_requests_beyond_mapped_memory_are_refused)
{
    unsigned char *block = hak_malloc(1000);
    memset(block, 5, 1000);
    refuse_call(SYS_mmap, ENOMEM);
    void *first = NULL;
    for (size_t bytes = HAK_GIB; bytes >= HAK_MIB; bytes /= 2) {
        errno = 0;
        void *large = hak_malloc(bytes);
        CHECK(large != NULL || errno == ENOMEM);
        if (large == NULL)
            first = block;
        errno = 0;
        CHECK(hak_realloc(block, HAK_GIB) == NULL && errno == ENOMEM);
        hak_free(large);
    }
    CHECK_EQ(first, block); /* some were refused */
    CHECK_BYTES(block, 1000, 5);
    CHECK(hak_malloc(1000) != NULL);
    CHECK(hak_span_heap_is_sound());
}
