/* SPDX-License-Identifier: MIT */
/* tests/preload/aid/learner.c - a program whose memory comes and goes; what it is asked for:
 *
 *     learner waves          tells its resident bytes at its start; free memory of slabs is wanted
 *                            again after 300 ms, many times
 *     learner large          holds 48 MiB in its first second, and tells its faults meanwhile
 *     learner small          ends
 *     learner fork           a child that learned ends by exit, then its parent by _exit
 *     learner closed         closes all descriptors, learns and ends
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BLOCKS 20000
#define WAVES 12
#define LARGE_BYTES (48ul << 20)

static void *blocks[BLOCKS];

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* Small requests meanwhile: maintenance comes with slow paths. */
static void work_ms(long ms)
{
    static void *volatile some[64];
    struct timespec now, start;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        for (int j = 0; j < 64; j++)
            some[j] = malloc(20000 + (size_t)j * 512);
        for (int j = 0; j < 64; j++)
            free(some[j]);
        sleep_ms(1);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < ms);
}

static long resident_bytes(void)
{
    long resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%*d %ld", &resident) != 1)
        abort();
    fclose(file);
    return resident * sysconf(_SC_PAGESIZE);
}

static void make_waves(void)
{
    printf("%ld\n", resident_bytes());
    for (int wave = 0; wave < WAVES; wave++) {
        for (int i = 0; i < BLOCKS; i++)
            memset(blocks[i] = malloc(600), 1, 600);
        for (int i = 0; i < BLOCKS; i++)
            free(blocks[i]);
        work_ms(250);
    }
}

static long faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

static void hold_large(void)
{
    long before = faults();
    char *volatile block = malloc(LARGE_BYTES);
    memset(block, 1, LARGE_BYTES);
    printf("%ld\n", faults() - before);
    free(block);
}

int main(int count, char **words)
{
    const char *word = count > 1 ? words[1] : "";
    if (strcmp(word, "waves") == 0) {
        make_waves();
    } else if (strcmp(word, "large") == 0) {
        hold_large();
    } else if (strcmp(word, "fork") == 0) {
        pid_t child = fork();
        if (child == 0) {
            hold_large();
            exit(0);
        }
        waitpid(child, NULL, 0);
        _exit(0);
    } else if (strcmp(word, "closed") == 0) {
        hold_large();
        fflush(stdout);
        for (int fd = 0; fd < 1024; fd++)
            close(fd);
    }
    return 0;
}
