/* SPDX-License-Identifier: MIT */
/* tests/soak/soak.c - everything at once, for a while: soak SECONDS SEED
 *
 * Threads exchange blocks of all sizes whose contents are checked, others come, go and are
 * cancelled; threads that allocate make children in five ways, and these allocate, too; libraries
 * are loaded; signals interrupt all of it each few milliseconds; private heaps come and go; options
 * change, memory is trimmed and counted.
 * With SOAK_MAY_FAIL set requests may be refused, as under a limit.
 *
 * Exit status 0 after SECONDS; a failed check aborts and names the seed.
 */
#define _GNU_SOURCE
#define HAKMEM_WEAK
#include "hakmem/hakmem.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SLOTS 512u
#define WORKERS 3u
#define FORK_KINDS 5u
#define LIVE_BYTES_MOST ((size_t)192 << 20)

struct block {
    size_t bytes;
    uint64_t mark;
};

static _Atomic(struct block *) slots[SLOTS];
static _Atomic size_t live_bytes;
static _Atomic uint64_t counts[7];
static _Atomic bool is_over;
static bool may_fail;
static uint64_t seed;

static _Atomic uint64_t children[FORK_KINDS];

enum counted { EXCHANGES, RESIZES, REFUSALS, THREADS, LIBRARIES, SIGNALS, HEAPS };

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fail(#condition, __LINE__);                                                            \
    } while (0)

static void fail(const char *what, int line)
{
    char text[200];
    int bytes = snprintf(text, sizeof text, "soak.c:%d: %s, errno %d, seed %llu\n", line, what,
                         errno, (unsigned long long)seed);
    if (write(2, text, (size_t)bytes) > 0)
        abort();
    abort();
}

static void count(enum counted what)
{
    atomic_fetch_add_explicit(&counts[what], 1, memory_order_relaxed);
}

/* splitmix64 */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static size_t draw_bytes(uint64_t *state)
{
    uint64_t kind = draw(state) % 1000;
    size_t shift = kind < 900 ? 10 : kind < 990 ? 17 : kind < 999 ? 22 : 25;
    size_t ceiling = (size_t)1 << draw(state) % (shift + 1);
    return sizeof(struct block) + draw(state) % ceiling;
}

/* Written and looked at: the head, both ends and each 509th byte. */
static size_t place_after(size_t at, size_t bytes)
{
    size_t step = at < 128 || at + 129 > bytes ? 1 : 509;
    return step == 509 && at + 509 > bytes - 128 ? bytes - 128 : at + step;
}

static void sign(struct block *block, size_t bytes, uint64_t mark)
{
    *block = (struct block){bytes, mark};
    for (size_t i = sizeof *block; i < bytes; i = place_after(i, bytes))
        ((unsigned char *)block)[i] = (unsigned char)(mark + i);
}

static void inspect(const struct block *block, size_t bytes)
{
    for (size_t i = sizeof *block; i < bytes; i = place_after(i, block->bytes))
        EXPECT(((const unsigned char *)block)[i] == (unsigned char)(block->mark + i));
}

static bool is_served(const void *block)
{
    if (block != NULL)
        return true;
    EXPECT(errno == ENOMEM && may_fail);
    count(REFUSALS);
    return false;
}

static void give(struct block *block)
{
    if (block == NULL)
        return;
    size_t bytes = block->bytes;
    inspect(block, bytes);
    atomic_fetch_sub(&live_bytes, bytes);
    errno = 77;
    free(block);
    EXPECT(errno == 77);
}

static struct block *take(uint64_t *state)
{
    size_t bytes = draw_bytes(state);
    if (atomic_load(&live_bytes) + bytes > LIVE_BYTES_MOST)
        return NULL;
    void *block = NULL;
    switch (draw(state) % 8) {
    case 0:
        block = calloc(1, bytes);
        for (size_t i = 0; block != NULL && i < bytes; i = place_after(i, bytes))
            EXPECT(((unsigned char *)block)[i] == 0);
        break;
    case 1: {
        size_t alignment = (size_t)8 << draw(state) % 12;
        errno = posix_memalign(&block, alignment, bytes);
        EXPECT((uintptr_t)block % alignment == 0);
        break;
    }
    default:
        block = malloc(bytes);
    }
    if (!is_served(block))
        return NULL;
    EXPECT(malloc_usable_size(block) >= bytes);
    sign(block, bytes, draw(state));
    atomic_fetch_add(&live_bytes, bytes);
    return block;
}

