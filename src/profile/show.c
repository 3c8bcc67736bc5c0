/* SPDX-License-Identifier: MIT */
#include "profile/show.h"

#include "base/bits.h"
#include "base/text.h"
#include "conf/conf.h"
#include "heap/census.h"
#include "heap/draw.h"
#include "os/confine.h"
#include "os/copy_mark.h"
#include "os/home.h"
#include "os/os.h"
#include "os/output.h"
#include "os/random.h"
#include "os/shared.h"
#include "os/stderr.h"
#include "profile/live.h"
#include "profile/modules.h"
#include "region/region.h"
#include "stats/event_log.h"
#include "stats/snapshot_take.h"

#include <errno.h>
#include <string.h>

/* Memory is put behind so many more sites at once. */
#define MORE_SITES 40u
#define TICK_MS 1000
/* What a process has sampled is shown once it stands for so many mean distances, or is so old; a
 * process without a sample gets its black box after the other time: many end before. */
#define SHOWN_MEANS 2
#define SAMPLED_MS 10
#define UNSAMPLED_MS 100
/* The kernel walks all of the process's memory to tell whose it is. The background thread asks it
 * at its leisure, no thread of the program does; one part in so many of the time goes to that at
 * most. */
#define MEMORY_SHARE 512
/* A refused board is tried again after so long. */
#define RETRY_MS 5000

HAK_AT_HAND static _Atomic(struct profile_board *) own;
HAK_AT_HAND static struct profile_board *inherited;
HAK_AT_HAND static uint32_t own_pid;
HAK_AT_HAND static struct shared_made made = {.space_at = offsetof(struct board_head, pid_space)};
HAK_AT_HAND static uint32_t told_pid; /* it was told that it has no board, and why */
HAK_AT_HAND static _Atomic uint32_t backed_sites;
HAK_AT_HAND static bool stats_are_backed; /* the busy one's */
/* Somebody makes the board, grows it, brings it up to date, or adds modules. */
HAK_AT_HAND static _Atomic uint32_t is_busy;
HAK_AT_HAND static _Atomic uint64_t next_tick_ms;
HAK_AT_HAND static _Atomic uint64_t next_walk_ms;  /* 0: a process that has just begun */
HAK_AT_HAND static _Atomic uint64_t due_ms;        /* when the board is made; 0: not known yet */
HAK_AT_HAND static _Atomic uint64_t sampled_bytes; /* before there is a board */
HAK_AT_HAND static _Atomic uint64_t retry_ms;
static _Atomic uint64_t modules_seen[(HAK_BOARD_SITES + 63) / 64]; /* by site */

struct profile_board *hak_show_board(void)
{
    /* acquire: partner is the release in open_first */
    return hak_load_acquire(&own);
}

/* Boards that dead processes left: which are removed. */
struct left {
    uint32_t kept_pid;
    bool is_counting;
    uint64_t newest[HAK_SHOW_KEPT]; /* of black boxes: when they were made, newest first */
};

/* A child that ends by _exit leaves a file. Looking for those of others takes a while. */
#define CHILDREN_PER_SWEEP 16

static void count_kept(struct left *left, uint64_t unix_ms)
{
    for (uint32_t i = 0; i < HAK_SHOW_KEPT; i++) {
        if (unix_ms <= left->newest[i])
            continue;
        uint64_t older = left->newest[i];
        left->newest[i] = unix_ms;
        unix_ms = older;
    }
}

static bool is_left(const struct shared_file *file, const void *context)
{
    const struct board_head *head = file->head;
    struct left *left = (struct left *)(uintptr_t)context;
    if (head->magic != HAK_BOARD_MAGIC || head->pid != file->number ||
        head->pid == left->kept_pid ||
        !hak_os_shared_is_left(file, head->pid_space, head->start_ticks))
        return false;
    if (head->is_kept == 0)
        return true;
    if (left->is_counting)
        count_kept(left, head->start_unix_ms);
    return !left->is_counting && head->start_unix_ms < left->newest[HAK_SHOW_KEPT - 1];
}

static void remove_left(uint32_t kept_pid)
{
    struct left left = {.kept_pid = kept_pid, .is_counting = true};
    hak_os_shared_sweep(HAK_BOARD_PATH, sizeof(struct board_head), is_left, &left);
    left.is_counting = false;
    if (left.newest[HAK_SHOW_KEPT - 1] != 0)
        hak_os_shared_sweep(HAK_BOARD_PATH, sizeof(struct board_head), is_left, &left);
}

