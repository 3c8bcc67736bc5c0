/* SPDX-License-Identifier: MIT */
/* tests/unit/control/control_test.c - a process finds what is asked of it, does it once, and does
 * nothing for what is not meant for it. */
#include "control/control.h"

#include "conf/conf.h"
#include "hakmem/hakmem.h"
#include "left.h"
#include "os/confine.h"
#include "os/copy_mark.h"
#include "policy/policy_table.h"
#include "process/start.h"
#include "stats/writer.h"

#include <errno.h>
#include <sys/syscall.h>

/* The time for the next look has come. */
static enum control_verdict look_now(void)
{
    CHECK(hak_process_start());
    hak_store_relaxed(&hak_copy_mark->next_look_ms, 1);
    return hak_control_tick();
}

/* Leaves a request and looks; what is in the file then, which is removed. */
static struct control_request asked(const char *words)
{
    left_leave(words);
    errno = 77;
    look_now();
    CHECK_EQ(errno, 77);
    struct control_request request = left_read();
    unlink(left_path);
    return request;
}

static bool is_untouched(const struct control_request *request)
{
    return request->state == REQUEST_WAITS && request->is_done == 0 && request->answer[0] == '\0';
}

static bool has_board(void)
{
    char path[64];
    snprintf(path, sizeof path, HAK_SHM_PATH "%d", (int)getpid());
    return access(path, F_OK) == 0;
}

TEST(the_first_tick_sets_the_time_of_the_first_look)
{
    CHECK(hak_process_start());
    hak_store_relaxed(&hak_copy_mark->next_look_ms, 0);
    left_leave("trim");
    uint64_t before = hak_os_clock_ms();
    CHECK_EQ(hak_control_tick(), CONTROL_NOTHING);
    struct control_request request = left_read();
    CHECK(is_untouched(&request));
    uint64_t next = hak_load_relaxed(&hak_copy_mark->next_look_ms);
    CHECK(next >= before + 1000 && next <= hak_os_clock_ms() + 1000);
    hak_store_relaxed(&hak_copy_mark->next_look_ms, next + 3600000); /* it has not come yet */
    CHECK_EQ(hak_control_tick(), CONTROL_NOTHING);
    request = left_read();
    CHECK(is_untouched(&request));
    CHECK_EQ(look_now(), CONTROL_DONE);
    unlink(left_path);
}

TEST(trim_is_done_once_and_answered)
{
    static char *blocks[2000];
    for (int i = 0; i < 2000; i++)
        memset(blocks[i] = hakmem_malloc(2000), 1, 2000);
    for (int i = 0; i < 2000; i++)
        hakmem_free(blocks[i]);
    left_leave("trim");
    CHECK_EQ(look_now(), CONTROL_DONE);
    struct control_request request = left_read();
    CHECK_EQ(request.state, REQUEST_ANSWERED);
    CHECK_EQ(request.is_done, 1);
    CHECK(strstr(request.answer, "iB returned to the kernel") != NULL);
    CHECK_EQ(look_now(), CONTROL_NOTHING);
    unlink(left_path);
    CHECK_EQ(look_now(), CONTROL_NOTHING);
}

TEST(options_change_and_the_policy_follows)
{
    struct control_request request = asked("set decay=3s");
    CHECK_EQ(request.is_done, 1);
    CHECK_STR(request.answer, "decay=3s");
    CHECK_EQ(hak_policy_read(decay_ms), 3000);
    request = asked("set HAKMEM_RETAIN=2M");
    CHECK_STR(request.answer, "retain=2M");
    CHECK_EQ(hak_policy_read(retain_bytes), 2 << 20);
    request = asked("set free_policy=batch");
    CHECK_STR(request.answer, "free_policy=batch");
}

TEST(a_change_of_price_changes_the_options_that_are_not_set)
{
    CHECK_STR(asked("set decay=3s").answer, "decay=3s");
    CHECK_STR(asked("set price=compact").answer, "price=compact");
    CHECK_EQ(hak_policy_read(decay_ms), 3000);
    CHECK_EQ(hak_policy_read(thread_cache_bytes), 256 << 10);
    CHECK_EQ(hak_policy_read(class_cache_bytes), 16 << 10);
    CHECK_STR(asked("set price=even").answer, "price=even");
    CHECK_EQ(hak_policy_read(thread_cache_bytes), 8 << 20);
    CHECK_EQ(hak_policy_read(decay_ms), 3000);
}

