/* SPDX-License-Identifier: MIT */
/* tests/preload/mlockall.c - everything locked into memory, as real-time programs and keepers of
 * keys do, by root and by a user whose limit was raised. Only new kernels purge locked pages, so
 * calloc must not take what is free for zero. If this fails, such programs do not start, read old
 * secrets, or grow for ever. */
#include "program.h"

#include <linux/capability.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#define USER 65534 /* nobody */
#define USERS_LIMIT_BYTES (256ul << 20)

static void lock_everything(void)
{
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0)
        CHECK_FAILED("mlockall: %s", strerror(errno));
}

/* Dirty blocks of many sizes go back, and what calloc then returns is zero all the same. */
static void dirty_and_calloc(unsigned rounds)
{
    static char *blocks[300];
    static size_t bytes[300];
    unsigned state = 11;
    for (unsigned round = 0; round < rounds; round++) {
        for (unsigned i = 0; i < 300; i++) {
            bytes[i] = i % 30 == 0 ? 1 + next_random(&state) % 2000000 : random_bytes(&state);
            blocks[i] = malloc(bytes[i]);
            CHECK(blocks[i] != NULL);
            memset(blocks[i], 0xa5, bytes[i]);
        }
        for (unsigned i = 0; i < 300; i++)
            free(blocks[i]);
        /* Long enough for free memory to be old, if hakmem wanted to purge it. */
        sleep_ms(160);
        for (unsigned i = 0; i < 300; i++) {
            blocks[i] = calloc(1, bytes[i]);
            CHECK(blocks[i] != NULL);
            if (!is_zero(blocks[i], bytes[i]))
                CHECK_FAILED("calloc of %zu bytes is not zero", bytes[i]);
            memset(blocks[i], 0x5a, bytes[i]);
        }
        for (unsigned i = 0; i < 300; i++)
            free(blocks[i]);
    }
}

static void *allocate_in_thread(void *argument)
{
    unsigned state = 5;
    for (unsigned i = 0; i < 3000; i++) {
        char *block = calloc(1, 1 + next_random(&state) % 5000);
        CHECK(block != NULL && *block == 0);
        *block = 1;
        free(block);
    }
    return argument;
}

PART(what_locks_before_it_allocates)
{
    check_is_served();
    lock_everything();
    dirty_and_calloc(4);
    in_thread(allocate_in_thread, NULL);
}

PART(what_locks_after_it_allocated)
{
    dirty_and_calloc(2);
    lock_everything();
    dirty_and_calloc(4);
    in_thread(allocate_in_thread, NULL);
}

static void needs_root(void)
{
    if (geteuid() != 0)
        SKIP("only root may lock everything");
}

TEST(root_locks_before_it_allocates)
{
    needs_root();
    time_limit(500);
    CHECK_EXITS(become("what_locks_before_it_allocates"), 0);
}

TEST(root_locks_after_it_allocated)
{
    needs_root();
    time_limit(500);
    CHECK_EXITS(become("what_locks_after_it_allocated"), 0);
}

TEST(root_locks_unlocks_and_locks)
{
    needs_root();
    time_limit(500);
    for (unsigned i = 0; i < 3; i++) {
        lock_everything();
        dirty_and_calloc(1);
        CHECK_EQ(munlockall(), 0);
        dirty_and_calloc(1);
    }
}

#define BLOCKS 200
#define BLOCK_BYTES ((size_t)500000)

/* Linux 5.18 and later drop pages that are locked (MADV_DONTNEED_LOCKED). */
static void needs_new_kernel(void)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED && mlock(page, 4096) == 0);
    if (madvise(page, 4096, 24) != 0)
        SKIP("this kernel does not drop locked pages");
    munmap(page, 4096);
}

static void allocate_and_free(size_t bytes)
{
    static char *blocks[BLOCKS * BLOCK_BYTES / 1000];
    size_t count = BLOCKS * BLOCK_BYTES / bytes;
    for (size_t i = 0; i < count; i++) {
        CHECK((blocks[i] = malloc(bytes)) != NULL);
        memset(blocks[i], 1, bytes);
    }
    for (size_t i = 0; i < count; i++)
        free(blocks[i]);
}

/* What is resident once all that is free went back. One trim passes by a heap that hakmem's own
 * thread is inside, and on a busy machine stays for a while. */
static size_t trimmed_kib(size_t enough_kib)
{
    size_t kib = SIZE_MAX;
    for (int i = 0; i < 500 && kib > enough_kib; i++) {
        if (i != 0)
            sleep_ms(20);
        malloc_trim(0);
        kib = status_kib("VmRSS");
    }
    return kib;
}

