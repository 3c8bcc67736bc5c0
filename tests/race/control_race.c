/* SPDX-License-Identifier: MIT */
/* tests/race/control_race.c - threads that all look do a request once, while others allocate and
 * the process forks. */
#include "check.h"
#include "control/control.h"
#include "control/request.h"
#include "hakmem/hakmem.h"
#include "os/copy_mark.h"
#include "os/os.h"
#include "process/start.h"
#include "stats/shm.h"
#include "threads.h"

#include <sys/stat.h>

enum { THREADS = 4, REQUESTS = 100 };

static _Atomic uint32_t is_over;
static _Atomic uint32_t done_count;

static void *look(void *unused)
{
    while (hak_load_relaxed(&is_over) == 0) {
        hak_store_relaxed(&hak_copy_mark->next_look_ms, 1);
        if (hak_control_tick() == CONTROL_DONE)
            hak_fetch_add_relaxed(&done_count, 1);
    }
    return unused;
}

/* These calls look, too. */
static void *work(void *unused)
{
    while (hak_load_relaxed(&is_over) == 0) {
        void *blocks[16];
        for (size_t i = 0; i < 16; i++)
            blocks[i] = hakmem_malloc(i * 700);
        for (size_t i = 0; i < 16; i++)
            hakmem_free(blocks[i]);
        hak_control_tick();
    }
    return unused;
}

static int leave(const char *path, uint32_t number)
{
    struct control_request request = {.magic = HAK_REQUEST_MAGIC,
                                      .pid = (uint64_t)getpid(),
                                      .deadline_ms = hak_os_clock_ms() + 60000};
    snprintf(request.words, sizeof request.words, "set retain=%uM", number);
    if (number % 4 == 0)
        snprintf(request.words, sizeof request.words, number % 8 == 0 ? "trim" : "dump");
    unlink(path);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    CHECK(fd >= 0 && write(fd, &request, sizeof request) == (ssize_t)sizeof request);
    CHECK(fchmod(fd, 0600) == 0);
    return fd;
}

/* A child is asked nothing, whatever its parent was in the middle of. */
static void look_as_child(void)
{
    hak_store_relaxed(&hak_copy_mark->next_look_ms, 1);
    CHECK_EQ(hak_control_tick(), CONTROL_NOTHING);
}

/* Leaves requests one after the other; all are answered. */
static void ask_all(void *(*body)(void *), bool forks)
{
    pthread_t threads[THREADS];
    char path[64];
    CHECK(hak_process_start());
    snprintf(path, sizeof path, HAK_SHM_PATH "%d" HAK_REQUEST_SUFFIX, (int)getpid());
    start_threads(threads, THREADS, body);
    for (uint32_t i = 1; i <= REQUESTS; i++) {
        struct control_request seen = {.state = REQUEST_WAITS};
        int fd = leave(path, i);
        while (seen.state != REQUEST_ANSWERED) {
            hak_store_relaxed(&hak_copy_mark->next_look_ms, 1);
            if (forks && i % 16 == 0)
                CHECK_EXITS(look_as_child(), 0);
            CHECK_EQ(pread(fd, &seen, sizeof seen, 0), (ssize_t)sizeof seen);
        }
        CHECK_EQ(seen.is_done, 1);
        close(fd);
    }
    hak_store_relaxed(&is_over, 1);
    join_threads(threads, THREADS);
    unlink(path);
}

TEST(each_request_is_done_once)
{
    ask_all(look, false);
    CHECK_EQ(hak_load_relaxed(&done_count), REQUESTS);
}

TEST(requests_are_done_beside_work_and_forks)
{
    ask_all(work, true);
}
