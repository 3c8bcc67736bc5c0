/* SPDX-License-Identifier: MIT */
#include "stats/publish.h"

#include "base/text.h"
#include "os/os.h"
#include "os/output.h"
#include "os/shared.h"
#include "os/stderr.h"
#include "region/region.h"
#include "stats/board.h"
#include "stats/snapshot.h"

static struct board *board;
static uint32_t board_pid;
static bool is_refused; /* in this process */

struct path {
    char name[64];
};

static struct path path_of(uint32_t pid)
{
    struct path path = {""};
    struct text text = {.start = path.name, .bytes = sizeof path.name - 1};
    hak_text_add(&text, HAK_BOARD_PATH);
    hak_text_add_number(&text, pid, 10);
    return path;
}

static void say_refused(const char *path, int error)
{
    char line[256];
    struct text text = {.start = line, .bytes = sizeof line};
    hak_text_add(&text, "hakmem: statistics cannot be published in ");
    hak_text_add(&text, path);
    hak_text_add(&text, ": ");
    hak_text_add(&text, hak_os_error_name(error));
    hak_text_add(&text, "\n");
    hak_os_stderr_write(line, text.used);
}

static void start_board(uint32_t pid)
{
    int error;
    struct path path = path_of(pid);
    if (board_pid == 0) /* not again in each child */
        hak_board_remove_left(pid);
    board_pid = pid;
    board = hak_os_shared_create(path.name, sizeof *board, &error);
    is_refused = board == NULL;
    if (is_refused) {
        say_refused(path.name, error);
        return;
    }
    board->head = (struct board_head){
        .layout = hak_board_layout(),
        .pid = pid,
        .pid_space = hak_os_pid_space(),
        .start_ticks = hak_os_start_ticks(0),
        .window_start = hak_region.base,
        .block_start = (uintptr_t)hak_region.guarded_start,
        .record_start = hak_region.records_start,
        .record_end = hak_region.records_end,
    };
    /* Before the first page, which is what readers wait for. */
    board->head.magic = HAK_BOARD_MAGIC;
}

void hak_publish(void)
{
    uint32_t pid = hak_os_pid();
    static struct board_page page; /* belongs to who holds the outlet */
    if (pid != board_pid)
        start_board(pid);
    if (is_refused)
        return;
    page.clock_ms = hak_os_clock_ms();
    hak_snapshot_take(&page.snapshot);
    hak_decisions_copy(page.decisions);
    hak_board_publish(board, &page);
}

void hak_publish_end(void)
{
    struct path path = path_of(board_pid);
    if (board != NULL && board_pid == hak_os_pid())
        hak_os_shared_remove(path.name);
}
