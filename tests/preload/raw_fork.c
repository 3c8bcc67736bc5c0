/* SPDX-License-Identifier: MIT */
/* tests/preload/raw_fork.c - copies of the process of which no handler of fork hears: by _Fork, by
 * clone without a word to libc, by the bare system call. If this fails, the child of a crash
 * handler, a sandbox or a checkpointing store hangs now and then in a lock whose holder stayed
 * behind. */
#include "program.h"

#include <malloc.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/time.h>

/* The child ends in a few milliseconds; a machine may be busy. */
#define CHILD_LIMIT_MS 60000
#define BLOCK_BYTES 2048
#define BLOCKS (160u * 1024 * 1024 / BLOCK_BYTES)
#define COPY_GAP_US 300
#define COPIES_LEAST (is_emulated() ? 3u : 30u)

static pid_t copy_by_fork_call(void)
{
#ifdef SYS_fork
    return (pid_t)syscall(SYS_fork);
#else
    return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
#endif
}

static pid_t copy_by_clone(void)
{
    return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

/* glibc 2.34, not in every libc. */
extern pid_t _Fork(void) __attribute__((weak));

static pid_t copy_the_process(unsigned kind)
{
    if (kind % 3 == 0 && _Fork != NULL)
        return _Fork();
    return kind % 3 == 1 ? copy_by_clone() : copy_by_fork_call();
}

static char *blocks[BLOCKS];
static char *kept;
#define KEPT_BYTES 300000

/* Free blocks all over the heap, with pages that nobody uses between others. */
static void make_sparse(void)
{
    for (unsigned i = 0; i < BLOCKS; i++)
        if (blocks[i] == NULL) {
            blocks[i] = malloc(BLOCK_BYTES);
            blocks[i][0] = (char)i;
        }
    for (unsigned i = 0; i < BLOCKS; i++)
        if (i / 2 % 4 != 0) {
            free(blocks[i]);
            blocks[i] = NULL;
        }
}

static void keep_one(void)
{
    kept = malloc(KEPT_BYTES);
    fill(kept, KEPT_BYTES, 3);
}

static void allocate_all_sizes(unsigned seed, unsigned rounds)
{
    unsigned state = seed;
    char *some[40] = {NULL};
    for (unsigned i = 0; i < rounds; i++) {
        unsigned at = next_random(&state) % 40;
        size_t bytes = random_bytes(&state);
        free(some[at]);
        some[at] = malloc(bytes);
        if (some[at] == NULL)
            _exit(3);
        fill(some[at], bytes < 600 ? bytes : 600, at);
    }
    for (unsigned i = 0; i < 40; i++)
        free(some[i]);
}

static void *allocate_in_thread(void *argument)
{
    allocate_all_sizes((unsigned)(uintptr_t)argument, 60);
    return argument;
}

/* Everything that a program does with its heap; exits. */
static _Noreturn void live_as_copy(unsigned number)
{
    for (unsigned i = number % 64; i < BLOCKS; i += 64)
        if (blocks[i] != NULL) {
            if (blocks[i][0] != (char)i)
                _exit(4);
            free(blocks[i]);
        }
    allocate_all_sizes(number, 200);
    kept = realloc(kept, 2 * KEPT_BYTES);
    if (kept == NULL || !is_filled(kept, KEPT_BYTES, 3))
        _exit(5);
    if (number % 4 == 0)
        malloc_trim(0);
    if (number % 8 == 1 && mallinfo2().hblkhd < KEPT_BYTES) /* a large block, like mapped ones */
        _exit(6);
    if (number % 16 == 2) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, allocate_in_thread, (void *)7) != 0)
            _exit(7);
        allocate_all_sizes(9, 60);
        pthread_join(thread, NULL);
    }
    free(realloc(malloc(3u << 20), 5u << 20));
    if (number % 8 == 3) {
        pid_t pid = number % 16 == 3 ? fork() : copy_the_process(number);
        if (pid == 0) {
            allocate_all_sizes(number, 60);
            _exit(0);
        }
        int status = -1;
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
            _exit(8);
    }
    free(kept);
    _exit(0);
}

static _Atomic unsigned copies_made;

/* Most children do little, so that there can be many. */
static void make_copy(unsigned number, unsigned kind)
{
    pid_t pid = copy_the_process(kind);
    if (pid == 0 && number % 8 < 7) {
        allocate_all_sizes(number, 20);
        _exit(0);
    }
    if (pid == 0)
        live_as_copy(number / 8);
    CHECK(pid > 0);
    CHECK_CHILD_ENDS_WELL(pid, CHILD_LIMIT_MS);
    copies_made++;
}

