/* SPDX-License-Identifier: MIT */
/* tests/preload/exec.c - a process becomes another, or starts one without copying itself. If this
 * fails, shells, make and every program that calls system() lose their children. */
#include "program.h"

#include <spawn.h>

extern char **environ;

PART(what_the_new_program_does)
{
    check_is_served();
    for (unsigned i = 0; i < 5000; i++)
        free(hidden(malloc(i)));
    CHECK(getenv("PATH") != NULL);
}

static _Atomic int has_ended;

static void *stay_busy(void *argument)
{
    unsigned state = 3;
    while (!has_ended)
        free(hidden(malloc(random_bytes(&state))));
    return argument;
}

TEST(a_busy_process_becomes_another_program)
{
    time_limit(300);
    for (unsigned i = 0; i < 30; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            start_thread(stay_busy, NULL);
            start_thread(stay_busy, NULL);
            sleep_ms(1);
            become("what_the_new_program_does");
        }
        CHECK_CHILD_ENDS_WELL(pid, 60000);
    }
}

static void *become_another(void *argument)
{
    become("what_the_new_program_does");
    return argument;
}

TEST(a_thread_other_than_the_first_makes_the_process_another)
{
    time_limit(300);
    for (unsigned i = 0; i < 10; i++)
        CHECK_ENDS_WELL((in_thread(become_another, NULL), _exit(9)), 60000);
}

/* A child of vfork shares its parent's memory, and malloc, until it becomes another program. */
TEST(a_child_of_vfork_can_become_another_program)
{
    time_limit(300);
    pthread_t thread = start_thread(stay_busy, NULL);
    for (unsigned i = 0; i < 50; i++) {
        char *block = malloc(200);
        fill(block, 200, i);
        pid_t pid = vfork();
        if (pid == 0) {
            execlp("true", "true", (char *)NULL);
            _exit(9);
        }
        CHECK_CHILD_ENDS_WELL(pid, 60000);
        CHECK(is_filled(block, 200, i));
        free(block);
    }
    has_ended = 1;
    pthread_join(thread, NULL);
}

TEST(spawned_programs_and_pipes_work_beside_busy_threads)
{
    time_limit(300);
    pthread_t thread = start_thread(stay_busy, NULL);
    for (int i = 0; i < 20; i++) {
        pid_t pid;
        char *arguments[] = {"true", NULL};
        CHECK_EQ(posix_spawnp(&pid, "true", NULL, NULL, arguments, environ), 0);
        CHECK_CHILD_ENDS_WELL(pid, 60000);
        CHECK_EQ(WEXITSTATUS(system("exit 7")), 7);
        char line[32] = "";
        FILE *pipe = popen("echo 1234", "re");
        CHECK(pipe != NULL && fgets(line, sizeof line, pipe) != NULL);
        CHECK_EQ(pclose(pipe), 0);
        CHECK_STR(line, "1234\n");
    }
    has_ended = 1;
    pthread_join(thread, NULL);
}
