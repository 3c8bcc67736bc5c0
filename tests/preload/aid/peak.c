/* SPDX-License-Identifier: MIT */
/* tests/preload/aid/peak.c - runs a command without output; prints its peak RSS in KiB.
 *
 * A process inherits the peak of the one that started it, so this one is small. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* peak LIBRARY COMMAND...: with LIBRARY preloaded, unless it is empty. */
int main(int argument_count, char **arguments)
{
    if (argument_count < 3)
        return 2;
    char setting[4096];
    snprintf(setting, sizeof setting, "LD_PRELOAD=%s", arguments[1]);
    char *environment[] = {"PATH=/usr/bin:/bin", "LC_ALL=C", setting, NULL};
    pid_t pid = fork();
    if (pid == 0) {
        int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (nowhere < 0 || dup2(nowhere, STDOUT_FILENO) < 0)
            _exit(126);
        execve(arguments[2], arguments + 2, environment);
        _exit(127);
    }
    int status;
    struct rusage usage;
    if (pid < 0 || wait4(pid, &status, 0, &usage) != pid || status != 0)
        return 1;
    printf("%ld\n", usage.ru_maxrss);
    return 0;
}
