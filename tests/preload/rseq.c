/* SPDX-License-Identifier: MIT */
/* tests/preload/rseq.c - threads that share the caches of processors, and are interrupted in the
 * middle of everything: by signals, by one another, by moves to other processors, by fences and
 * drains, by copies of the process; alone, and beside a second user of restartable sequences in the
 * process. Each block says whose it is, so that one that is served twice is seen. If this fails, a
 * busy machine corrupts a program's memory once in a while.
 *
 *   RSEQ_TEST_OPERATIONS  calls of malloc and free that workers make at least: 10^7, with HAK_FULL
 *                         10^9
 *   RSEQ_TEST_MS          milliseconds that they work at least: 3,000, with HAK_FULL 60,000
 *   RSEQ_TEST_SEED        where random numbers start: 1
 *   RSEQ_TEST_SAYS        counts go to standard error */
#include "program.h"

#include <limits.h>
#include <malloc.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/time.h>

#define HELD 64
#define PROCESSORS_MOST 1024
#define OPERATIONS 10000000ul
#define OPERATIONS_FULL 1000000000ul
#define LEAST_MS 3000
#define LEAST_MS_FULL 60000
#define WORKERS_MOST 64

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

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
static _Atomic unsigned long signal_count, child_count, spawn_count, trim_count, fence_count;
static _Atomic unsigned long move_count, operation_count;
static int handlers_allocate, has_second_user;
static pthread_t workers[WORKERS_MOST];
static unsigned worker_count;

static _Atomic unsigned refused_count;

/* The first and the last word of a block name its owner. */
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
    size_t alignment = (size_t)16 << next_random(state) % 9;
    void *block = NULL;
    bool is_aligned = next_random(state) % 4 == 0;
    if (!is_aligned)
        block = malloc(owned->count * 8);
    else if (posix_memalign(&block, alignment, owned->count * 8) != 0)
        block = NULL;
    owned->words = block;
    if (block == NULL)
        return 0;
    if ((uintptr_t)block % (is_aligned ? alignment : 8) != 0)
        damaged_count++;
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

/* The second user of sequences: counters of processors, each changed by one store in a sequence of
 * its own on the same registered area, as librseq does. An addition that is lost or made twice is
 * seen in their sum. */
static struct {
    _Alignas(128) volatile long count;
} own_counters[PROCESSORS_MOST];
static _Atomic unsigned long own_adds;

#if defined(__x86_64__)
struct rseq_head {
    uint32_t cpu_id_start, cpu_id;
    uint64_t section;
};

static struct rseq_head *rseq_head(void)
{
    return (struct rseq_head *)(void *)((char *)__builtin_thread_pointer() + __rseq_offset);
}

/* False: interrupted, or on another processor by now; nothing was changed. */
static int try_to_add(volatile long *count, uint32_t processor)
{
    struct rseq_head *head = rseq_head();
    __asm__ goto(".pushsection __rseq_cs, \"aw\"\n"
                 ".balign 32\n"
                 "3: .long 0, 0\n"
                 ".quad 1f, (2f - 1f), 4f\n"
                 ".popsection\n"
                 "leaq 3b(%%rip), %%rax\n"
                 "movq %%rax, %c[section](%[head])\n"
                 "1: cmpl %[processor], %c[cpu_id](%[head])\n"
                 "jnz %l[is_aborted]\n"
                 "addq $1, (%[count])\n"
                 "2:\n"
                 ".pushsection __rseq_failure, \"ax\"\n"
                 ".byte 0x0f, 0xb9, 0x3d\n"
                 ".long 0x53053053\n"
                 "4: jmp %l[is_aborted]\n"
                 ".popsection\n"
                 :
                 : [head] "r"(head), [count] "r"(count), [processor] "r"(processor),
                   [section] "i"(offsetof(struct rseq_head, section)),
                   [cpu_id] "i"(offsetof(struct rseq_head, cpu_id))
                 : "memory", "cc", "rax"
                 : is_aborted);
    return 1;
is_aborted:
    return 0;
}

static void add_beside(void)
{
    uint32_t processor;
    do {
        processor = __atomic_load_n(&rseq_head()->cpu_id_start, __ATOMIC_RELAXED);
    } while (!try_to_add(&own_counters[processor].count, processor));
    own_adds++;
}
#define HAS_SECOND_USER 1
#else
#define HAS_SECOND_USER 0
static void add_beside(void)
{
}
#endif

static unsigned long sum_of_own_counters(void)
{
    long sum = 0;
    for (unsigned i = 0; i < PROCESSORS_MOST; i++)
        sum += own_counters[i].count;
    return (unsigned long)sum;
}

static void take_and_free_with(unsigned seed, unsigned rounds, int adds_beside)
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
        if (adds_beside && i % 4 == 0)
            add_beside();
    }
    for (unsigned i = 0; i < HELD; i++)
        disown(&held[i]);
}

static void take_and_free(unsigned seed, unsigned rounds)
{
    take_and_free_with(seed, rounds, has_second_user);
}