/* While what has just become free grows old, and hakmem's own thread gives it back. */
#define ROUND_MS 400

static void copy_while_memory_goes_back(unsigned kind)
{
    unsigned rounds = is_full() ? 100 : 4, number = 0, beside = 0;
    have_threads();
    keep_one();
    for (unsigned round = 0; round < rounds; round++) {
        make_sparse();
        uint64_t end_ms = now_ms() + ROUND_MS;
        while (number % 16 != 15 || now_ms() < end_ms) {
            beside += own_threads() == 1;
            make_copy(number++, kind);
            nanosleep(&(struct timespec){0, COPY_GAP_US * 1000L}, NULL);
        }
    }
    CHECK(beside > number / 4);
}

TEST(copies_by_Fork_live_beside_hakmems_own_thread)
{
    check_is_served();
    time_limit(500);
    copy_while_memory_goes_back(0);
}

TEST(copies_by_clone_live_beside_hakmems_own_thread)
{
    time_limit(500);
    copy_while_memory_goes_back(1);
}

TEST(copies_by_the_bare_system_call_live_beside_hakmems_own_thread)
{
    time_limit(500);
    copy_while_memory_goes_back(2);
}

static _Atomic int has_ended;
static _Atomic int is_copy; /* made by a handler, which has returned */
static _Atomic(char *) shared[64];

static _Noreturn void live_among_busy(unsigned number)
{
    for (unsigned i = 0; i < 64; i++)
        free(atomic_exchange(&shared[i], NULL));
    live_as_copy(number);
}

static void *stay_busy(void *argument)
{
    unsigned state = (unsigned)(uintptr_t)argument;
    char *mine[200] = {NULL};
    while (!has_ended && !is_copy) {
        unsigned at = next_random(&state) % 200;
        free(mine[at]);
        mine[at] = malloc(random_bytes(&state));
        if (at % 4 == 0)
            mine[at] = atomic_exchange(&shared[next_random(&state) % 64], mine[at]);
        if (at == 77 && state % 16 == 0)
            malloc_trim(0);
    }
    for (unsigned i = 0; i < 200; i++)
        free(mine[i]);
    if (is_copy)
        live_among_busy(state);
    return NULL;
}

static void *copy_repeatedly(void *argument)
{
    unsigned kind = (unsigned)(uintptr_t)argument;
    uint64_t end_ms = now_ms() + (is_full() ? 60000 : 2000);
    for (unsigned i = 0; copies_made <= COPIES_LEAST || now_ms() < end_ms; i++) {
        allocate_all_sizes(i, 50);
        pid_t pid = copy_the_process(kind + i);
        if (pid == 0)
            live_among_busy(i);
        CHECK(pid > 0);
        CHECK_CHILD_ENDS_WELL(pid, CHILD_LIMIT_MS);
        copies_made++;
    }
    return NULL;
}

TEST(copies_by_several_threads_that_allocate_live)
{
    time_limit(500);
    keep_one();
    pthread_t busy[3], copying[3];
    start_threads(busy, 3, stay_busy);
    start_threads(copying, 3, copy_repeatedly);
    join_threads(copying, 3);
    has_ended = 1;
    join_threads(busy, 3);
}

/* A handler's copy: some requests in the handler, then it goes on where the handler came. */
#define CHILDREN_MOST 64u
static _Atomic pid_t children[CHILDREN_MOST];
static _Atomic unsigned child_count;
static _Atomic int does_allocate;

/* The signal goes to any thread. */
static void copy_in_handler(int number)
{
    (void)number;
    if (is_copy || child_count >= CHILDREN_MOST / 2)
        return;
    unsigned at = atomic_fetch_add(&child_count, 1);
    pid_t pid = copy_the_process(at);
    if (pid != 0) {
        children[at] = pid;
        return;
    }
    is_copy = 1;
    if (does_allocate)
        free(malloc(100 + at * 1000));
}

/* The timer is off; what it sent may still come. */
static void end_copies(void)
{
    for (unsigned i = 0; i < child_count || is_copy; i++) {
        while (children[i] == 0 && !is_copy)
            sleep_ms(1); /* the handler is not over */
        if (is_copy)
            live_among_busy(i);
        CHECK(children[i] > 0);
        CHECK_CHILD_ENDS_WELL(children[i], CHILD_LIMIT_MS);
        children[i] = 0;
        copies_made++;
    }
    child_count = 0;
}

