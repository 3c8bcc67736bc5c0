/* SPDX-License-Identifier: MIT */
/* tests/preload/rseq.c - threads that share the caches of processors, and are interrupted in the
 * middle of everything: by signals, by one another, by moves to other processors, by drains, by
 * copies of the process. Each block says whose it is, so that one that is served twice is seen. If
 * this fails, a busy machine corrupts a program's memory once in a while. */
#include "program.h"

#include <limits.h>
#include <malloc.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/time.h>

#define HELD 64
#define PROCESSORS_MOST 1024
#define WORKERS_MOST 64

extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

static int is_full(void)
{
    return getenv("HAK_FULL") != NULL;
}

static int has_value(const char *name, const char *value)
{
    const char *found = getenv(name);
    return found != NULL && strcmp(found, value) == 0;
}

/* NULL: caches belong to processors; else why they do not. */
static const char *why_not(void)
{
#if defined(__x86_64__) || defined(__aarch64__)
    unsigned long mask[128];
    if (&__rseq_offset == NULL || &__rseq_size == NULL || __rseq_size == 0)
        return "libc registers no restartable sequences";
    if (has_value("HAKMEM_CACHES", "thread"))
        return "caches belong to threads";
    if (syscall(SYS_sched_getaffinity, 0, sizeof mask, mask) * 8 > PROCESSORS_MOST)
        return "this machine has too many processors";
    return NULL;
#else
    return "no restartable sequences for this architecture";
#endif
}

static _Atomic int has_ended;
static _Atomic unsigned damaged_count;
static _Atomic unsigned long signal_count, child_count, spawn_count, trim_count;
static int handlers_allocate;
static pthread_t workers[WORKERS_MOST];
static unsigned worker_count;

/* A handler that interrupts its thread in a slow path may be refused; not often. */
static _Atomic unsigned refused_count;
#define REFUSED_PARTS 10

/* A block says in its first and in its last word who has it. */
struct owned {
    uint64_t *words;
    size_t count;
    uint64_t tag;
};

/* False: refused. */
static int own(struct owned *owned, unsigned *state, uint64_t tag)
{
    size_t bytes = next_random(state) % 8 == 0 ? random_bytes(state) : next_random(state) % 300;
    owned->count = bytes / 8 + 1;
    owned->tag = tag;
    owned->words = malloc(owned->count * 8);
    if (owned->words == NULL)
        return 0;
    owned->words[0] = tag;
    owned->words[owned->count - 1] = tag;
    return 1;
}

static void disown(struct owned *owned)
{
    if (owned->words == NULL)
        return;
    if (owned->words[0] != owned->tag || owned->words[owned->count - 1] != owned->tag)
        damaged_count++;
    owned->words[0] = ~owned->tag;
    free(owned->words);
    owned->words = NULL;
}

/* What goes from one worker to another. */
static _Atomic(uint64_t *) passed[16];

static void pass_on(unsigned *state)
{
    uint64_t *mine = malloc(24);
    if (mine == NULL)
        _exit(9);
    mine[0] = (uintptr_t)mine;
    mine[2] = ~(uintptr_t)mine;
    uint64_t *other = atomic_exchange(&passed[next_random(state) % 16], mine);
    if (other != NULL && (other[0] != (uintptr_t)other || other[2] != ~(uintptr_t)other))
        damaged_count++;
    if (other != NULL)
        other[0] = 0;
    free(other);
}

static void take_and_free(unsigned seed, unsigned rounds)
{
    struct owned held[HELD] = {{0}};
    unsigned state = seed;
    for (unsigned i = 0; i < rounds; i++) {
        struct owned *at = &held[next_random(&state) % HELD];
        disown(at);
        if (!own(at, &state, ((uint64_t)seed << 32) + i + 1))
            _exit(9);
        if (i % 16 == 0)
            pass_on(&state);
    }
    for (unsigned i = 0; i < HELD; i++)
        disown(&held[i]);
}

static void *work(void *argument)
{
    for (unsigned seed = (unsigned)(uintptr_t)argument; !has_ended; seed += WORKERS_MOST)
        take_and_free(seed, 3000);
    return NULL;
}

