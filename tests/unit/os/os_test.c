/* SPDX-License-Identifier: MIT */
/* tests/unit/os/os_test.c - what the seam to the kernel promises. */
#include "base/bits.h"
#include "base/limits.h"
#include "check.h"
#include "faults.h"
#include "os/os.h"
#include "os/os_fault.h"
#include "unit/asan.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#define BYTES (16 * HAK_GRANULE_BYTES)

/* The statement touches memory that it may not: a signal, which a sanitizer turns into a status. */
#define CHECK_DENIED(statement) CHECK_IN_CHILD(statement, child_.status != 0, "a fault", "")

static unsigned char *commit(void)
{
    hak_os_start();
    unsigned char *start = hak_os_reserve(BYTES);
    CHECK(start != NULL);
    CHECK(hak_os_commit(start, BYTES));
    return start;
}

TEST(the_page_size_is_the_systems)
{
    hak_os_start();
    size_t faked = hak_load_relaxed(&hak_os_fault.page_bytes);
    CHECK_EQ(hak_os_page_bytes(), faked != 0 ? faked : (size_t)sysconf(_SC_PAGESIZE));
}

TEST(reserved_memory_cannot_be_touched_and_committed_memory_is_zero)
{
    hak_os_start();
    unsigned char *start = hak_os_reserve(BYTES);
    CHECK_EQ((uintptr_t)start % hak_os_page_bytes(), 0);
    CHECK_DENIED(*start = 1);
    CHECK(hak_os_commit(start, HAK_GRANULE_BYTES));
    CHECK_EQ(start[HAK_GRANULE_BYTES - 1], 0);
    start[HAK_GRANULE_BYTES - 1] = 1;
    CHECK_DENIED(start[HAK_GRANULE_BYTES] = 1);
    hak_os_release(start, BYTES);
    CHECK_DENIED(*start = 1);
}

TEST(purged_memory_reads_as_zero_and_only_that)
{
    unsigned char *start = commit();
    memset(start, 9, BYTES);
    CHECK(hak_os_purge(start + HAK_GRANULE_BYTES, HAK_GRANULE_BYTES));
    CHECK_EQ(start[HAK_GRANULE_BYTES - 1], 9);
    CHECK_EQ(start[HAK_GRANULE_BYTES], 0);
    CHECK_EQ(start[2 * HAK_GRANULE_BYTES - 1], 0);
    CHECK_EQ(start[2 * HAK_GRANULE_BYTES], 9);
    CHECK_EQ(hak_load_relaxed(&hak_os_counters.purged_bytes), HAK_GRANULE_BYTES);
    CHECK_EQ(hak_load_relaxed(&hak_os_counters.purge_count), 1);
    uint64_t took_ns = hak_load_relaxed(&hak_os_counters.purge_time_ns);
    CHECK(took_ns > 0);
    CHECK(hak_os_purge(start, HAK_GRANULE_BYTES));
    CHECK_EQ(hak_load_relaxed(&hak_os_counters.purge_count), 2);
    CHECK(hak_load_relaxed(&hak_os_counters.purge_time_ns) > took_ns);
}

TEST(of_resident_memory_few_pages_are_missing)
{
    enum { LONG = 12 * 1024 * 1024, PAGE = 64 * 1024 };
    unsigned char *start = hak_os_reserve(LONG);
    CHECK(start != NULL && hak_os_commit(start, LONG));
    hak_os_refuse_huge_pages(start, LONG);
    CHECK(!hak_os_is_resident(start, LONG));
    memset(start, 9, LONG);
    CHECK(hak_os_is_resident(start, LONG));
    CHECK(hak_os_purge(start + LONG - 2 * PAGE, PAGE));
    CHECK(hak_os_is_resident(start, LONG));
    CHECK(hak_os_purge(start + LONG - 17 * PAGE, 15 * PAGE));
    CHECK(!hak_os_is_resident(start, LONG)); /* a quarter of the last 4 MiB */
    CHECK(hak_os_is_resident(start, LONG - 4 * HAK_MIB));
    CHECK(hak_os_purge(start, 8 * PAGE));
    CHECK(hak_os_is_resident(start, LONG - 4 * HAK_MIB));
    CHECK(hak_os_purge(start, 9 * PAGE));
    CHECK(!hak_os_is_resident(start, LONG - 4 * HAK_MIB));
    hak_os_release(start, LONG);
    CHECK(!hak_os_is_resident(start, LONG));
}