/* In a child of vfork, for which no area is registered. */
static void take_and_free_alone(unsigned seed, unsigned rounds)
{
    take_and_free_with(seed, rounds, 0);
}

#define ROUNDS 3000
/* Each round takes a block and frees one; each sixteenth does so twice. */
#define OPERATIONS_OF_ROUNDS (2ul * ROUNDS + 2ul * (ROUNDS / 16))

static unsigned long wanted_number(const char *name, unsigned long otherwise)
{
    const char *value = getenv(name);
    return value != NULL ? strtoul(value, NULL, 10) : otherwise;
}

static unsigned first_seed(void)
{
    return (unsigned)wanted_number("RSEQ_TEST_SEED", 1);
}

static unsigned long operations_wanted(void)
{
    return wanted_number("RSEQ_TEST_OPERATIONS", is_full() ? OPERATIONS_FULL : OPERATIONS);
}

/* 10,000 signals a second to the calling thread, while it runs. */
static timer_t start_signals(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
    event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
    struct timespec each = {0, 100000};
    timer_t timer;
    CHECK_EQ(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    CHECK_EQ(timer_settime(timer, 0, &(struct itimerspec){each, each}, NULL), 0);
    return timer;
}

static void *work(void *argument)
{
    unsigned seed = first_seed() * 1000003u + (unsigned)(uintptr_t)argument;
    timer_t signals = start_signals();
    for (; !has_ended; seed += WORKERS_MOST) {
        take_and_free(seed, ROUNDS);
        operation_count += OPERATIONS_OF_ROUNDS;
    }
    CHECK_EQ(timer_delete(signals), 0);
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
    if (has_second_user)
        add_beside();
    errno = saved;
}

/* By libc's name and by hakmem's own. */
static void *trim(void *argument)
{
    size_t (*own_trim)(size_t);
    *(void **)&own_trim = dlsym(RTLD_DEFAULT, "hakmem_trim");
    for (unsigned i = 0; !has_ended; i++) {
        if (i % 2 == 0 && own_trim != NULL)
            own_trim(0);
        else
            malloc_trim(0);
        trim_count++;
        sleep_ms(1);
    }
    return argument;
}

#define FENCE_RSEQ (1 << 7) /* MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ, Linux 5.10 */
#define REGISTER_FENCE_RSEQ (1 << 8)

/* Restarts whatever sequence is under way, hakmem's or the second user's. */
static void *fence(void *argument)
{
    int is_there = syscall(SYS_membarrier, REGISTER_FENCE_RSEQ, 0, 0) == 0;
    while (!has_ended && is_there) {
        CHECK_EQ(syscall(SYS_membarrier, FENCE_RSEQ, 0, 0), 0);
        fence_count++;
        nanosleep(&(struct timespec){0, 100000}, NULL);
    }
    if (!is_there)
        fence_count = ~0ul;
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
        move_count++;
        nanosleep(&(struct timespec){0, 200000}, NULL);
    }
    return argument;
}

static void *fork_children(void *argument)
{
    while (!has_ended) {
        CHECK_ENDS_WELL((take_and_free(77, 300), _exit(damaged_count != 0)), 60000);
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
            take_and_free_alone(88, 100);
            if (i % 2 == 0)
                execl("/bin/true", "true", (char *)NULL);
            _exit(0);
        }
        CHECK_CHILD_ENDS_WELL(pid, 60000);
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
    start_threads(workers, worker_count, work);
}

/* Counts, on standard error where it is asked for. */
static void say_counts(void)
{
    if (getenv("RSEQ_TEST_SAYS") == NULL)
        return;
    fprintf(stderr,
            "seed %u: %lu operations, %lu signals, %lu children, %lu of vfork, %lu trims, "
            "%lu fences, %lu moves, %lu additions beside, %u refused\n",
            first_seed(), operation_count, signal_count, child_count, spawn_count, trim_count,
            fence_count, move_count, own_adds, refused_count);
}

/* Enough of everything, however seldom each thread has a turn. */
static bool is_enough(void)
{
    unsigned least = is_emulated() ? 1 : 10;
    return operation_count >= operations_wanted() && signal_count > 10 * least &&
           trim_count > least && child_count > least && spawn_count > least &&
           fence_count > 10 * least && move_count > 10 * least &&
           (!has_second_user || own_adds > operations_wanted() / 16);
}

/* Who runs this waits for as long as it may take. */
static void wait_until_it_is_enough(void)
{
    uint64_t end_ms =
        now_ms() + wanted_number("RSEQ_TEST_MS", is_full() ? LEAST_MS_FULL : LEAST_MS);
    while (now_ms() < end_ms || !is_enough())
        sleep_ms(10);
    has_ended = 1;
}

/* In a mode in which handlers may come at any time they allocate. */
PART(everything_at_once)
{
    static void *(*const others[])(void *) = {trim, fence, move_workers, fork_children,
                                              vfork_children};
    enum { OTHERS = sizeof others / sizeof *others };
    pthread_t threads[OTHERS];
    check_is_served();
    handlers_allocate = why_not() == NULL;
    start_workers();
    for (unsigned i = 0; i < OTHERS; i++)
        threads[i] = start_thread(others[i], NULL);
    wait_until_it_is_enough();
    join_threads(threads, OTHERS);
    join_threads(workers, worker_count); /* the last: the others move them */
    say_counts();
    CHECK_EQ(damaged_count, 0);
    CHECK_EQ(sum_of_own_counters(), own_adds);
    CHECK_EQ(refused_count, 0);
}