static struct block *resize(struct block *block, uint64_t *state)
{
    size_t old_bytes = block->bytes, bytes = draw_bytes(state);
    struct block *moved = realloc(block, bytes);
    if (!is_served(moved))
        return block;
    struct block was = {old_bytes, moved->mark};
    size_t kept = old_bytes < bytes ? old_bytes : bytes;
    for (size_t i = sizeof was; i < kept; i = place_after(i, old_bytes))
        EXPECT(((unsigned char *)moved)[i] == (unsigned char)(was.mark + i));
    atomic_fetch_add(&live_bytes, bytes - old_bytes);
    sign(moved, bytes, draw(state));
    count(RESIZES);
    return moved;
}

static void exchange(uint64_t *state)
{
    uint64_t slot = draw(state) % SLOTS;
    struct block *block = draw(state) % 8 < 5 ? take(state) : NULL;
    block = atomic_exchange(&slots[slot], block);
    if (block != NULL && draw(state) % 4 == 0) {
        inspect(block, block->bytes);
        block = atomic_exchange(&slots[draw(state) % SLOTS], resize(block, state));
    }
    give(block);
    count(EXCHANGES);
}

static void *work(void *argument)
{
    uint64_t state = seed + (uintptr_t)argument;
    while (!atomic_load_explicit(&is_over, memory_order_relaxed))
        exchange(&state);
    return NULL;
}

/* A thread of some steps; the last ones wait to be cancelled. */
static void *live_shortly(void *argument)
{
    uint64_t state = seed ^ (uintptr_t)argument;
    int old_state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old_state);
    for (int i = 0; i < 200; i++)
        exchange(&state);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old_state);
    while (draw(&state) % 4 == 0)
        usleep(100);
    return NULL;
}

/* The thread's vector of thread-local blocks is from malloc, too. */
static bool has_started(pthread_t *thread, void *(*body)(void *), void *argument)
{
    int error = pthread_create(thread, NULL, body, argument);
    EXPECT(error == 0 || (may_fail && (error == ENOMEM || error == EAGAIN)));
    if (error != 0)
        count(REFUSALS);
    return error == 0;
}

static void *come_and_go(void *argument)
{
    uint64_t state = seed + (uintptr_t)argument;
    while (!atomic_load(&is_over)) {
        pthread_t threads[4];
        int started = 0;
        for (int i = 0; i < 4; i++)
            started += has_started(&threads[started], live_shortly, (void *)draw(&state));
        for (int i = 0; i < started; i++) {
            if (draw(&state) % 2 == 0)
                pthread_cancel(threads[i]);
            EXPECT(pthread_join(threads[i], NULL) == 0);
            count(THREADS);
        }
    }
    return NULL;
}

static void child_lives(uint64_t state)
{
    static struct block *own[100];
    alarm(60);
    for (int i = 0; i < 2000; i++) {
        struct block **place = &own[draw(&state) % 100];
        give(*place);
        *place = take(&state);
    }
    _exit(0);
}