TEST(root_locks_only_mapped_memory_and_freed_memory_is_returned)
{
    needs_root();
    needs_new_kernel();
    time_limit(500);
    check_is_served();
    free(hidden(malloc(1)));
    lock_everything();
    /* The program, its stack and libraries, and a little of ours. */
    size_t locked = status_kib("VmLck");
    if (locked > 64 << 10)
        CHECK_FAILED("%zu KiB are locked", locked);
    size_t before = status_kib("VmRSS");
    static const size_t sizes[] = {BLOCK_BYTES, 1000, 20000};
    for (int i = 0; i < 3; i++) {
        allocate_and_free(sizes[i]);
        size_t after = trimmed_kib(before + (16 << 10));
        if (after > before + (16 << 10))
            CHECK_FAILED("%zu KiB, then %zu KiB after blocks of %zu bytes", before, after,
                         sizes[i]);
    }
}

/* As keepers of keys do, which lock single pages, and free them locked. */
TEST(a_locked_page_does_not_keep_the_others_from_going_back)
{
    needs_new_kernel();
    time_limit(500);
    static char *blocks[100];
    for (int round = 0; round < 2; round++) {
        size_t bytes = round == 0 ? BLOCK_BYTES : 20000;
        size_t before = status_kib("VmRSS");
        for (int i = 0; i < 100; i++) {
            CHECK((blocks[i] = malloc(bytes)) != NULL);
            memset(blocks[i], 1, bytes);
        }
        for (int i = 10; i < 100; i += 30)
            CHECK_EQ(mlock(blocks[i] + 4096, 100), 0);
        for (int i = 0; i < 100; i++)
            free(blocks[i]);
        size_t after = trimmed_kib(before + 1024);
        if (after > before + 1024)
            CHECK_FAILED("%zu KiB, then %zu KiB after blocks of %zu bytes", before, after, bytes);
    }
}

/* A process that starts `part` with a limit of locked memory that binds it; 77 where that cannot
 * be. */
static void raise_limit(void)
{
    struct rlimit limit = {USERS_LIMIT_BYTES, USERS_LIMIT_BYTES};
    if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0)
        SKIP("the limit of locked memory cannot be raised here");
}

static void become_as_user(const char *part)
{
    const char *library = getenv("LD_PRELOAD");
    const char *path = program_path();
    raise_limit();
    if (setgid(USER) != 0 || setuid(USER) != 0)
        SKIP("this process cannot become nobody");
    if (access(path, X_OK) != 0 || (library != NULL && access(library, R_OK) != 0))
        SKIP("nobody may not run this program");
    become(part);
}

/* In containers root has no right to lock: the limit binds this root, too. */
static void become_as_contained_root(const char *part)
{
    raise_limit();
    if (prctl(PR_CAPBSET_DROP, CAP_IPC_LOCK) != 0)
        SKIP("the right to lock cannot be given up");
    become(part);
}

static void check_limited(void (*start)(const char *part), const char *part)
{
    needs_root();
    time_limit(500);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0)
        start(part);
    int status = status_within(pid, 90000);
    if (WIFEXITED(status) && WEXITSTATUS(status) == CHECK_SKIPPED)
        _exit(CHECK_SKIPPED);
    CHECK_EQ(status, 0);
}

TEST(a_user_with_a_limit_of_256_MiB_locks_before_it_allocates)
{
    check_limited(become_as_user, "what_locks_before_it_allocates");
}

TEST(a_user_with_a_limit_of_256_MiB_locks_after_it_allocated)
{
    check_limited(become_as_user, "what_locks_after_it_allocated");
}

TEST(root_of_a_container_locks_before_it_allocates)
{
    check_limited(become_as_contained_root, "what_locks_before_it_allocates");
}

/* The limit is reached: NULL and ENOMEM, and frees help. */
PART(what_locks_and_runs_out)
{
    static char *blocks[512];
    lock_everything();
    for (unsigned round = 0; round < 3; round++) {
        unsigned count = 0;
        errno = 0;
        while (count < 512 && (blocks[count] = malloc(1 << 20)) != NULL) {
            fill(blocks[count], 4096, count);
            count++;
        }
        CHECK(count < 512);
        CHECK_EQ(errno, ENOMEM);
        CHECK(count > 100);
        while (count > 0) {
            count--;
            CHECK(is_filled(blocks[count], 4096, count));
            free(blocks[count]);
        }
    }
}

TEST(a_user_who_locks_and_runs_out_gets_ENOMEM)
{
    check_limited(become_as_user, "what_locks_and_runs_out");
}