static void on_signal(int number)
{
    (void)number;
    unsigned long count = ++signal_count;
    if (!handlers_allocate)
        return;
    int saved = errno;
    struct owned some[3] = {{0}};
    unsigned state = (unsigned)count;
    for (unsigned i = 0; i < 3; i++)
        if (!own(&some[i], &state, ~(uint64_t)count))
            refused_count++;
    for (unsigned i = 0; i < 3; i++)
        disown(&some[i]);
    errno = saved;
}

/* Up to 10,000 signals a second, for one worker after the other. */
static void *send_signals(void *argument)
{
    for (unsigned i = 0; !has_ended; i++) {
        pthread_kill(workers[i % worker_count], SIGUSR1);
        nanosleep(&(struct timespec){0, 50000}, NULL);
    }
    return argument;
}

static void *trim(void *argument)
{
    while (!has_ended) {
        malloc_trim(0);
        trim_count++;
        sleep_ms(1);
    }
    return argument;
}

/* A worker may run on one processor, or on all again. */
static void *move_workers(void *argument)
{
    cpu_set_t all, one;
    unsigned state = 5;
    CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    while (!has_ended) {
        unsigned target = next_random(&state) % CPU_SETSIZE;
        CPU_ZERO(&one);
        CPU_SET(target % (unsigned)CPU_COUNT(&all), &one);
        CPU_AND(&one, &one, &all);
        pthread_setaffinity_np(workers[next_random(&state) % worker_count], sizeof one,
                               CPU_COUNT(&one) != 0 && target % 3 != 0 ? &one : &all);
        nanosleep(&(struct timespec){0, 200000}, NULL);
    }
    return argument;
}

static void *fork_children(void *argument)
{
    while (!has_ended) {
        pid_t pid = fork();
        if (pid == 0) {
            take_and_free(77, 300);
            _exit(damaged_count != 0);
        }
        CHECK_CHILD_ENDS_WELL(pid, 20000);
        child_count++;
        sleep_ms(2);
    }
    return argument;
}

/* What a child of vfork does is done to its parent's memory. */
static void *vfork_children(void *argument)
{
    for (volatile unsigned i = 0; !has_ended; i++) {
        pid_t pid = vfork();
        if (pid == 0) {
            take_and_free(88, 100);
            if (i % 2 == 0)
                execl("/bin/true", "true", (char *)NULL);
            _exit(0);
        }
        CHECK_CHILD_ENDS_WELL(pid, 20000);
        take_and_free(99, 100);
        spawn_count++;
    }
    return argument;
}

static void start_workers(void)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    worker_count = processors * 4 > WORKERS_MOST ? WORKERS_MOST : (unsigned)processors * 4;
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    for (uintptr_t i = 0; i < worker_count; i++)
        workers[i] = start_thread(work, (void *)(i + 1));
}

/* In a mode in which handlers may come at any time they allocate. */
PART(everything_at_once)
{
    static void *(*const others[])(void *) = {send_signals, trim, move_workers, fork_children,
                                              vfork_children};
    pthread_t threads[5];
    check_is_served();
    handlers_allocate = why_not() == NULL;
    start_workers();
    for (unsigned i = 0; i < 5; i++)
        threads[i] = start_thread(others[i], NULL);
    const char *wanted = getenv("RSEQ_TEST_MS");
    sleep_ms(wanted != NULL ? atol(wanted) : is_full() ? 60000 : 3000);
    has_ended = 1;
    for (unsigned i = 0; i < 5; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < worker_count; i++)
        pthread_join(workers[i], NULL);
    CHECK_EQ(damaged_count, 0);
    if (refused_count > signal_count / REFUSED_PARTS + 1)
        CHECK_FAILED("%u refused in %lu handlers", refused_count, signal_count);
    unsigned least = is_emulated() ? 1 : 10;
    CHECK(signal_count > 10 * least && trim_count > least && child_count > least &&
          spawn_count > least);
}

static void run(const char *part, const char *name, const char *value)
{
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        if (name != NULL)
            setenv(name, value, 1);
        become(part);
    }
    CHECK_CHILD_ENDS_WELL(pid, 110000);
}

