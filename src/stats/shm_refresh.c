/* SPDX-License-Identifier: MIT */
#include "stats/shm_refresh.h"

#include "base/text.h"
#include "conf/conf.h"
#include "heap/census.h"
#include "os/home.h"
#include "os/os.h"
#include "os/output.h"
#include "os/shared.h"
#include "os/stderr.h"
#include "process/matches.h"
#include "region/region.h"
#include "stats/shm.h"
#include "stats/snapshot.h"
#include "stats/snapshot_take.h"

#include <errno.h>

static struct stats_shm *shm;
static struct shared_made made = {.space_at = offsetof(struct shm_head, pid_space)};
static uint32_t shm_pid;
static bool is_refused; /* in this process */

static void say_refused(const char *path)
{
    if (made.error == EEXIST) {
        hak_os_shared_say_taken(path);
        return;
    }
    char line[256];
    struct text text = {.start = line, .bytes = sizeof line};
    hak_text_add(&text, "hakmem: statistics cannot be published in ");
    hak_text_add(&text, path);
    hak_text_add(&text, ": ");
    hak_text_add(&text, hak_os_error_name(made.error));
    hak_os_stderr_line(&text);
}

static void start_board(uint32_t pid)
{
    struct shared_path path = hak_os_shared_path(HAK_SHM_PATH, pid, "");
    if (shm_pid == 0) /* not again in each child */
        hak_shm_remove_left(pid);
    shm_pid = pid;
    shm = hak_os_shared_create(path.name, sizeof *shm, &made);
    is_refused = shm == NULL;
    if (is_refused) {
        if (hak_conf_number(stats_shm) == STATS_SHM_ON) /* else it was not the user's wish */
            say_refused(path.name);
        return;
    }
    shm->head = (struct shm_head){
        .layout = hak_shm_layout(),
        .pid = pid,
        .pid_space = hak_os_pid_space(),
        .start_ticks = hak_os_start_ticks(0),
        .window_start = hak_region.base,
        .block_start = (uintptr_t)hak_region.guarded_start,
        .record_start = hak_region.records_start,
        .record_end = hak_region.records_end,
    };
    /* Before the first page, which is what readers wait for. */
    shm->head.magic = HAK_SHM_MAGIC;
}

void hak_shm_refresh(void)
{
    uint32_t pid = hak_os_pid();
    static struct shm_page page; /* belongs to the writer's holder */
    static struct census census; /* the same */
    if (pid != shm_pid)
        start_board(pid);
    if (is_refused)
        return;
    page.clock_ms = hak_os_clock_ms();
    hak_snapshot_take(&page.snapshot, &census);
    hak_events_copy(page.events);
    hak_matches_copy(&page.matches); /* or as it was the last time */
    hak_shm_publish(shm, &page);
}

void hak_shm_end(void)
{
    struct shared_path path = hak_os_shared_path(HAK_SHM_PATH, shm_pid, "");
    if (!hak_shm_is_there())
        return;
    hak_os_shared_remove(path.name, &made);
    hak_os_shared_unmap(shm, sizeof *shm);
    shm = NULL;
    shm_pid = 0;
}

bool hak_shm_is_there(void)
{
    return shm != NULL && shm_pid == hak_os_pid();
}