/* The child of a vfork has this memory; it allocates, then becomes another program. */
static pid_t become_another_program(uint64_t *state)
{
    struct block *block = NULL;
    pid_t pid = vfork();
    if (pid == 0) {
        block = take(state);
        give(block);
        execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    return pid;
}

/* glibc from 2.34 on. */
extern pid_t _Fork(void) __attribute__((weak));

/* A new process in one of five ways. No handler of fork hears of those made by _Fork and clone. */
static pid_t make_child(uint32_t kind, uint64_t *state)
{
    static char *no_words[] = {NULL};
    static char *words[] = {"true", NULL};
    pid_t pid = -1;
    if (kind == 0)
        return fork();
    if (kind == 1 && _Fork != NULL)
        return _Fork();
    if (kind <= 2)
        return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (kind == 3)
        return become_another_program(state);
    return posix_spawn(&pid, "/bin/true", NULL, NULL, words, no_words) == 0 ? pid : -1;
}

static void await_child(pid_t pid)
{
    int status = pid > 0 ? -1 : 0;
    while (pid > 0 && waitpid(pid, &status, 0) < 0)
        EXPECT(errno == EINTR);
    EXPECT(status == 0);
}

/* Changes what this thread holds, then makes a child in the midst of it. */
static void *fork_now_and_then(void *argument)
{
    struct block *own[50] = {NULL};
    uint64_t state = seed + (uintptr_t)argument;
    while (!atomic_load(&is_over)) {
        for (uint32_t i = draw(&state) % 1000; i > 0; i--) {
            struct block **place = &own[draw(&state) % 50];
            give(*place);
            *place = take(&state);
        }
        uint32_t kind = draw(&state) % FORK_KINDS;
        pid_t pid = make_child(kind, &state);
        EXPECT(pid >= 0 || may_fail);
        if (pid == 0) {
            atomic_store(&live_bytes, 0);
            child_lives(draw(&state));
        }
        await_child(pid);
        atomic_fetch_add(&children[kind], pid > 0);
        usleep(draw(&state) % 10000);
    }
    for (int i = 0; i < 50; i++)
        give(own[i]);
    return NULL;
}

static void *load_libraries(void *argument)
{
    static const char *const names[] = {"libm.so.6", "libgcc_s.so.1", "libresolv.so.2",
                                        "libnone.so"};
    uint64_t state = seed + (uintptr_t)argument;
    while (!atomic_load(&is_over)) {
        void *library = dlopen(names[draw(&state) % 4], RTLD_NOW | RTLD_LOCAL);
        if (library != NULL)
            dlclose(library);
        count(LIBRARIES);
        usleep(2000);
    }
    return NULL;
}

static void use_heap(uint64_t *state)
{
    void *blocks[64];
    hakmem_heap *heap = hakmem_heap_new();
    if (!is_served(heap))
        return;
    for (int i = 0; i < 64; i++) {
        size_t bytes = draw_bytes(state);
        blocks[i] = hakmem_heap_malloc(heap, bytes);
        if (is_served(blocks[i]))
            memset(blocks[i], i, bytes < 4096 ? bytes : 4096);
    }
    for (int i = 0; i < 64; i += 2)
        free(blocks[i]);
    hakmem_heap_destroy(heap);
    count(HEAPS);
}

static void govern(uint64_t *state)
{
    static const char *const decays[] = {"0", "10ms", "125ms", "never"};
    struct hakmem_stats stats;
    switch (draw(state) % 5) {
    case 0:
        malloc_trim(draw(state) % (64 << 20));
        break;
    case 1:
        if (hakmem_option_set != NULL)
            EXPECT(hakmem_option_set("decay", decays[draw(state) % 4]) == 0);
        break;
    case 2:
        if (hakmem_stats_get != NULL) {
            EXPECT(hakmem_stats_get(&stats, sizeof stats) == 0);
            EXPECT(stats.window_committed_bytes >= stats.span_free_clean_bytes);
        }
        break;
    case 3:
        if (hakmem_thread_idle != NULL)
            hakmem_thread_idle();
        break;
    default:
        if (hakmem_heap_new != NULL)
            use_heap(state);
    }
}

static void *govern_on(void *argument)
{
    uint64_t state = seed + (uintptr_t)argument;
    while (!atomic_load(&is_over)) {
        govern(&state);
        usleep(draw(&state) % 3000);
    }
    return NULL;
}

/* It does what POSIX lets it do. Handlers that allocate are tests/preload/life.c: nothing keeps
 * them out of malloc's short way here. */
static void on_signal(int number)
{
    (void)number;
    int saved = errno;
    sched_yield(); /* others go on while this thread stands where it was interrupted */
    count(SIGNALS);
    errno = saved;
}

static void start_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct itimerval timer = {{0, 3000}, {0, 3000}};
    EXPECT(sigaction(SIGVTALRM, &action, NULL) == 0);
    EXPECT(setitimer(ITIMER_VIRTUAL, &timer, NULL) == 0);
}

int main(int argument_count, char **arguments)
{
    static void *(*const bodies[])(void *) = {come_and_go, fork_now_and_then, fork_now_and_then,
                                              load_libraries, govern_on};
    enum { OTHERS = sizeof bodies / sizeof *bodies };
    pthread_t threads[WORKERS + OTHERS];
    if (argument_count != 3)
        return 2;
    unsigned seconds = (unsigned)atoi(arguments[1]);
    seed = strtoull(arguments[2], NULL, 10);
    may_fail = getenv("SOAK_MAY_FAIL") != NULL;
    dlopen("libgcc_s.so.1", RTLD_NOW); /* pthread_cancel aborts if it is refused later */
    for (uintptr_t i = 0; i < WORKERS + OTHERS; i++)
        EXPECT(pthread_create(&threads[i], NULL, i < WORKERS ? work : bodies[i - WORKERS],
                              (void *)(i + 1)) == 0);
    start_signals();
    for (time_t end = time(NULL) + seconds; time(NULL) < end;)
        usleep(50000);
    atomic_store(&is_over, true);
    for (uint32_t i = 0; i < WORKERS + OTHERS; i++)
        EXPECT(pthread_join(threads[i], NULL) == 0);
    for (uint32_t i = 0; i < SLOTS; i++)
        give(atomic_exchange(&slots[i], NULL));
    EXPECT(atomic_load(&live_bytes) == 0);
    static const char *const names[] = {"exchanges", "resizes", "refusals", "threads",
                                        "libraries", "signals", "heaps"};
    for (int i = 0; i < 7; i++)
        printf("%s: %llu\n", names[i], (unsigned long long)atomic_load(&counts[i]));
    static const char *const ways[] = {"fork", "_Fork", "clone", "vfork", "posix_spawn"};
    for (unsigned i = 0; i < FORK_KINDS; i++)
        printf("%s: %llu\n", ways[i], (unsigned long long)atomic_load(&children[i]));
    return 0;
}