PART(what_allocates_a_little)
{
    void *block = malloc(100);
    CHECK(block != NULL);
    free(block);
}

/* Else the runs below would prove nothing. */
static void check_mode(const char *name, const char *value, int is_processors)
{
    int fd;
    if (name != NULL)
        setenv(name, value, 1);
    run_with_statistics("what_allocates_a_little", &fd);
    CHECK_EQ(counter_in(fd, "caches_by_processor"), is_processors);
    if (name != NULL)
        unsetenv(name);
}

TEST(no_block_is_served_twice_by_caches_of_processors)
{
    if (why_not() != NULL)
        SKIP(why_not());
    check_mode(NULL, NULL, 1);
    run("everything_at_once", NULL, NULL);
}

PART(everything_without_sequences)
{
    CHECK(why_not() != NULL);
    become("everything_at_once");
}

TEST(no_block_is_served_twice_where_libc_registers_no_sequences)
{
    check_mode("GLIBC_TUNABLES", "glibc.pthread.rseq=0", 0);
    run("everything_without_sequences", "GLIBC_TUNABLES", "glibc.pthread.rseq=0");
}

TEST(no_block_is_served_twice_by_caches_of_threads)
{
    check_mode("HAKMEM_CACHES", "thread", 0);
    run("everything_without_sequences", "HAKMEM_CACHES", "thread");
}

#define SLEEPERS 500
#define SLEEPERS_BLOCKS 1000
#define SLEEPERS_MOST_KB (30 * 1024)

static pthread_barrier_t have_freed, may_end;

static void *use_much_and_sleep(void *argument)
{
    unsigned state = (unsigned)(uintptr_t)argument;
    char **blocks = malloc(SLEEPERS_BLOCKS * sizeof *blocks);
    for (unsigned i = 0; i < SLEEPERS_BLOCKS; i++) {
        size_t bytes = 16 + next_random(&state) % 2000;
        blocks[i] = malloc(bytes);
        memset(blocks[i], 1, bytes);
    }
    for (unsigned i = 0; i < SLEEPERS_BLOCKS; i++)
        free(blocks[i]);
    free(blocks);
    pthread_barrier_wait(&have_freed);
    pthread_barrier_wait(&may_end);
    return NULL;
}

static void *sleep_only(void *argument)
{
    pthread_barrier_wait(&have_freed);
    pthread_barrier_wait(&may_end);
    return argument;
}

/* Threads that were interrupted beside others had memory at the same time: it goes back soon, by
 * itself. */
static long resident_soon_kb(long enough_kb)
{
    long kb = resident_kb();
    for (unsigned i = 0; i < 200 && kb > enough_kb; i++) {
        sleep_ms(100);
        kb = resident_kb();
    }
    return kb;
}

static long sleepers_kb(void *(*body)(void *), long enough_kb)
{
    static pthread_t threads[SLEEPERS];
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 * 1024);
    pthread_barrier_init(&have_freed, NULL, SLEEPERS + 1);
    pthread_barrier_init(&may_end, NULL, SLEEPERS + 1);
    for (uintptr_t i = 0; i < SLEEPERS; i++)
        CHECK_EQ(pthread_create(&threads[i], &small, body, (void *)(i + 1)), 0);
    pthread_barrier_wait(&have_freed);
    long kb = resident_soon_kb(enough_kb);
    pthread_barrier_wait(&may_end);
    for (unsigned i = 0; i < SLEEPERS; i++)
        pthread_join(threads[i], NULL);
    return kb;
}

TEST(five_hundred_threads_that_sleep_withhold_nothing)
{
    if (why_not() != NULL)
        SKIP(why_not());
    time_limit(100);
    check_is_served();
    long asleep_kb = sleepers_kb(sleep_only, LONG_MAX);
    long after_kb = sleepers_kb(use_much_and_sleep, asleep_kb + SLEEPERS_MOST_KB);
    if (after_kb - asleep_kb > SLEEPERS_MOST_KB)
        CHECK_FAILED("%ld KiB more than %ld", after_kb - asleep_kb, asleep_kb);
    CHECK_PASSED();
}
