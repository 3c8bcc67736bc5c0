/* SPDX-License-Identifier: MIT */
/* tests/install/aid/sandboxed.c - a program that confines itself in main with a filter that kills.
 *
 *   sandboxed HOW LIST MIB THREADS
 *     HOW      prctl | seccomp (which reaches all threads) | library (libseccomp) | none
 *     LIST     allocator: what malloc's own work takes; openssh: as before its authentication,
 *              in a program that handles signals
 *     MIB      so much is held before and after, in sizes from 16 bytes to 2 MiB
 *     THREADS  that were there before the filter and then work behind it
 *   REFUSED_MIB=N in the environment: a request for so much gets NULL behind it
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int malloc_trim(size_t bytes); /* not every libc has it */

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif
#define COUNT(array) (sizeof(array) / sizeof *(array))
#define MIB ((size_t)1 << 20)
#define THREADS_MOST 8
#define HANDED_OVER 2000

static const int of_an_allocator[] = {SYS_mmap,       SYS_munmap, SYS_mremap,      SYS_mprotect,
                                      SYS_madvise,    SYS_futex,  SYS_brk,         SYS_exit,
                                      SYS_exit_group, SYS_write,  SYS_rt_sigreturn};
/* OpenSSH's seccomp filter, what all of its machines have. */
static const int of_openssh[] = {
    SYS_brk,        SYS_clock_gettime,   SYS_close,        SYS_exit,
    SYS_exit_group, SYS_futex,           SYS_getegid,      SYS_geteuid,
    SYS_getgid,     SYS_getuid,          SYS_getpid,       SYS_getppid,
    SYS_getrandom,  SYS_gettid,          SYS_gettimeofday, SYS_madvise,
    SYS_mmap,       SYS_mprotect,        SYS_mremap,       SYS_munmap,
    SYS_nanosleep,  SYS_clock_nanosleep, SYS_ppoll,        SYS_pselect6,
    SYS_read,       SYS_rt_sigprocmask,  SYS_shutdown,     SYS_write,
    SYS_writev,     SYS_rt_sigreturn,
};

static struct sock_filter filter[COUNT(of_openssh) * 2 + 8];
static unsigned short length;

static void add(struct sock_filter instruction)
{
    filter[length++] = instruction;
}

static void build_filter(const int *calls, size_t count)
{
    add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
    for (size_t i = 0; i < count; i++) {
        add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i], 0, 1));
        add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    }
    add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
}

/* <seccomp.h>, which need not be installed. */
static int confine_by_library(const int *calls, size_t count)
{
    void *library = dlopen("libseccomp.so.2", RTLD_NOW);
    void *(*start)(unsigned answer);
    int (*add_rule)(void *rules, unsigned answer, int call, unsigned count, ...);
    int (*load)(const void *rules);
    if (library == NULL)
        return -1;
    *(void **)&start = dlsym(library, "seccomp_init");
    *(void **)&add_rule = dlsym(library, "seccomp_rule_add");
    *(void **)&load = dlsym(library, "seccomp_load");
    void *rules = start(SECCOMP_RET_KILL_PROCESS);
    for (size_t i = 0; i < count; i++)
        if (add_rule(rules, SECCOMP_RET_ALLOW, calls[i], 0) != 0)
            return -1;
    return load(rules);
}

