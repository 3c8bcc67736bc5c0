/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "os/thread.h"

#include "base/bits.h"
#include "base/limits.h"
#include "os/home.h"
#include "os/os.h"
#include "os/os_fault.h"
#include "os/section.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A thread that libc made has its variables, and libc's record of it, so near to those named. */
#define MARGIN_BYTES (64 * HAK_KIB)
/* Of libc's record of a thread: pointers to itself, and the guards of stacks and pointers. */
#define RECORD_WORDS 8

/* The flags that libc's threads have: the kernel, valgrind and qemu know this set. */
#define THREAD_FLAGS                                                                               \
    (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |            \
     CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID)

/* Where the thread-local variables in use begin and end, seen from the thread pointer. */
struct extent {
    size_t below_bytes;
    size_t above_bytes;
};

static uintptr_t thread_pointer(void)
{
#if defined(__x86_64__)
    uintptr_t pointer;
    __asm__("movq %%fs:0, %0" : "=r"(pointer));
    return pointer;
#else
    return (uintptr_t)__builtin_thread_pointer();
#endif
}

static void include(struct extent *extent, const void *variable)
{
    uintptr_t pointer = thread_pointer(), at = (uintptr_t)variable;
    size_t below = at < pointer ? pointer - at : 0;
    size_t above = at < pointer ? 0 : at - pointer;
    extent->below_bytes = hak_most(extent->below_bytes, below + MARGIN_BYTES);
    extent->above_bytes = hak_most(extent->above_bytes, above + MARGIN_BYTES);
}

static size_t page_up(size_t bytes)
{
    return hak_align_up(bytes, hak_os_page_bytes());
}

static bool make_area(struct os_thread *thread, struct extent extent)
{
    size_t guard = hak_os_page_bytes();
    size_t bytes = guard + page_up(HAK_THREAD_STACK_BYTES) + page_up(extent.below_bytes) +
                   page_up(extent.above_bytes);
    char *area = hak_os_reserve(bytes);
    if (area == NULL)
        return false;
    if (!hak_os_commit(area + guard, bytes - guard)) {
        hak_os_release(area, bytes);
        return false;
    }
    thread->area = area;
    thread->area_bytes = bytes;
    return true;
}

/* Zero again, where a thread of the process that this one was copied from stood. */
static bool renew_area(struct os_thread *thread)
{
    size_t guard = hak_os_page_bytes();
    if (!hak_os_renew(thread->area + guard, thread->area_bytes - guard))
        return false;
    thread->was_left = false;
    return true;
}

static char *stack_end(const struct os_thread *thread)
{
    return thread->area + hak_os_page_bytes() + page_up(HAK_THREAD_STACK_BYTES);
}

/* libc's record begins at the thread pointer on x86-64: pointers to itself in its first and third
 * word, followed by the stack guards. On other machines nothing that this thread calls reads it. */
static void *make_record(const struct os_thread *thread, struct extent extent)
{
    char *pointer = stack_end(thread) + page_up(extent.below_bytes);
#if defined(__x86_64__)
    uintptr_t record[RECORD_WORDS];
    memcpy(record, (void *)thread_pointer(), sizeof record);
    record[0] = (uintptr_t)pointer;
    record[1] = 0; /* its table of libraries' variables: none is asked for */
    record[2] = (uintptr_t)pointer;
    record[3] = 0; /* "there is one thread": nothing here is cancelled */
    record[4] = 0;
    memcpy(pointer, record, sizeof record);
#endif
    return pointer;
}

static int begin(void *run)
{
    ((void (*)(void))(uintptr_t)run)();
    return 0;
}

#define END_MS 100

/* With every signal blocked, those of faulting instructions too: a handler would run on this small
 * stack, with libc's variables all zero. */
static bool start(struct os_thread *thread, void (*run)(void), void *record)
{
    uint64_t all = ~0ull, before = 0;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof before);
    int result = clone(begin, stack_end(thread), THREAD_FLAGS, (void *)(uintptr_t)run,
                       (pid_t *)&thread->id, record, (pid_t *)&thread->id);
    hak_store_relaxed(&thread->last_id, result > 0 ? (uint32_t)result : 0);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof before);
    return result > 0;
}

bool hak_os_thread_start(struct os_thread *thread, void (*run)(void), const void *variable)
{
    struct extent extent = {0, 0};
    int saved = errno;
    if (!HAK_OWN_THREADS_ALLOWED || hak_os_fault_is_due(FAULT_THREAD))
        return false;
    include(&extent, &errno);
    include(&extent, &hak_lock_held);
    include(&extent, variable);
    include(&extent, (void *)thread_pointer());
    bool is_ready =
        thread->area == NULL ? make_area(thread, extent) : !thread->was_left || renew_area(thread);
    bool is_started = is_ready && start(thread, run, make_record(thread, extent));
    errno = saved;
    return is_started;
}

/* Not FUTEX_WAIT_PRIVATE: at thread exit the kernel wakes the word as a shared one. */
void hak_os_thread_await(const struct os_thread *thread, uint32_t timeout_ms)
{
    struct timespec timeout = {(time_t)(timeout_ms / 1000), (long)(timeout_ms % 1000) * 1000000L};
    int saved = errno;
    /* acquire: partner is the kernel, which writes 0 after the thread's last instruction */
    uint32_t id = hak_load_acquire(&thread->id);
    if (id != 0)
        syscall(SYS_futex, &thread->id, FUTEX_WAIT, id, &timeout, NULL, 0);
    errno = saved;
}

/* The id may belong to another thread by then, which is not waited for. */
void hak_os_thread_await_end(const struct os_thread *thread)
{
    uint64_t deadline_ms = hak_os_clock_ms() + END_MS;
    uint32_t id = hak_load_relaxed(&thread->last_id);
    int saved = errno;
    while (id != 0 && syscall(SYS_tgkill, hak_os_pid(), id, 0) == 0 &&
           hak_os_clock_ms() < deadline_ms)
        hak_os_yield();
    errno = saved;
}

void hak_os_thread_forget(struct os_thread *thread)
{
    hak_store_relaxed(&thread->id, 0);
    hak_store_relaxed(&thread->last_id, 0);
    thread->was_left = thread->area != NULL;
}

void hak_os_thread_name(const char *name)
{
    int saved = errno;
    prctl(PR_SET_NAME, name);
    errno = saved;
}

/* That of the first thread if it gives way to ordinary ones: this one would take the time that a
 * process for idle times does not. */
static int policy_of_process(void)
{
    int policy = (int)syscall(SYS_sched_getscheduler, hak_os_pid()) & ~SCHED_RESET_ON_FORK;
    return policy == SCHED_BATCH || policy == SCHED_IDLE ? policy : SCHED_OTHER;
}

void hak_os_thread_be_ordinary(void)
{
    static const struct sched_param none;
    static unsigned long processors[1024 / sizeof(long)]; /* one such thread runs at a time */
    int saved = errno;
    syscall(SYS_sched_setscheduler, 0, policy_of_process(), &none);
    long bytes = syscall(SYS_sched_getaffinity, hak_os_pid(), sizeof processors, processors);
    if (bytes > 0)
        syscall(SYS_sched_setaffinity, 0, bytes, processors);
    errno = saved;
}
