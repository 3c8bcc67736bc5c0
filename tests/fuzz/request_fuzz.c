/* SPDX-License-Identifier: MIT */
/* tests/fuzz/request_fuzz.c - any bytes as a request file: nothing outside it is read, what is read
 * is within its bounds, and a process that finds it does what it says at most, and says so. */
#include "fuzz.h"

#include "conf/conf.h"
#include "control/control.h"
#include "control/request.h"
#include "os/copy_mark.h"
#include "os/os.h"
#include "os/shared.h"
#include "policy/option.h"
#include "process/start.h"
#include "stats/shm.h"

#include <fcntl.h>
#include <unistd.h>

/* Words that are known, for what the input begins otherwise. */
static const char *const beginnings[] = {
    "",           "trim",   "dump",       "profile on",  "profile off",  "set ",
    "set decay=", "watch ", "set limit=", "set harden=", "profile dump", "profile dump folded"};

static void read_alone(const unsigned char *bytes, size_t count)
{
    struct control_request *request = malloc(sizeof *request);
    struct request_wish wish;
    memset(request, 0, sizeof *request);
    memcpy(request, bytes, count < sizeof *request ? count : sizeof *request);
    struct request_finder finder = {request->pid, request->pid_space, request->start_ticks,
                                    request->deadline_ms};
    hak_request_is_due(request, &finder);
    hak_request_read(request, &wish);
    CHECK(strlen(wish.name) < sizeof wish.name && strlen(wish.value) < sizeof wish.value);
    CHECK(wish.seconds <= HAK_REQUEST_WATCH_SECONDS_MOST);
    CHECK(wish.kind == REQUEST_SET || wish.name[0] == '\0');
    free(request);
}

/* One that is for this process but for what the input changes. */
static size_t make_request(struct input *input, struct control_request *request)
{
    uint32_t change = input_byte(input);
    const char *words = beginnings[input_below(input, sizeof beginnings / sizeof *beginnings)];
    *request = (struct control_request){.magic = HAK_REQUEST_MAGIC,
                                        .pid = (uint64_t)getpid(),
                                        .pid_space = hak_os_pid_space(),
                                        .start_ticks = hak_os_start_ticks(0),
                                        .deadline_ms = hak_os_clock_ms() + 1000};
    size_t used = strlen(words);
    memcpy(request->words, words, used);
    while (!input_is_over(input) && used < sizeof request->words)
        request->words[used++] = (char)input_byte(input);
    if (change < 16) {
        unsigned char *place = (unsigned char *)request;
        place[(change * 5) % (5 * sizeof(uint64_t))] ^= 0x55;
    }
    return change >= 16 && change < 24 ? change * 32 : sizeof *request;
}

static bool is_sound(const struct control_request *request)
{
    return (request->state == REQUEST_WAITS || request->state == REQUEST_ANSWERED) &&
           request->is_done <= 1 && memchr(request->answer, '\0', sizeof request->answer) != NULL &&
           (request->state == REQUEST_ANSWERED) ==
               (request->answer[0] != '\0' || request->is_done == 1);
}

static void be_asked(struct input *input)
{
    char path[64];
    struct control_request request, answered;
    size_t count = make_request(input, &request);
    snprintf(path, sizeof path, HAK_SHM_PATH "%d" HAK_REQUEST_SUFFIX, (int)getpid());
    unlink(path);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    CHECK(fd >= 0);
    CHECK_EQ(write(fd, &request, count), (long)count);
    hak_store_relaxed(&hak_copy_mark->next_look_ms, 1);
    hak_control_tick();
    if (pread(fd, &answered, sizeof answered, 0) == (long)sizeof answered) {
        CHECK(is_sound(&answered));
        CHECK(memcmp(&request, &answered, offsetof(struct control_request, state)) == 0);
    }
    close(fd);
    unlink(path);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t byte_count)
{
    struct input input = {bytes, bytes + byte_count};
    struct conf initial = hak_conf;
    CHECK(hak_process_start());
    read_alone(bytes, byte_count);
    be_asked(&input);
    hak_conf = initial;
    hak_option_apply();
    return 0;
}