TEST(memory_locked_by_the_program_is_purged_and_stays_locked)
{
    if (UNDER_ASAN)
        SKIP("the sanitizer ignores mlock");
    unsigned char *start = commit();
    memset(start, 9, BYTES);
    if (mlock(start, HAK_GRANULE_BYTES) != 0)
        SKIP("this process may not lock memory");
    if (!hak_os_purge(start, BYTES)) {
        CHECK_EQ(*start, 9);
        SKIP("this kernel is older than 5.18");
    }
    CHECK_EQ(*start, 0);
    CHECK_EQ(start[BYTES - 1], 0);
    CHECK_EQ(madvise(start, HAK_GRANULE_BYTES, MADV_DONTNEED), -1);
}

TEST(memory_is_mapped_only_where_others_have_mapped_nothing)
{
    unsigned char *start = commit();
    *start = 7;
    CHECK_EQ(hak_os_map(start, HAK_GRANULE_BYTES), OS_MAP_TAKEN);
    CHECK_EQ(hak_os_map_denied(start, HAK_GRANULE_BYTES), OS_MAP_TAKEN);
    CHECK_EQ(*start, 7);
    CHECK(hak_os_release(start, BYTES));
    CHECK_EQ(hak_os_map(start, HAK_GRANULE_BYTES), OS_MAPPED);
    CHECK_EQ(*start, 0);
    *start = 1;
    CHECK(hak_os_release(start, HAK_GRANULE_BYTES));
    CHECK_EQ(hak_os_map_denied(start, HAK_GRANULE_BYTES), OS_MAPPED);
    CHECK_DENIED(*start = 1);
}

TEST(memory_refused_by_a_limit_is_not_taken_for_anothers)
{
    if (UNDER_ASAN || is_emulated())
        SKIP("limits of memory are the sanitizer's, or qemu-user's");
    unsigned char *start = commit();
    CHECK(hak_os_release(start, BYTES));
    CHECK_EQ(setrlimit(RLIMIT_AS, &(struct rlimit){HAK_MIB, RLIM_INFINITY}), 0);
    CHECK_EQ(hak_os_map(start, HAK_GRANULE_BYTES), OS_MAP_REFUSED);
}

TEST(touched_memory_is_resident_and_keeps_its_contents)
{
    unsigned char *start = commit();
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char resident[BYTES / 4096];
    start[page - 1] = 7;
    hak_os_touch(start + page - 1, BYTES / 2 - page + 2); /* the byte before, and one of the next */
    CHECK_EQ(mincore(start, BYTES, resident), 0);
    for (size_t i = 0; i * page <= BYTES / 2; i++)
        CHECK_EQ(resident[i] & 1, 1);
    CHECK_EQ(resident[BYTES / page - 1] & 1, 0);
    CHECK_EQ(start[page - 1], 7);
    CHECK_EQ(start[page], 0);
}

TEST(memory_calls_are_counted)
{
    hak_os_start();
    uint64_t maps = hak_load_relaxed(&hak_os_counters.map_count);
    unsigned char *start = commit();
    CHECK(hak_os_purge(start, BYTES));
    hak_os_release(start, BYTES);
    CHECK_EQ(hak_load_relaxed(&hak_os_counters.map_count), maps + 2);
    CHECK_EQ(hak_load_relaxed(&hak_os_counters.protect_count), 1);
    CHECK_EQ(hak_load_relaxed(&hak_os_counters.advise_count), 1);
}

