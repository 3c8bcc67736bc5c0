/* SPDX-License-Identifier: MIT */
/* tests/preload/storms.c - the option heap_profile under storms: signals whose handlers allocate,
 * libraries that come and go, children and threads, each in great number, while another process
 * reads the board. At the end the board is whole and memory is bounded. If this fails, a program
 * that is profiled hangs, crashes or grows once in a while.
 *
 * With HAK_FULL the numbers are 50 to 200 times as large. Linked statically
 * (storms_static_preload.sh) it has no libraries that come and go. */
#include "program.h"

#define HAKMEM_WEAK
#include <hakmem/hakmem.h>

#include <sys/stat.h>

#define SIGNALS (is_full() ? 1000000u : 5000u)
#define LOADS (is_full() ? 10000u : 200u)
#define FORKS (is_full() ? 10000u : 100u)
#define THREADS (is_full() ? 100000u : 2000u)
#define SECONDS (is_full() ? 600u : 500u) /* of each */
#define GROWN_MOST ((size_t)8 << 20)

/* A board begins with words (src/profile/board.h): 0 is the magic number, 3 the length of the file,
 * 4 the process. */
#define BOARD_MAGIC 0x31656c69666f7268ull
#define BOARD_BYTES_MOST (1 << 20)

static void board_path(char *path, size_t bytes, int pid)
{
    snprintf(path, bytes, "/dev/shm/hakmem.profile.%d", pid);
}

static void allocate(unsigned seed, unsigned rounds)
{
    void *blocks[16] = {NULL};
    for (unsigned i = 0; i < rounds; i++) {
        void **block = &blocks[next_random(&seed) % 16];
        free(*block);
        *block = hidden(malloc(next_random(&seed) % 2000));
        if (*block == NULL)
            abort();
    }
    for (unsigned i = 0; i < 16; i++)
        free(blocks[i]);
}

/* Reads the whole board again and again, while its parent lives. */
static void read_for_ever(int parent)
{
    char path[64];
    struct stat about;
    board_path(path, sizeof path, parent);
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &about) != 0)
        _exit(1);
    size_t count = (size_t)about.st_size / sizeof(uint64_t);
    const volatile uint64_t *words =
        mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_SHARED, fd, 0);
    for (uint64_t sum = 0; getppid() == parent; sched_yield()) {
        for (size_t i = 0; i < count; i += 8)
            sum += words[i];
        if (words[0] != BOARD_MAGIC || sum == 0)
            _exit(1);
    }
    _exit(0);
}

static pid_t reader;
static size_t resident_before;

static void check_is_hakmem(void)
{
#ifdef LINKED_STATICALLY
    void *block = hidden(malloc(10));
    CHECK(hakmem_is_owned(block));
    free(block);
#else
    check_is_served();
#endif
}

/* The sentence begins again, profiled. */
static void begin(const char *sentence)
{
    time_limit(SECONDS);
    begin_with(sentence, "HAKMEM_CONF",
               "heap_profile=on,heap_profile_samples=0,heap_profile_rate=2048");
    check_is_hakmem();
    allocate(1, 20000);
    int parent = getpid();
    reader = _Fork();
    if (reader == 0)
        read_for_ever(parent);
    resident_before = resident_bytes();
}

static void check_board(void)
{
    char path[64];
    struct stat about;
    uint64_t words[5];
    board_path(path, sizeof path, getpid());
    int fd = open(path, O_RDONLY);
    CHECK(fd >= 0 && fstat(fd, &about) == 0 && about.st_size <= BOARD_BYTES_MOST);
    CHECK_EQ(read(fd, words, sizeof words), sizeof words);
    close(fd);
    CHECK_EQ(words[0], BOARD_MAGIC);
    CHECK_EQ(words[3], about.st_size);
    CHECK_EQ(words[4], getpid());
}

/* `hakmem profile` reads it, where the command is built. */
static void check_command(void)
{
    char command[4400], path[4200];
    snprintf(path, sizeof path, "%s/hakmem", getenv("OUT") == NULL ? "." : getenv("OUT"));
    if (access(path, X_OK) != 0)
        return;
    snprintf(command, sizeof command,
             "unset LD_PRELOAD HAKMEM_CONF; '%s' profile %d --json | "
             "grep -q live_bytes",
             path, getpid());
    CHECK_EQ(system(command), 0);
}

