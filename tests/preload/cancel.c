/* SPDX-License-Identifier: MIT */
/* tests/preload/cancel.c - malloc is no point of cancellation, whatever it does besides: it writes,
 * opens and closes files now and then. If this fails, a thread that its program cancels ends inside
 * malloc, with a request that nobody answers and statistics that nobody writes any more. */
#include "program.h"

#include <sys/stat.h>

#define MIB (1u << 20)
#define BLOCKS_MOST 256

static _Atomic int is_through;

/* From here on the calling thread ends at the next point of cancellation. */
static void cancel_this_thread(void)
{
    CHECK_EQ(pthread_cancel(pthread_self()), 0);
}

/* The thread ended where it asked to, not before. */
static void check_ends_when_asked(void *(*body)(void *))
{
    void *result = NULL;
    CHECK_EQ(pthread_join(start_thread(body, NULL), &result), 0);
    CHECK_EQ(result, PTHREAD_CANCELED);
    CHECK_EQ(is_through, 1);
}

static void *be_refused(void *argument)
{
    void *blocks[BLOCKS_MOST];
    unsigned count = 0;
    cancel_this_thread();
    while (count < BLOCKS_MOST && (blocks[count] = malloc(MIB)) != NULL)
        count++;
    is_through = count < BLOCKS_MOST;
    while (count > 0)
        free(blocks[--count]);
    pthread_testcancel();
    return argument;
}

TEST(a_message_of_a_refusal_is_written)
{
    time_limit(300);
    WITH_SETTING("HAKMEM_LIMIT", "64M");
    check_ends_when_asked(be_refused);
}

static int statistics_fd;

static off_t statistics_bytes(void)
{
    struct stat about;
    return fstat(statistics_fd, &about) == 0 ? about.st_size : -1;
}

static void *work_until_printed(void *argument)
{
    cancel_this_thread();
    for (off_t start = statistics_bytes(); statistics_bytes() == start;)
        free(hidden(malloc(MIB)));
    is_through = 1;
    pthread_testcancel();
    return argument;
}

PART(a_thread_prints)
{
    const char *number = getenv("CANCEL_FD");
    time_limit(300);
    CHECK(number != NULL);
    statistics_fd = atoi(number);
    check_ends_when_asked(work_until_printed);
}

/* To a file without a name, which has the same number in the next program. */
TEST(statistics_are_printed_at_intervals)
{
    char path[64], number[16];
    time_limit(300);
    int fd = memfd_create("statistics", 0);
    CHECK(fd >= 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    snprintf(number, sizeof number, "%d", fd);
    setenv("CANCEL_FD", number, 1);
    setenv("HAKMEM_STATS_FILE", path, 1);
    setenv("HAKMEM_STATS_INTERVAL", "10ms", 1);
    setenv("HAKMEM_MAINTENANCE", "off", 1); /* no thread of hakmem's prints instead */
    become("a_thread_prints");
}

static char board[64];

static void *work_until_sampled(void *argument)
{
    cancel_this_thread();
    while (access(board, F_OK) != 0)
        free(hidden(malloc(1000)));
    is_through = 1;
    pthread_testcancel();
    return argument;
}

TEST(the_board_of_a_heap_profile_is_made)
{
    time_limit(300);
    WITH_SETTING("HAKMEM_HEAP_PROFILE", "on");
    snprintf(board, sizeof board, "/dev/shm/hakmem.profile.%d", (int)getpid());
    check_ends_when_asked(work_until_sampled);
}