TEST(every_nth_memory_call_fails_when_faults_are_on)
{
    need_faults();
    unsigned char *start = commit();
    hak_os_fault_every(3);
    for (int i = 1; i <= 9; i++)
        CHECK_EQ(hak_os_commit(start, BYTES), i % 3 != 0);
    CHECK_EQ(hak_load_relaxed(&hak_os_fault.injected), 3);
    hak_os_fault_every(1);
    CHECK(!hak_os_commit(start, BYTES));
    CHECK(!hak_os_purge(start, BYTES));
    CHECK_EQ(hak_os_map(start, BYTES), OS_MAP_REFUSED);
    CHECK_EQ(hak_os_reserve(BYTES), NULL);
    hak_os_fault_every(0);
    CHECK(hak_os_commit(start, BYTES));
}

TEST(no_call_changes_errno)
{
    unsigned char *start = commit();
    unsigned char *released = commit();
    hak_os_release(released, BYTES);
    char buffer[16];
    errno = 77;
    CHECK(!hak_os_commit(released, BYTES));
    CHECK(!hak_os_purge(released, BYTES) || is_emulated());
    CHECK_EQ(hak_os_map(start, BYTES), OS_MAP_TAKEN);
    CHECK_EQ(hak_os_reserve(SIZE_MAX / 2 + 1), NULL);
    CHECK_EQ(hak_os_read_file("/no/such/file", buffer, sizeof buffer), -1);
    hak_os_close(-1);
    hak_os_refuse_huge_pages(released, BYTES);
    hak_os_futex_wait((_Atomic uint32_t *)(void *)start, 5, 1);
    hak_os_start();
    CHECK_EQ(errno, 77);
}

TEST(the_clock_runs_forward)
{
    uint64_t before = hak_os_clock_ms();
    usleep(30000);
    uint64_t after = hak_os_clock_ms();
    CHECK(after >= before + 20);
    CHECK(after < before + 20000);
}

TEST(a_futex_wait_ends_when_the_value_differs_or_time_is_up)
{
    _Atomic uint32_t word = 1;
    uint64_t before = hak_os_clock_ms();
    hak_os_futex_wait(&word, 2, 0);
    hak_os_futex_wait(&word, 1, 30);
    CHECK(hak_os_clock_ms() - before >= 20);
    CHECK(hak_os_clock_ms() - before < 20000);
}

TEST(limits_are_the_soft_ones)
{
    if (UNDER_ASAN)
        SKIP("the sanitizer needs its address space");
    if (is_emulated())
        SKIP("qemu-user keeps limits of memory from the program");
    CHECK_EQ(hak_os_address_limit_bytes(), SIZE_MAX);
    CHECK_EQ(setrlimit(RLIMIT_AS, &(struct rlimit){HAK_GIB, RLIM_INFINITY}), 0);
    CHECK_EQ(hak_os_address_limit_bytes(), HAK_GIB);
}

TEST(a_file_is_read_as_far_as_there_is_room)
{
    char path[] = "/tmp/hakmem_os_test_XXXXXX";
    char buffer[16] = "";
    int fd = mkstemp(path);
    CHECK_EQ(write(fd, "abcabc", 6), 6);
    close(fd);
    CHECK_EQ(hak_os_read_file(path, buffer, sizeof buffer), 6);
    CHECK_EQ(hak_os_read_file(path, buffer, 4), 4);
    CHECK_STR(buffer, "abcabc");
    unlink(path);
}

TEST(the_environment_is_found)
{
    setenv("HAKMEM_OS_TEST", "here", 1);
    bool is_found = false;
    for (char **i = hak_os_environment(); *i != NULL; i++)
        is_found |= strcmp(*i, "HAKMEM_OS_TEST=here") == 0;
    CHECK(is_found);
    CHECK(!hak_os_is_privileged());
}
