/* SPDX-License-Identifier: MIT */
/* tests/preload/realtime.c - mode `realtime` in whole programs: what docs/LATENCY.md promises.
 *
 * A filter kills the program at its first system call after the rehearsal, but for those that wait
 * for a lock and those that end it; page faults are counted by the kernel. Without `prewarm` the
 * same work must die, or the promise is not tested. If this fails, a program that must answer soon
 * waits for the kernel.
 */
#include "program.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define THREADS 4
#define SLOTS 4000
#define REHEARSED 400
#define STEPS 200000
#define BYTES_MOST 2048
#define LARGE_BYTES (256u * 1024)
#define LARGE_EACH 5000
#define STACK_BYTES (64u * 1024)

static struct worker {
    pthread_t thread;
    unsigned random;
    void *slots[SLOTS];
} workers[THREADS];

static pthread_barrier_t rehearsed, begun, worked;
static _Atomic int is_wrong;

static long faults(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_minflt + usage.ru_majflt : -1;
}

/* Blocks of all sizes up to BYTES_MOST, now and then a large one, in random order; every eighth is
 * exchanged with the next thread, which frees it. */
static void step(struct worker *worker, unsigned number, unsigned slots)
{
    unsigned at = next_random(&worker->random) % slots;
    size_t bytes = 16 + next_random(&worker->random) % (BYTES_MOST - 16);
    struct worker *from = number % 8 == 0 ? &workers[(worker - workers + 1) % THREADS] : worker;
    char *block = malloc(bytes);
    if (block == NULL)
        is_wrong = 1;
    else
        block[0] = block[bytes - 1] = (char)bytes;
    free(__atomic_exchange_n(&from->slots[at], block, __ATOMIC_ACQ_REL));
    if (number % LARGE_EACH == 1) {
        char *large = malloc(LARGE_BYTES);
        if (large == NULL)
            is_wrong = 1;
        else
            memset(large, 1, LARGE_BYTES);
        free(large);
    }
}

/* What the stack of this thread is going to need. */
static __attribute__((noinline)) void touch_stack(void)
{
    volatile char stack[STACK_BYTES];
    __asm__ volatile("" ::"r"(stack) : "memory"); /* all of it is there */
    for (size_t i = 0; i < sizeof stack; i += 4096)
        stack[i] = 0;
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    touch_stack();
    memset(worker->slots, 0, sizeof worker->slots);
    for (unsigned i = 0; i < 4 * REHEARSED; i++)
        step(worker, i, REHEARSED);
    pthread_barrier_wait(&rehearsed);
    pthread_barrier_wait(&begun);
    for (unsigned i = 0; i < STEPS; i++)
        step(worker, i, SLOTS);
    pthread_barrier_wait(&worked);
    pthread_barrier_wait(&begun); /* the process ends before the thread may */
    return NULL;
}

/* All threads: no system call from here on but these. By libc's own syscall: where the program sets
 * a filter by hakmem's, hakmem makes ready for it. */
static void forbid_calls(void)
{
    static const int allowed[] = {SYS_futex, SYS_getrusage, SYS_exit_group};
    struct sock_filter filter[2 + 2 * sizeof allowed / sizeof *allowed];
    unsigned short count = 0;
    filter[count++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) {
        filter[count++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i], 0, 1);
        filter[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    filter[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    struct sock_fprog program = {count, filter};
    void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    long (*call)(long number, ...);
    *(void **)&call = libc == NULL ? NULL : dlsym(libc, "syscall");
    if (call == NULL || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
        _exit(CHECK_SKIPPED);
}

/* The part's process ends here: its exit status is how it went. */
PART(works_without_the_kernel)
{
    check_is_served();
    pthread_barrier_init(&rehearsed, NULL, THREADS + 1);
    pthread_barrier_init(&begun, NULL, THREADS + 1);
    pthread_barrier_init(&worked, NULL, THREADS + 1);
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i].random = i + 1;
        CHECK_EQ(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    pthread_barrier_wait(&rehearsed);
    faults();
    forbid_calls();
    long before = faults();
    pthread_barrier_wait(&begun);
    pthread_barrier_wait(&worked);
    long more = faults() - before;
    _exit(is_wrong ? 99 : more > 98 ? 98 : (int)more);
}

/* The wait status of the part, in a process of its own. */
static int status_of(const char *mode, const char *prewarm)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        setenv("HAKMEM_MODE", mode, 1);
        if (prewarm != NULL)
            setenv("HAKMEM_PREWARM", prewarm, 1);
        execl(program_path(), "realtime", "works_without_the_kernel", (char *)NULL);
        _exit(126);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    return status;
}

/* Where the kernel is short of memory it takes pages of code away, which fault again: one run of
 * three may do without. A call kills in any. */
TEST(no_call_and_no_fault_once_it_is_warm)
{
    time_limit(500);
    int status = 1;
    for (int i = 0; i < 3 && status != 0; i++) {
        status = status_of("realtime", NULL);
        if (WIFEXITED(status) && WEXITSTATUS(status) == CHECK_SKIPPED)
            SKIP("this kernel has no filters");
        CHECK(WIFEXITED(status));
    }
    CHECK_EQ(status, 0);
}

TEST(without_memory_ahead_it_would_ask_the_kernel)
{
    time_limit(500);
    int status = status_of("realtime", "0");
    CHECK(WIFSIGNALED(status) || WEXITSTATUS(status) != 0);
}