static void fill_head(struct board_head *head, uint32_t pid)
{
    head->version = HAK_BOARD_VERSION;
    head->layout = hak_board_layout();
    head->file_bytes = sizeof(struct profile_board);
    head->pid = pid;
    head->pid_space = hak_os_pid_space();
    head->start_ticks = hak_os_start_ticks(0);
    head->start_unix_ms = hak_os_unix_ms();
    head->start_ms = hak_os_clock_ms();
    hak_os_read_text("/proc/self/comm", head->name, sizeof head->name);
    head->name[strcspn(head->name, "\n")] = '\0';
}

/* Fields that change and are no sums. */
static void fill_changing(struct board_head *head)
{
    hak_store_relaxed(&head->is_kept, hak_conf_number(blackbox) == BLACKBOX_ON);
    hak_store_relaxed(&head->mean_bytes, hak_draw_is_for(DRAW_FOR_PROFILE)
                                             ? hak_load_relaxed(&hak_draw_profile_mean_bytes)
                                             : 0);
    hak_store_relaxed(&head->sampling_ms, hak_load_relaxed(&hak_draw_start_ms));
    hak_store_relaxed(&head->refreshed_ms, hak_os_clock_ms());
#define X(name, meaning)                                                                           \
    hak_store_relaxed(&head->dropped.name, hak_load_relaxed(&hak_sites_dropped.name));
    HAK_BOARD_DROPPED_TABLE(X)
#undef X
}

/* A black box of an earlier process of this number: of a container's first process, most likely,
 * which is number 1 again when the container is started again. One beside this container is live:
 * its box stays where it is. */
static bool is_earlier_box(const struct shared_file *file, const void *context)
{
    const struct board_head *head = file->head, *mine = context;
    return head->magic == HAK_BOARD_MAGIC && head->pid == file->number && head->is_kept != 0 &&
           (head->start_ticks != mine->start_ticks || head->pid_space != mine->pid_space) &&
           !hak_os_shared_is_taken(file->fd, head->pid_space);
}

/* Once in a process, which tries it again; unless it was not the user's wish. A profile that is
 * written at the end needs no board. */
static void say_refused(const char *path, uint32_t pid)
{
    bool is_box = hak_conf_number(blackbox) == BLACKBOX_ON, is_taken = made.error == EEXIST;
    int64_t form = hak_conf_number(heap_profile);
    bool is_wish = is_box || form == HEAP_PROFILE_ON || (is_taken && form != HEAP_PROFILE_OFF);
    if (!is_wish || told_pid == pid)
        return;
    told_pid = pid;
    if (is_taken)
        hak_os_shared_say_taken(path);
    else
        hak_os_stderr_unwritten(is_box ? "the black box" : "the heap profile", path,
                                hak_os_error_name(made.error), made.error);
}

static struct profile_board *create(uint32_t pid, uint32_t site_count)
{
    struct board_head head = {.magic = 0};
    fill_head(&head, pid);
    hak_os_shared_set_aside(HAK_BOARD_PATH, pid, sizeof head, is_earlier_box, &head);
    struct shared_path path = hak_os_shared_path(HAK_BOARD_PATH, pid, "");
    struct profile_board *board = hak_os_shared_create_growing(
        path.name, sizeof *board, offsetof(struct profile_board, modules[HAK_BOARD_FIRST_MODULES]),
        &made);
    if (board == NULL) {
        say_refused(path.name, pid);
        return NULL;
    }
    if (!hak_os_shared_back(board->sites, site_count * sizeof *board->sites)) {
        hak_os_shared_unmap(board, sizeof *board);
        hak_os_shared_remove(path.name, &made);
        made.error = ENOSPC;
        say_refused(path.name, pid);
        return NULL;
    }
    memcpy(&board->head, &head, sizeof head);
    fill_changing(&board->head);
    hak_modules_add(NULL, 0);
    hak_modules_show(board);
    return board;
}

/* The board has memory for so many sites. The caller is the busy one. */
static void show_first(struct profile_board *board, uint32_t count)
{
    hak_store_relaxed(&backed_sites, count);
    hak_sites_show(board, count);
    hak_store_relaxed(&board->head.unshown_count, hak_excess(hak_sites_count(), count));
}

/* A handler may have made the copy, and interrupted code that writes to the parent's board: it goes
 * on in the copy, and finds the copy's board there. */
static struct profile_board *replace_inherited(struct profile_board *board)
{
    struct profile_board *place = inherited;
    inherited = NULL;
    return hak_os_shared_move(board, place, sizeof *board) ? place : board;
}