static int confine(const char *how, const int *calls, size_t count)
{
    if (strcmp(how, "none") == 0)
        return 0;
    if (strcmp(how, "library") == 0)
        return confine_by_library(calls, count);
    build_filter(calls, count);
    struct sock_fprog program = {length, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return -1;
    if (strcmp(how, "prctl") == 0)
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
}

static void wait_until(_Atomic int *word, int value)
{
    for (int now; (now = atomic_load(word)) != value;)
        syscall(SYS_futex, word, FUTEX_WAIT, now, NULL, NULL, 0);
}

/* By one more than it was, for those that wait. */
static void count_up(_Atomic int *word)
{
    atomic_fetch_add(word, 1);
    syscall(SYS_futex, word, FUTEX_WAKE, THREADS_MOST, NULL, NULL, 0);
}

/* nanosleep is not in every list. */
static void sleep_ms(long ms)
{
    static _Atomic int nobody;
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    syscall(SYS_futex, &nobody, FUTEX_WAIT, 0, &time, NULL, 0);
}

static void die(const char *words)
{
    if (write(2, words, strlen(words)) < 0)
        _exit(4);
    _exit(3);
}

/* Blocks of all sizes, most of the bytes in large ones; the list is in their first words. */
struct block {
    struct block *next;
    size_t bytes;
};

static struct block *more(struct block *list, size_t bytes)
{
    static const size_t sizes[] = {16,   100,   40,     700,    3000,    64,
                                   9000, 24000, 130000, 300000, 2 * MIB, 100000};
    for (size_t i = 0, sum = 0; sum < bytes; i++) {
        /* Many of the small ones for each large one. */
        size_t size = sizes[i % (i % 64 == 0 ? COUNT(sizes) : 7)];
        if (size > bytes)
            size = bytes / 2 + 16;
        struct block *block = malloc(size);
        if (block == NULL)
            die("malloc failed\n");
        *block = (struct block){list, size};
        ((char *)block)[size - 1] |= 0;
        list = block;
        sum += size;
    }
    return list;
}

static void release(struct block *list)
{
    while (list != NULL) {
        struct block *next = list->next;
        free(list);
        list = next;
    }
}

/* Every second one goes. */
static struct block *thin(struct block *list)
{
    for (struct block *at = list; at != NULL && at->next != NULL; at = at->next) {
        struct block *gone = at->next;
        at->next = gone->next;
        free(gone);
    }
    return list;
}

static void grow(size_t most_bytes)
{
    char *text = NULL;
    for (size_t bytes = 24; bytes <= most_bytes; bytes += bytes / 2) {
        text = realloc(text, bytes);
        if (text == NULL)
            die("realloc failed\n");
        text[bytes - 1] = 1;
        text[bytes / 2] = 2;
    }
    free(text);
}

static size_t bytes_each;
static _Atomic int stage;
static _Atomic int ready_count;
static _Atomic int done_count;
static void *handed_over[THREADS_MOST][HANDED_OVER];

static void *work(void *argument)
{
    void **from_others = argument;
    struct block *list = more(NULL, bytes_each / 4);
    count_up(&ready_count);
    wait_until(&stage, 1);
    for (int i = 0; i < HANDED_OVER; i++)
        free(from_others[i]);
    list = more(list, bytes_each);
    list = thin(list);
    grow(bytes_each / 2);
    sleep_ms(150);
    list = more(list, bytes_each / 2);
    release(list);
    sleep_ms(150);
    release(more(NULL, bytes_each / 8));
    count_up(&done_count);
    wait_until(&stage, 2); /* for ever: a thread's end takes more calls */
    return NULL;
}

static void be_refused(void)
{
    const char *mib = getenv("REFUSED_MIB");
    void *volatile block = mib == NULL ? NULL : malloc((size_t)atoi(mib) * MIB);
    if (block != NULL)
        die("more than the limit\n");
}

static _Atomic int signals_seen;

static void on_signal(int number)
{
    (void)number;
    atomic_fetch_add(&signals_seen, 1);
}

static void handle_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct itimerspec often = {{0, 2000000}, {0, 2000000}};
    /* To this thread alone: when a signal wakes a thread and another one takes it, the first one's
     * sleep is taken up again by restart_syscall. */
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM};
    event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
    int timer;
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
    if (syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &timer) != 0 ||
        syscall(SYS_timer_settime, timer, 0, &often, NULL) != 0)
        _exit(77);
}

int main(int argument_count, char **arguments)
{
    static pthread_t threads[THREADS_MOST];
    if (argument_count != 5)
        return 2;
    int is_openssh = strcmp(arguments[2], "openssh") == 0;
    int thread_count = atoi(arguments[4]);
    bytes_each = (size_t)atoi(arguments[3]) * MIB / (size_t)(thread_count + 1);
    if (is_openssh)
        handle_signals();

    struct block *list = more(NULL, bytes_each / 2);
    for (int i = 0; i < thread_count; i++) {
        for (int j = 0; j < HANDED_OVER; j++)
            handed_over[i][j] = malloc((size_t)(j % 50 * 40));
        if (pthread_create(&threads[i], NULL, work, handed_over[i]) != 0)
            return 5;
    }
    wait_until(&ready_count, thread_count);
    /* What only asks for what the kernel can do must not count as a filter, nor do harm. */
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL) != -1 || errno != EFAULT)
        return 77;
    if (confine(arguments[1], is_openssh ? of_openssh : of_an_allocator,
                is_openssh ? COUNT(of_openssh) : COUNT(of_an_allocator)) != 0)
        return 77;

    be_refused();
    count_up(&stage);
    list = more(list, bytes_each);
    list = thin(list);
    grow(bytes_each / 2);
    malloc_trim(0);
    sleep_ms(150);
    list = more(list, bytes_each / 2);
    release(list);
    for (int i = 0; i < 20; i++) {
        sleep_ms(10);
        release(more(NULL, bytes_each / 8));
    }
    wait_until(&done_count, thread_count);
    malloc_trim(0);
    if (is_openssh && atomic_load(&signals_seen) == 0)
        die("no signal came\n");
    return 0;
}
