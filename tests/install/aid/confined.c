/* SPDX-License-Identifier: MIT */
/* tests/install/aid/confined.c - a program behind a filter of system calls that is in force before
 * hakmem starts. The test makes "calls.h" of docs/SYSCALLS.md: a CALL( ) for each of hakmem's.
 *
 *   confined only            what is neither hakmem's nor this program's kills
 *   confined without NAME    NAME is refused with EPERM; ends with 0 if memory was had, else 3
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NO_MEMORY 3

struct call {
    const char *name;
    int number;
};
#define CALL(name) {#name, SYS_##name},
static const struct call theirs[] = {
#include "calls.h"
};

/* What threads, children and the end take, whichever malloc serves. */
static const int ours[] = {SYS_exit,           SYS_exit_group,  SYS_clone,           SYS_clone3,
                           SYS_wait4,          SYS_rseq,        SYS_set_robust_list, SYS_mmap,
                           SYS_rt_sigprocmask, SYS_munmap,      SYS_futex,           SYS_mprotect,
                           SYS_madvise,        SYS_rt_sigaction};

#define COUNT(array) (sizeof(array) / sizeof *(array))
static struct sock_filter filter[200];
static unsigned short length;

static void add(struct sock_filter instruction)
{
    filter[length++] = instruction;
}

static void answer_to(int number, unsigned answer)
{
    add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1));
    add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answer));
}

static int is_only;
static const char *refused = "";

/* Before the constructors of any library, and so before hakmem's start. */
static void confine(int argument_count, char **arguments)
{
    int is_known = 0;
    is_only = argument_count == 2 && strcmp(arguments[1], "only") == 0;
    if (argument_count == 3)
        refused = arguments[2];
    add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
    for (size_t i = 0; i < COUNT(theirs); i++) {
        int is_refused = strcmp(refused, theirs[i].name) == 0;
        answer_to(theirs[i].number, is_refused ? SECCOMP_RET_ERRNO | EPERM : SECCOMP_RET_ALLOW);
        is_known |= is_refused;
    }
    if (!is_only && !is_known)
        _exit(4);
    for (size_t i = 0; i < COUNT(ours); i++)
        answer_to(ours[i], SECCOMP_RET_ALLOW);
    add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
                                     is_only ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ALLOW));
    struct sock_fprog program = {length, filter};
    /* libc's own: this stands for a filter from before exec, of which hakmem knows nothing. */
    int (*set)(int option, ...);
    *(void **)&set = dlsym(RTLD_NEXT, "prctl");
    if (set(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        set(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        _exit(77);
}
__attribute__((section(".preinit_array"), used)) static void (*early)(int, char **) = confine;

static void *use(void *argument)
{
    void *blocks[300];
    for (size_t i = 0; i < COUNT(blocks); i++) {
        size_t bytes = 1 + i * i * 5;
        blocks[i] = malloc(bytes);
        if (blocks[i] == NULL)
            _exit(errno == ENOMEM ? NO_MEMORY : 5);
        memset(blocks[i], (int)i, bytes);
    }
    for (size_t i = 0; i < COUNT(blocks); i++) {
        size_t bytes = 1 + i * i * 5;
        blocks[i] = realloc(blocks[i], bytes * 3);
        if (blocks[i] == NULL)
            _exit(errno == ENOMEM ? NO_MEMORY : 5);
        char *last = (char *)blocks[i] + bytes - 1;
        if (*last != (char)i)
            _exit(6);
    }
    for (size_t i = 0; i < COUNT(blocks); i++)
        free(blocks[i]);
    char *growing = NULL;
    for (size_t bytes = 1 << 20; bytes <= 1 << 25; bytes *= 2) {
        growing = realloc(growing, bytes);
        if (growing == NULL)
            _exit(NO_MEMORY);
        growing[bytes - 1] = 1;
    }
    free(growing);
    malloc_trim(0);
    return argument;
}

int main(void)
{
    use(NULL);
    if (!is_only)
        return 0;
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, use, NULL) != 0)
            return 7;
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    pid_t pid = fork();
    if (pid == 0) {
        use(NULL);
        _exit(0);
    }
    int status = -1;
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? 0 : 8;
}