static void open_first(void)
{
    uint32_t pid = hak_os_pid();
    if (own_pid == 0 || hak_os_random() % CHILDREN_PER_SWEEP == 0)
        remove_left(pid);
    own_pid = pid;
    /* A copy has memory for as many sites as its parent. */
    uint32_t site_count =
        (uint32_t)hak_most(hak_load_relaxed(&backed_sites),
                           (hak_sites_count() + MORE_SITES - 1) / MORE_SITES * MORE_SITES);
    struct profile_board *board = create(pid, site_count);
    if (board == NULL) {
        hak_store_relaxed(&retry_ms, hak_os_clock_ms() + RETRY_MS);
        return;
    }
    if (inherited != NULL)
        board = replace_inherited(board);
    stats_are_backed = false;
    show_first(board, site_count);
    hak_store_relaxed(&next_tick_ms, 0); /* its numbers come with the next one */
    /* Last: readers take what has it. release: partner is the acquire of readers */
    hak_store_release(&board->head.magic, HAK_BOARD_MAGIC);
    /* release: partner is the acquire in hak_show_board */
    hak_store_release(&own, board);
}

/* The caller is the busy one. */
static void open_unless_confined(void)
{
    if (!hak_os_ask_begin()) {
        hak_store_relaxed(&retry_ms, UINT64_MAX);
        return;
    }
    open_first();
    hak_os_ask_end();
}

void hak_show_open(void)
{
    if (hak_show_board() != NULL || hak_os_clock_ms() < hak_load_relaxed(&retry_ms) ||
        hak_is_away() || !hak_flag_take(&is_busy))
        return;
    if (hak_show_board() == NULL)
        open_unless_confined();
    hak_flag_give(&is_busy);
}

/* Makes it known when the board is to be made, unless that is known; true: it is time. */
static bool is_due(uint64_t now_ms, uint64_t wait_ms)
{
    uint64_t due = hak_load_relaxed(&due_ms);
    if (due == 0 || due > now_ms + wait_ms) {
        due = now_ms + wait_ms;
        hak_store_relaxed(&due_ms, due);
    }
    return now_ms >= due;
}

void hak_show_sample(uint64_t bytes)
{
    if (HAK_LIKELY(hak_show_board() != NULL))
        return;
    uint64_t sum = hak_fetch_add_relaxed(&sampled_bytes, bytes) + bytes;
    if (is_due(hak_os_clock_ms(), SAMPLED_MS) ||
        sum / SHOWN_MEANS >= hak_load_relaxed(&hak_draw_profile_mean_bytes))
        hak_show_open();
}

void hak_show_prepare(void)
{
    if (hak_load_relaxed(&due_ms) != 0)
        hak_show_open();
}

/* Puts memory behind all sites so far, or as many as there is memory for: the next tick tries again
 * then. The caller is the busy one. */
static void grow(struct profile_board *board)
{
    uint32_t count = hak_sites_count(), backed = hak_load_relaxed(&backed_sites);
    if (count <= backed)
        return;
    if (hak_os_ask_begin()) {
        while (count > backed &&
               hak_os_shared_back(&board->sites[backed], MORE_SITES * sizeof *board->sites))
            backed += MORE_SITES;
        hak_os_ask_end();
    }
    show_first(board, backed);
}

void hak_show_modules(uint32_t site)
{
    uint64_t bit = 1ull << (site % 64);
    if ((hak_load_relaxed(&modules_seen[site / 64]) & bit) != 0)
        return;
    if (!hak_flag_take(&is_busy))
        return; /* the site's next sample comes by again */
    struct profile_board *board = hak_show_board();
    if (board != NULL)
        grow(board);
    const struct board_site *record = hak_sites_at(site);
    if (record != NULL)
        hak_modules_add(record->frames, (uint32_t)record->frame_count);
    if (board != NULL)
        hak_modules_show(board);
    atomic_fetch_or_explicit(&modules_seen[site / 64], bit, memory_order_relaxed);
    hak_flag_give(&is_busy);
}

void hak_show_early_modules(void)
{
    for (uint32_t site = 1; site < hak_sites_count(); site++) {
        atomic_fetch_and_explicit(&modules_seen[site / 64], ~(1ull << (site % 64)),
                                  memory_order_relaxed);
        hak_show_modules(site);
    }
}

static uint64_t oldest_ms[HAK_BOARD_SITES]; /* the busy one's */

static void note_oldest(const struct live_sample *sample, void *context)
{
    uint64_t birth_ms = hak_most(sample->birth_ns / 1000000, 1);
    if (sample->site == HAK_LIVE_NO_SITE)
        return;
    uint64_t *oldest = (uint64_t *)context + sample->site % HAK_BOARD_SITES;
    if (*oldest == 0 || birth_ms < *oldest)
        *oldest = birth_ms;
}

/* The caller is the busy one. */
static void update_oldest(void)
{
    uint32_t count = hak_sites_count(); /* the rest is touched only where they are many */
    memset(oldest_ms, 0, count * sizeof *oldest_ms);
    hak_live_visit(note_oldest, oldest_ms);
    for (uint32_t i = 0; i < count; i++)
        if (hak_sites_at(i) != NULL)
            hak_sites_set_oldest(i, oldest_ms[i]);
}