/* A section that the handler interrupts may be any. */
static void work_until_copied(unsigned round)
{
    unsigned state = round;
    char *some[40] = {NULL};
    while (child_count < 20 && !is_copy) {
        unsigned at = next_random(&state) % 40;
        free(some[at]);
        some[at] = malloc(random_bytes(&state));
        if (at == 7 && state % 64 == 0)
            malloc_trim(0);
    }
    for (unsigned i = 0; i < 40; i++)
        free(some[i]);
}

static void copy_from_handlers(void)
{
    keep_one();
    pthread_t busy = start_thread(stay_busy, (void *)5);
    struct sigaction action = {.sa_handler = copy_in_handler};
    struct itimerval often = {{0, 700}, {0, 700}}, never = {{0, 0}, {0, 0}};
    uint64_t end_ms = now_ms() + (is_full() ? 60000 : 1500);
    for (unsigned round = 0; round < 4 || now_ms() < end_ms; round++) {
        does_allocate = round % 2;
        /* With SA_RESTART the kernel goes back to sleep in a lock by itself. */
        action.sa_flags = round % 4 < 2 ? SA_RESTART : 0;
        sigaction(SIGALRM, &action, NULL);
        setitimer(ITIMER_REAL, &often, NULL);
        work_until_copied(round);
        setitimer(ITIMER_REAL, &never, NULL);
        end_copies();
    }
    has_ended = 1;
    pthread_join(busy, NULL);
    CHECK(copies_made > 20);
}

TEST(copies_by_handlers_that_interrupt_slow_paths_live)
{
    copy_from_handlers();
}

/* Each sample is written to the board in /dev/shm, of which a copy has its own. */
TEST(copies_by_handlers_that_interrupt_the_heap_profile_live)
{
    WITH_SETTING("HAKMEM_HEAP_PROFILE", "on");
    WITH_SETTING("HAKMEM_HEAP_PROFILE_RATE", "256");
    WITH_SETTING("HAKMEM_HEAP_PROFILE_SAMPLES", "0");
    copy_from_handlers();
}

/* The rest of a sentence runs in many short processes: in each the first sections do not block
 * signals yet, so that a handler finds its thread inside. */
PART(copy_from_handlers_early)
{
    pthread_t busy = start_thread(stay_busy, (void *)5);
    struct sigaction action = {.sa_handler = copy_in_handler, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
    keep_one();
    does_allocate = getpid() % 2;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    work_until_copied((unsigned)getpid());
    setitimer(ITIMER_REAL, &never, NULL);
    end_copies();
    has_ended = 1;
    pthread_join(busy, NULL);
    CHECK(copies_made > 0);
}

TEST(copies_by_handlers_live_in_a_program_that_begins)
{
    time_limit(500);
    uint64_t end_ms = now_ms() + (is_full() ? 60000 : 1500);
    while (now_ms() < end_ms)
        CHECK_ENDS_WELL(become("copy_from_handlers_early"), 3 * CHILD_LIMIT_MS);
}

/* A copy has what its parent had, and what was free there is not gone for good. */
TEST(a_copy_uses_again_what_was_free)
{
    time_limit(300);
    have_threads();
    char *large[8];
    for (unsigned i = 0; i < 8; i++) {
        large[i] = malloc(8u << 20);
        fill(large[i], 8u << 20, i);
    }
    pid_t pid = copy_by_clone();
    if (pid == 0) {
        for (unsigned i = 0; i < 8; i++)
            free(large[i]);
        size_t before = resident_bytes();
        for (unsigned i = 0; i < 100; i++) {
            char *block = malloc(8u << 20);
            fill(block, 8u << 20, i);
            free(block);
        }
        _exit(resident_bytes() < before + (32u << 20) ? 0 : 9);
    }
    CHECK_CHILD_ENDS_WELL(pid, 60000);
}

/* Threads that stay behind hold libc's locks, too, of the loader for one. */
static void *load_libraries(void *unused)
{
    while (!has_ended) {
        void *library = dlopen("libm.so.6", RTLD_NOW);
        free(malloc(100));
        if (library != NULL)
            dlclose(library);
        in_thread(end_at_once, NULL);
    }
    return unused;
}

TEST(a_copy_that_grows_waits_for_no_lock_of_the_loader)
{
    time_limit(500);
    pthread_t loading = start_thread(load_libraries, NULL);
    for (unsigned i = 0; i < (is_full() ? 2000 : 100); i++) {
        pid_t pid = copy_the_process(i);
        if (pid == 0) {
            for (unsigned at = 0; at < 40; at++)
                if (malloc(4u << 20) == NULL)
                    _exit(3);
            _exit(0);
        }
        CHECK_CHILD_ENDS_WELL(pid, CHILD_LIMIT_MS);
    }
    has_ended = 1;
    pthread_join(loading, NULL);
}