/* The reader found nothing wrong; the board and memory are no larger than they may be. */
static void check_end(void)
{
    CHECK_EQ(waitpid(reader, NULL, WNOHANG), 0);
    kill(reader, SIGKILL);
    waitpid(reader, NULL, 0);
    ssize_t grown = (ssize_t)resident_bytes() - (ssize_t)resident_before;
    if (grown > (ssize_t)GROWN_MOST)
        CHECK_FAILED("%zd KiB more are resident", grown >> 10);
    check_board();
    check_command();
}

static _Atomic unsigned handled;

static void on_signal(int number)
{
    int saved = errno;
    free(hidden(malloc((size_t)(handled * 7 + (unsigned)number) % 3000)));
    handled++;
    errno = saved;
}

#define RECEIVERS 4
static pthread_t receivers[RECEIVERS];

static void *allocate_meanwhile(void *seed)
{
    while (handled < SIGNALS)
        allocate((unsigned)(uintptr_t)seed, 500);
    return NULL;
}

/* Two signals for each receiver, again and again. */
static void send_signals(void)
{
    while (handled < SIGNALS) {
        for (unsigned i = 0; i < RECEIVERS; i++) {
            pthread_kill(receivers[i], SIGPROF);
            pthread_kill(receivers[i], SIGUSR1);
        }
        sched_yield();
    }
}

TEST(signals_whose_handlers_allocate)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    begin(__func__);
    CHECK_EQ(sigaction(SIGPROF, &action, NULL), 0);
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    start_threads(receivers, RECEIVERS, allocate_meanwhile);
    send_signals();
    join_threads(receivers, RECEIVERS);
    check_end();
}

static atomic_int is_over;

static void *work(void *seed)
{
    while (!is_over)
        allocate((unsigned)(uintptr_t)seed, 500);
    return NULL;
}

#ifndef LINKED_STATICALLY
static void use(void *block)
{
    if (hidden(block) == NULL)
        abort();
    free(block);
}

/* Guests take turns at one place, and call back from frames of different sizes. */
TEST(libraries_that_come_and_go)
{
    begin(__func__);
    pthread_t worker = start_thread(work, (void *)1);
    unsigned same_places = 0;
    void *last = NULL;
    for (unsigned i = 0; i < LOADS; i++) {
        char path[4200];
        snprintf(path, sizeof path, "%.*s/libpreload_guest%u.so",
                 (int)(strrchr(program_path(), '/') - program_path()), program_path(), i % 3);
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (library == NULL)
            CHECK_FAILED("%s", dlerror());
        void (*guest_run)(void (*)(void *), unsigned);
        *(void **)&guest_run = dlsym(library, "guest_run");
        guest_run(use, 20);
        same_places += last == *(void **)&guest_run;
        last = *(void **)&guest_run;
        CHECK_EQ(dlclose(library), 0);
    }
    is_over = 1;
    pthread_join(worker, NULL);
    CHECK(same_places > LOADS / 10);
    check_end();
}
#endif

/* A copy of each kind allocates enough to be sampled. */
TEST(children_that_allocate_and_exit)
{
    begin(__func__);
    pthread_t worker = start_thread(work, (void *)1);
    for (unsigned i = 0; i < FORKS; i++) {
        pid_t pid = i % 4 == 0 ? _Fork() : fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            char path[64];
            allocate(i, 100);
            board_path(path, sizeof path, getpid());
            unlink(path);
            _exit(0);
        }
        CHECK_CHILD_ENDS_WELL(pid, 60000);
    }
    is_over = 1;
    pthread_join(worker, NULL);
    check_end();
}

static void *work_briefly(void *seed)
{
    allocate((unsigned)(uintptr_t)seed, 100);
    return malloc(100);
}

TEST(threads_that_come_and_go)
{
    enum { AT_ONCE = 50 };
    pthread_t threads[AT_ONCE];
    begin(__func__);
    for (unsigned i = 0; i < THREADS; i += AT_ONCE) {
        for (unsigned k = 0; k < AT_ONCE; k++)
            threads[k] = start_thread(work_briefly, (void *)(uintptr_t)(i + k));
        for (unsigned k = 0; k < AT_ONCE; k++)
            free(join_thread(threads[k]));
    }
    check_end();
}