PART(everything_beside_another_user)
{
    has_second_user = 1;
    everything_at_once();
}

PART(everything_without_sequences)
{
    CHECK(why_not() != NULL);
    everything_at_once();
}

/* Runs the part with a variable set; its own statistics say whose the caches were. */
static void run(const char *part, const char *name, const char *value, uint64_t is_processors)
{
    int fd;
    if (name != NULL)
        setenv(name, value, 1);
    run_with_statistics_within(part, &fd, is_full() ? 3600000 : 110000);
    CHECK_EQ(counter_in(fd, "caches_by_processor"), is_processors);
    if (name != NULL)
        unsetenv(name);
}

TEST(no_block_is_served_twice_by_caches_of_processors)
{
    if (why_not() != NULL)
        SKIP(why_not());
    run("everything_at_once", NULL, NULL, 1);
}

TEST(no_block_is_served_twice_beside_another_user_of_sequences)
{
    if (why_not() != NULL)
        SKIP(why_not());
    if (!HAS_SECOND_USER)
        SKIP("the other user is for x86-64 alone");
    run("everything_beside_another_user", NULL, NULL, 1);
}

TEST(no_block_is_served_twice_where_libc_registers_no_sequences)
{
    run("everything_without_sequences", "GLIBC_TUNABLES", "glibc.pthread.rseq=0", 0);
}

TEST(no_block_is_served_twice_by_caches_of_threads)
{
    run("everything_without_sequences", "HAKMEM_CACHES", "thread", 0);
}

#define SLEEPERS 500
#define SLEEPERS_BLOCKS 1000
#define SLEEPERS_BLOCKS_TOGETHER 80 /* 40 MB in all threads */
#define SLEEPERS_MOST_KB (30 * 1024)

static pthread_barrier_t have_all, have_freed, may_end;

static void take_all_and_free(unsigned count, unsigned state, bool is_all_at_once)
{
    char **blocks = malloc(count * sizeof *blocks);
    for (unsigned i = 0; i < count; i++) {
        size_t bytes = 16 + next_random(&state) % 2000;
        blocks[i] = malloc(bytes);
        memset(blocks[i], 1, bytes);
    }
    if (is_all_at_once)
        pthread_barrier_wait(&have_all);
    for (unsigned i = 0; i < count; i++)
        free(blocks[i]);
    free(blocks);
    pthread_barrier_wait(&have_freed);
    pthread_barrier_wait(&may_end);
}

static void *use_much_and_sleep(void *argument)
{
    take_all_and_free(SLEEPERS_BLOCKS, (unsigned)(uintptr_t)argument, false);
    return NULL;
}

static void *use_some_together_and_sleep(void *argument)
{
    take_all_and_free(SLEEPERS_BLOCKS_TOGETHER, (unsigned)(uintptr_t)argument, true);
    return NULL;
}

static void *sleep_only(void *argument)
{
    pthread_barrier_wait(&have_freed);
    pthread_barrier_wait(&may_end);
    return argument;
}

/* Threads that were interrupted beside others had memory at the same time: what is above the bound
 * goes back soon, by the background thread. */
static long resident_soon_kb(long enough_kb)
{
    long kb = resident_kb();
    for (unsigned i = 0; i < 800 && kb > enough_kb; i++) {
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
    pthread_barrier_init(&have_all, NULL, SLEEPERS);
    pthread_barrier_init(&have_freed, NULL, SLEEPERS + 1);
    pthread_barrier_init(&may_end, NULL, SLEEPERS + 1);
    for (uintptr_t i = 0; i < SLEEPERS; i++)
        CHECK_EQ(pthread_create(&threads[i], &small, body, (void *)(i + 1)), 0);
    pthread_barrier_wait(&have_freed);
    long kb = resident_soon_kb(enough_kb);
    pthread_barrier_wait(&may_end);
    join_threads(threads, SLEEPERS);
    return kb;
}

static void check_little_is_left(void *(*body)(void *))
{
    if (why_not() != NULL)
        SKIP(why_not());
    time_limit(300);
    check_is_served();
    long asleep_kb = sleepers_kb(sleep_only, LONG_MAX);
    long after_kb = sleepers_kb(body, asleep_kb + SLEEPERS_MOST_KB);
    if (after_kb - asleep_kb > SLEEPERS_MOST_KB)
        CHECK_FAILED("%ld KiB more than %ld", after_kb - asleep_kb, asleep_kb);
    CHECK_PASSED();
}

TEST(five_hundred_threads_that_sleep_withhold_nothing)
{
    check_little_is_left(use_much_and_sleep);
}

TEST(five_hundred_threads_that_worked_and_sleep_keep_no_memory)
{
    check_little_is_left(use_some_together_and_sleep);
}