TEST(requests_that_cannot_be_done_are_refused_with_a_reason)
{
    struct control_request request = asked("set harden=all");
    CHECK_EQ(request.state, REQUEST_ANSWERED);
    CHECK_EQ(request.is_done, 0);
    CHECK(strstr(request.answer, "read when the program starts") != NULL);
    request = asked("set decay=soon");
    CHECK_EQ(request.is_done, 0);
    CHECK(strstr(request.answer, "decay takes 0ms to never") != NULL);
    request = asked("set none=1");
    CHECK(strstr(request.answer, "no option") != NULL);
    request = asked("sing");
    CHECK_EQ(request.is_done, 0);
    CHECK(strstr(request.answer, "does not know") != NULL);
}

TEST(a_dump_follows_the_request)
{
    static char text[1 << 18];
    left_leave("dump");
    CHECK_EQ(look_now(), CONTROL_DONE);
    int fd = open(left_path, O_RDONLY);
    ssize_t bytes = pread(fd, text, sizeof text - 1, sizeof(struct control_request));
    CHECK(bytes > 1000);
    CHECK_EQ(text[0], '{');
    CHECK_EQ(text[bytes - 1], '\n');
    CHECK_EQ(left_read().is_done, 1);
    close(fd);
    unlink(left_path);
}

TEST(a_watch_shows_the_numbers_until_it_is_over)
{
    left_leave("watch 60");
    CHECK(!has_board());
    CHECK_EQ(look_now(), CONTROL_WATCHED);
    unlink(left_path);
    CHECK(has_board());
    CHECK(hak_stats_writer_patience_ms() != 0);
    left_leave("watch 0");
    CHECK_EQ(look_now(), CONTROL_WATCHED);
    unlink(left_path);
    hak_stats_writer_tick();
    CHECK(!has_board());
    CHECK_EQ(hak_stats_writer_patience_ms(), 0);
    CHECK_EQ(asked("watch 60").is_done, 1);
    CHECK(has_board());
    CHECK_EQ(asked("watch 0").is_done, 1);
}

TEST(requests_of_other_processes_and_times_are_left_alone)
{
    for (int i = 0; i < 5; i++) {
        struct control_request request = left_request("set decay=3s");
        request.pid += i == 0;
        request.start_ticks += i == 1;
        request.pid_space += i == 2;
        request.deadline_ms = i == 3 ? hak_os_clock_ms() - 20 : request.deadline_ms;
        request.magic += i == 4;
        left_write(&request, sizeof request);
        CHECK_EQ(look_now(), CONTROL_NOTHING);
        struct control_request now = left_read();
        CHECK(memcmp(&now, &request, sizeof now) == 0);
    }
    CHECK_EQ(hak_policy_read(decay_ms), 125);
    unlink(left_path);
}

TEST(a_confined_process_does_not_look)
{
    CHECK(hak_process_start());
    left_leave("trim");
    hak_os_confine();
    CHECK_EQ(look_now(), CONTROL_NOTHING);
    struct control_request request = left_read();
    CHECK(is_untouched(&request));
    unlink(left_path);
}

TEST(a_process_that_may_not_be_asked_does_not_look)
{
    CHECK(hak_process_start());
    CHECK(hak_conf_change(CONF_stats_shm, "never"));
    left_leave("trim");
    CHECK_EQ(look_now(), CONTROL_NOTHING);
    struct control_request request = left_read();
    CHECK(is_untouched(&request));
    unlink(left_path);
}

/* The child's own first tick only sets its time, and the parent's watch is not its own. */
static int be_child(void)
{
    if (hak_load_relaxed(&hak_copy_mark->next_look_ms) != 0)
        return 2;
    hak_control_tick();
    hak_stats_writer_tick();
    if (has_board())
        return 3;
    return asked("trim").is_done == 1 ? 0 : 4;
}

TEST(a_copy_starts_afresh_even_during_a_look)
{
    if (is_emulated())
        SKIP("the emulator leaves a copy what is to be wiped");
    CHECK_EQ(asked("watch 60").is_done, 1);
    hak_store_relaxed(&hak_copy_mark->is_looking, 1);
    for (int way = 0; way < 2; way++) {
        int status;
        pid_t child = way == 0 ? fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (child == 0)
            _exit(be_child());
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK_EQ(status, 0);
    }
    CHECK(has_board());
    hak_store_relaxed(&hak_copy_mark->is_looking, 0);
    CHECK_EQ(asked("watch 0").is_done, 1);
}