void hak_show_update_oldest(void)
{
    if (!hak_flag_take(&is_busy))
        return;
    update_oldest();
    hak_flag_give(&is_busy);
}

/* Between two walks the last one counts. The caller is the busy one. */
static void ask_kernel(struct snapshot *snapshot, bool walks)
{
    static uint64_t own_bytes, huge_bytes;
    if (walks) {
        uint64_t start_ns = hak_os_clock_ns();
        hak_snapshot_ask_kernel(snapshot);
        uint64_t took_ns = hak_os_clock_ns() - start_ns;
        own_bytes = snapshot->own_resident_bytes;
        huge_bytes = snapshot->huge_page_bytes;
        hak_store_relaxed(&next_walk_ms,
                          hak_os_clock_ms() +
                              hak_most(took_ns * MEMORY_SHARE / 1000000, TICK_MS / 2));
        return;
    }
    hak_snapshot_ask_kernel_total(snapshot);
    snapshot->own_resident_bytes = own_bytes;
    snapshot->huge_page_bytes = huge_bytes;
    if (hak_load_relaxed(&next_walk_ms) == 0)
        hak_store_relaxed(&next_walk_ms, hak_os_clock_ms() + TICK_MS / 2);
}

static void show_stats(struct profile_board *board, bool walks)
{
    static struct shm_page page; /* the busy one's */
    static struct census census; /* the same */
    if (!stats_are_backed && !hak_os_shared_back(&board->stats, sizeof board->stats))
        return;
    stats_are_backed = true;
    board->stats.head = (struct shm_head){
        .magic = HAK_SHM_MAGIC,
        .layout = hak_shm_layout(),
        .pid = board->head.pid,
        .pid_space = board->head.pid_space,
        .start_ticks = board->head.start_ticks,
        .window_start = hak_region.base,
        .block_start = (uintptr_t)hak_region.guarded_start,
        .record_start = hak_region.records_start,
        .record_end = hak_region.records_end,
    };
    page.clock_ms = hak_os_clock_ms();
    hak_snapshot_take(&page.snapshot, &census);
    ask_kernel(&page.snapshot, walks);
    hak_events_copy(page.events);
    hak_shm_publish(&board->stats, &page);
}

static HAK_NOINLINE enum show_wish tick(uint64_t now, bool walks)
{
    bool is_kept = hak_conf_number(blackbox) == BLACKBOX_ON;
    if (hak_show_board() == NULL && is_due(now, UNSAMPLED_MS))
        hak_show_open();
    struct profile_board *board = hak_show_board();
    if (board == NULL || !hak_flag_take(&is_busy))
        return SHOW_NOTHING;
    hak_store_relaxed(&next_tick_ms, now + TICK_MS);
    grow(board);
    update_oldest();
    fill_changing(&board->head);
    if (is_kept && hak_os_ask_begin()) {
        show_stats(board, walks);
        hak_os_ask_end();
    }
    hak_flag_give(&is_busy);
    return is_kept ? SHOW_ON : SHOW_NOTHING;
}

static enum show_wish tick_if_due(bool is_at_leisure)
{
    if (HAK_LIKELY(hak_show_board() == NULL) && hak_load_relaxed(&due_ms) == 0 &&
        hak_conf_number(blackbox) != BLACKBOX_ON)
        return SHOW_NOTHING;
    uint64_t now = hak_os_clock_ms(), walk_ms = hak_load_relaxed(&next_walk_ms);
    bool walks = is_at_leisure && walk_ms != 0 && now >= walk_ms;
    if ((now < hak_load_relaxed(&next_tick_ms) && !walks) || hak_copy_is_unnoticed())
        return SHOW_NOTHING;
    return tick(now, walks);
}

enum show_wish hak_show_tick(void)
{
    return tick_if_due(false);
}

void hak_show_tick_at_leisure(void)
{
    tick_if_due(true);
}

void hak_show_forget(void)
{
    struct profile_board *board = hak_load_relaxed(&own);
    if (board != NULL)
        inherited = board;
    hak_sites_show(NULL, 0);
    hak_store_relaxed(&own, NULL);
    hak_store_relaxed(&is_busy, 0);
    hak_store_relaxed(&retry_ms, 0);
    hak_store_relaxed(&due_ms, 0);
    hak_store_relaxed(&next_tick_ms, 0);
    hak_store_relaxed(&next_walk_ms, 0);
}

void hak_show_end(void)
{
    if (hak_show_board() == NULL || own_pid != hak_os_pid())
        return;
    struct shared_path path = hak_os_shared_path(HAK_BOARD_PATH, own_pid, "");
    hak_os_shared_remove(path.name, &made);
}
