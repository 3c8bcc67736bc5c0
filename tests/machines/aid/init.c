/* SPDX-License-Identifier: MIT */
/* tests/machines/aid/init.c - the first process of a guest: runs the tests that /tests names, says
 * on the console how each ended, and restarts the machine, which ends the emulator.
 *
 * A line of /tests: a name, a limit in seconds, variables as NAME=VALUE, a program, its arguments.
 * What is said: "@ begin NAME", what the test prints, "@ end NAME STATUS" (124: it took too long;
 * 128 and more: a signal), and at last "@ done". Called as `true` it is /bin/true. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORDS_MOST 32
#define TIMED_OUT 124

static char *const first_environment[] = {"PATH=/bin", "HOME=/", NULL};

static void mount_at(const char *kind, const char *place)
{
    mkdir(place, 0755);
    if (mount(kind, place, kind, 0, NULL) != 0)
        printf("@ no %s at %s\n", kind, place);
}

static void open_console(void)
{
    int fd = open("/dev/console", O_RDWR);
    for (int i = 0; fd >= 0 && i < 3; i++)
        dup2(fd, i);
    setvbuf(stdout, NULL, _IOLBF, 0);
}

static void become(char **words)
{
    int null = open("/dev/null", O_RDONLY);
    dup2(null, STDIN_FILENO);
    setsid();
    environ = (char **)first_environment;
    for (; *words != NULL && strchr(*words, '=') != NULL; words++)
        putenv(*words);
    if (*words != NULL)
        execv(*words, words);
    printf("cannot start %s\n", *words != NULL ? *words : "nothing");
    _exit(127);
}

/* Waits for the child; other processes that ended are gathered, too. */
static int status_of(pid_t pid, unsigned limit_s)
{
    time_t end = time(NULL) + limit_s;
    for (;;) {
        int status;
        pid_t got = waitpid(-1, &status, WNOHANG);
        if (got == pid)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        if (got <= 0 && time(NULL) >= end)
            return TIMED_OUT;
        if (got <= 0)
            nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
}

static void run(char *line)
{
    char *words[WORDS_MOST + 1] = {NULL};
    unsigned count = 0;
    for (char *word = strtok(line, " \n"); word != NULL && count < WORDS_MOST;
         word = strtok(NULL, " \n"))
        words[count++] = word;
    if (count < 3)
        return;
    printf("@ begin %s\n", words[0]);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        become(words + 2);
    int status = pid < 0 ? 1 : status_of(pid, (unsigned)atoi(words[1]));
    kill(-1, SIGKILL); /* what a test left behind */
    while (waitpid(-1, NULL, 0) > 0)
        continue;
    printf("@ end %s %d\n", words[0], status);
}

int main(int argument_count, char **arguments)
{
    char line[1024];
    (void)argument_count;
    if (strcmp(arguments[0], "true") == 0 || strcmp(arguments[0], "/bin/true") == 0)
        return 0;
    mount_at("devtmpfs", "/dev");
    open_console();
    mount_at("proc", "/proc");
    mount_at("sysfs", "/sys");
    mount_at("tmpfs", "/tmp");
    mount_at("tmpfs", "/dev/shm");
    FILE *tests = fopen("/tests", "r");
    while (tests != NULL && fgets(line, sizeof line, tests) != NULL)
        run(line);
    printf("@ done\n");
    fflush(stdout);
    sync();
    sleep(1);
    reboot(RB_AUTOBOOT);
    return 0;
}
