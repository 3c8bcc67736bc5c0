/* SPDX-License-Identifier: MIT */
/* tests/preload/profile.c - the heap profile by its API, beside forks, libraries that come and go
 * and handlers on small stacks (storms.c has these in great number). If this fails, a profile is
 * cut or another process's, or programs crash because they are looked at. */
#include "program.h"

#define HAKMEM_WEAK
#include <hakmem/hakmem.h>

#include <sys/stat.h>

#define MEAN 2048
#define ROUNDS_MS 1500
#define LOADS_LEAST 100

static void allocate(unsigned seed, int rounds)
{
    void *blocks[64] = {NULL};
    for (int i = 0; i < rounds; i++) {
        seed = seed * 1103515245u + 12345u;
        void **block = &blocks[seed >> 8 & 63];
        size_t bytes = 1 + (seed >> 16) % 700 + (i % 500 == 0 ? 200000 : 0);
        if (i % 3 == 0) {
            *block = realloc(*block, bytes);
        } else {
            free(*block);
            *block = malloc(bytes);
        }
        if (*block == NULL)
            abort();
        *(volatile char *)*block = 1;
    }
    for (int i = 0; i < 64; i++)
        free(blocks[i]);
}

/* A killed process may have left a board under a number that comes again: it is no process's of
 * this test. */
static struct timespec begun;

static int is_later(struct timespec time)
{
    return time.tv_sec > begun.tv_sec ||
           (time.tv_sec == begun.tv_sec && time.tv_nsec >= begun.tv_nsec);
}

static int board_path(char *path, size_t bytes, int pid)
{
    snprintf(path, bytes, "/dev/shm/hakmem.profile.%d", pid);
    struct stat about;
    return stat(path, &about) == 0 && (about.st_mode & 0777) == 0600 && is_later(about.st_ctim);
}

/* The profile that the library writes is whole, whatever is allocated and loaded meanwhile: what
 * each message says of its length leads from one to the next, and to the end. */
static void check_written(void)
{
    static unsigned char bytes[1 << 20];
    int file = memfd_create("profile", 0);
    CHECK_EQ(hakmem_profile_write(file), 0);
    ssize_t count = pread(file, bytes, sizeof bytes, 0), at = 0;
    long samples = 0;
    CHECK(count > 500 && count < (ssize_t)sizeof bytes);
    while (at < count) {
        unsigned long values[2] = {0, 0}; /* the field with its kind; its length or number */
        for (int i = 0; i < 2; i++) {
            int shift = 0;
            do {
                CHECK(at < count && shift < 64);
                values[i] |= (unsigned long)(bytes[at] & 127) << shift;
                shift += 7;
            } while (bytes[at++] >= 128);
        }
        CHECK((values[0] & 7) == 0 || (values[0] & 7) == 2);
        samples += values[0] >> 3 == 2;
        at += (values[0] & 7) == 2 ? (ssize_t)values[1] : 0;
    }
    CHECK_EQ(at, count);
    CHECK(samples > 0);
    close(file);
}

/* hakmem_profile_start reaches programs that are preloaded only by a weak name. */
static void begin(void)
{
    char path[64];
    check_is_served();
    CHECK(hakmem_profile_start != NULL);
    clock_gettime(CLOCK_REALTIME_COARSE, &begun); /* as the kernel dates files */
    CHECK_EQ(hakmem_option_set("heap_profile_samples", "0"), 0);
    hakmem_profile_start(MEAN);
    allocate(1, 20000);
    CHECK(board_path(path, sizeof path, getpid()));
    check_written();
    CHECK_EQ(hakmem_profile_write(-1), EBADF);
    CHECK_EQ(hakmem_profile_print(-1, "json"), EBADF);
    CHECK_EQ(hakmem_profile_print(-1, "jpeg"), EINVAL);
}

static atomic_int is_over;

static void *work(void *seed)
{
    while (!is_over)
        allocate((unsigned)(size_t)seed, 500);
    return NULL;
}

TEST(a_profile_is_written_while_threads_allocate_and_libraries_come_and_go)
{
    time_limit(500);
    begin();
    static const char *const names[] = {"libm.so.6", "libresolv.so.2", "libutil.so.1",
                                        "libanl.so.1", "libnss_files.so.2"};
    pthread_t threads[3];
    start_threads(threads, 3, work);
    uint64_t end_ms = now_ms() + ROUNDS_MS;
    long loaded = 0;
    for (int i = 0; loaded <= LOADS_LEAST || now_ms() < end_ms; i++) {
        void *library = dlopen(names[i % 5], RTLD_NOW | RTLD_LOCAL);
        loaded += library != NULL;
        if (library != NULL)
            dlclose(library);
        if (i % 64 == 0)
            check_written();
    }
    is_over = 1;
    join_threads(threads, 3);
}

/* A child has its parent's samples and a board of its own, once it samples. */
static void check_child(int parent, int may_sample)
{
    char path[64], of_parent[64];
    CHECK(board_path(of_parent, sizeof of_parent, parent));
    CHECK(!board_path(path, sizeof path, getpid()));
    if (may_sample) {
        allocate(7, 20000);
        CHECK(board_path(path, sizeof path, getpid()));
        check_written();
    }
}

TEST(children_of_all_kinds_leave_their_parent_s_board_alone)
{
    pthread_t threads[3];
    int parent = getpid();
    begin();
    start_threads(threads, 3, work);
    for (int i = 0; i < 300; i++) {
        int child = i % 3 == 0 ? _Fork() : fork();
        if (child == 0) {
            if (i % 10 == 0)
                check_child(parent, i % 20 == 0);
            else if (i % 2 == 0)
                allocate((unsigned)i, 3000);
            if (i % 20 == 0) {
                char path[64];
                snprintf(path, sizeof path, "/dev/shm/hakmem.profile.%d", getpid());
                unlink(path);
            }
            _exit(0);
        }
        CHECK_CHILD_ENDS_WELL(child, 60000);
    }
    for (int i = 0; i < 50; i++) {
        int child = vfork();
        if (child == 0) {
            free(malloc(3000));
            _exit(0);
        }
        CHECK_CHILD_ENDS_WELL(child, 60000);
    }
    is_over = 1;
    join_threads(threads, 3);
    char path[64];
    CHECK(board_path(path, sizeof path, getpid()));
}

/* Its number is nobody's when it has ended: the first sample of its parent's memory makes none. */
TEST(a_child_of_vfork_makes_no_board)
{
    char path[64];
    time_limit(500);
    check_is_served();
    CHECK(hakmem_profile_start != NULL);
    clock_gettime(CLOCK_REALTIME_COARSE, &begun);
    CHECK_EQ(hakmem_option_set("heap_profile_samples", "0"), 0);
    hakmem_profile_start(MEAN);
    CHECK(!board_path(path, sizeof path, getpid()));
    int child = vfork();
    if (child == 0) {
        allocate(1, 20000);
        _exit(0);
    }
    CHECK_CHILD_ENDS_WELL(child, 60000);
    CHECK(!board_path(path, sizeof path, child));
    allocate(1, 20000);
    CHECK(board_path(path, sizeof path, getpid()));
    check_written();
}

static void on_signal(int number)
{
    int saved = errno;
    free(malloc((size_t)number * 100));
    errno = saved;
}

/* A stack that ends a little above where malloc is called. */
TEST(a_handler_on_a_small_stack_is_sampled)
{
    static char room[16384];
    stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    begin();
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < 20000; i++)
        raise(SIGUSR1);
}
