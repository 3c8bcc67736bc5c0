/* SPDX-License-Identifier: MIT */
/* tests/preload/fork.c - fork while other threads are inside malloc. If this fails, a threaded
 * server that starts helpers (python, redis, git) hangs now and then in a child that nobody can
 * debug. */
#include "program.h"

#define BUSY_THREADS 6
#define CHILD_LIMIT_MS 60000
#define KEPT_BLOCKS 100

static _Atomic int has_ended;

/* Everything that enters slow paths: all sizes, refills, flushes, large blocks, other threads'
 * blocks. */
static _Atomic(char *) shared[64];

static void *stay_busy(void *argument)
{
    unsigned state = (unsigned)(uintptr_t)argument;
    char *blocks[200] = {NULL};
    while (!has_ended) {
        unsigned at = next_random(&state) % 200;
        free(blocks[at]);
        blocks[at] = malloc(random_bytes(&state));
        if (at % 4 == 0)
            blocks[at] = atomic_exchange(&shared[next_random(&state) % 64], blocks[at]);
    }
    for (unsigned i = 0; i < 200; i++)
        free(blocks[i]);
    return NULL;
}

static void *allocate_in_child(void *argument)
{
    unsigned state = 5;
    for (unsigned i = 0; i < 100; i++) {
        size_t bytes = random_bytes(&state);
        char *block = malloc(bytes);
        if (block == NULL)
            _exit(3);
        fill(block, bytes < 3000 ? bytes : 3000, i);
        free(block);
    }
    return argument;
}

static char *kept[KEPT_BLOCKS];

static void keep_blocks(void)
{
    for (unsigned i = 0; i < KEPT_BLOCKS; i++) {
        kept[i] = malloc(16 + i * 200);
        fill(kept[i], 16 + i * 200, i);
    }
}

/* What a child does that is not written for async-signal-safety: everything. */
static _Noreturn void live_as_child(void)
{
    alarm(CHILD_LIMIT_MS / 1000);
    for (unsigned i = 0; i < KEPT_BLOCKS; i++) {
        if (!is_filled(kept[i], 16 + i * 200, i))
            _exit(4);
        free(kept[i]);
    }
    for (unsigned i = 0; i < 64; i++)
        free(atomic_exchange(&shared[i], NULL));
    allocate_in_child(NULL);
    pthread_t thread;
    if (pthread_create(&thread, NULL, allocate_in_child, NULL) != 0)
        _exit(5);
    allocate_in_child(NULL);
    if (pthread_join(thread, NULL) != 0)
        _exit(6);
    exit(0);
}

static pthread_t busy_threads[BUSY_THREADS];

static void start_busy_threads(void)
{
    start_threads(busy_threads, BUSY_THREADS, stay_busy);
}

static void end_busy_threads(void)
{
    has_ended = 1;
    join_threads(busy_threads, BUSY_THREADS);
}

TEST(children_of_a_busy_process_can_do_everything)
{
    check_is_served();
    time_limit(500);
    keep_blocks();
    start_busy_threads();
    /* As many as a machine that is busy itself can do well within the limit. */
    uint64_t last_ms = now_ms() + 40000;
    for (unsigned i = 0; i < 300 && (i < 10 || now_ms() < last_ms); i++)
        CHECK_ENDS_WELL(live_as_child(), CHILD_LIMIT_MS);
    end_busy_threads();
    for (unsigned i = 0; i < KEPT_BLOCKS; i++)
        CHECK(is_filled(kept[i], 16 + i * 200, i));
}

TEST(a_child_of_a_busy_process_can_fork_again)
{
    time_limit(500);
    keep_blocks();
    start_busy_threads();
    for (unsigned i = 0; i < 30; i++) {
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            alarm(CHILD_LIMIT_MS / 1000);
            /* The child is busy itself while it forks. */
            pthread_t thread = start_thread(stay_busy, (void *)77);
            pid_t grandchild = fork();
            if (grandchild == 0)
                live_as_child();
            int status = status_within(grandchild, CHILD_LIMIT_MS);
            has_ended = 1;
            join_thread(thread);
            if (status != 0)
                _exit(7);
            live_as_child();
        }
        CHECK_CHILD_ENDS_WELL(pid, 2 * CHILD_LIMIT_MS);
    }
    end_busy_threads();
}

/* Forks from several threads at once. */
static _Atomic unsigned wrong_children;

static void *fork_repeatedly(void *argument)
{
    for (unsigned i = 0; i < 25; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            alarm(CHILD_LIMIT_MS / 1000);
            allocate_in_child(NULL);
            _exit(0);
        }
        if (pid < 0 || status_within(pid, CHILD_LIMIT_MS) != 0)
            wrong_children++;
    }
    return argument;
}

TEST(several_threads_can_fork_at_once)
{
    time_limit(500);
    pthread_t busy = start_thread(stay_busy, (void *)9);
    pthread_t threads[4];
    start_threads(threads, 4, fork_repeatedly);
    join_threads(threads, 4);
    has_ended = 1;
    pthread_join(busy, NULL);
    CHECK_EQ(wrong_children, 0);
}

/* Handlers of the program's own, registered before and after hakmem's, may allocate. */
static char *handler_block;

static void allocate_in_handler(void)
{
    free(handler_block);
    handler_block = malloc(1000);
    fill(handler_block, 1000, 8);
}

TEST(handlers_of_fork_can_allocate)
{
    time_limit(300);
    CHECK_EQ(pthread_atfork(allocate_in_handler, allocate_in_handler, allocate_in_handler), 0);
    start_busy_threads();
    for (unsigned i = 0; i < 30; i++) {
        CHECK_ENDS_WELL(_exit(is_filled(handler_block, 1000, 8) ? 0 : 8), CHILD_LIMIT_MS);
        CHECK(is_filled(handler_block, 1000, 8));
    }
    end_busy_threads();
}

static void handle_nothing(void)
{
}

/* libc holds the lock of its list of handlers while the list grows. A block that grows in place
 * makes the process, which has had threads, large without starting hakmem's. */
TEST(handlers_of_fork_are_registered_while_hakmems_own_thread_is_due)
{
    time_limit(300);
    have_threads();
    char *large = realloc(malloc(40u << 20), 100u << 20);
    fill(large, 100u << 20, 3);
    for (int i = 0; i < 5000; i++)
        CHECK_EQ(pthread_atfork(handle_nothing, NULL, NULL), 0);
    CHECK_ENDS_WELL(_exit(is_filled(large, 100u << 20, 3) ? 0 : 8), CHILD_LIMIT_MS);
    free(large);
}
