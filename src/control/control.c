/* SPDX-License-Identifier: MIT */
#include "control/control.h"

#include "base/text.h"
#include "conf/conf.h"
#include "control/profiler.h"
#include "control/request.h"
#include "control/rules.h"
#include "control/sizes.h"
#include "os/confine.h"
#include "os/copy_mark.h"
#include "os/home.h"
#include "os/os.h"
#include "os/output.h"
#include "os/request_file.h"
#include "os/shared.h"
#include "policy/option.h"
#include "process/reclaim.h"
#include "stats/emit.h"
#include "stats/shm.h"
#include "stats/writer.h"

#include <stddef.h>

#define LOOK_MS 1000

/* A request that is being done. */
struct work {
    struct os_kept_fd file;
    struct request_wish wish;
    struct text answer;
};

static bool trim(struct text *answer)
{
    hak_text_add_size(answer, hak_reclaim_trim(0));
    hak_text_add(answer, " returned to the kernel");
    return true;
}

static void add_value(struct text *answer, enum conf_option option)
{
    const struct conf_row *row = &hak_conf_rows[option];
    int64_t number = __atomic_load_n(&hak_conf.number[option], __ATOMIC_RELAXED);
    if (row->kind == CONF_KIND_CHOICE)
        hak_conf_add_value(answer, row, number, "");
    else
        hak_conf_add_round(answer, row, number);
}

static bool change(const struct request_wish *wish, struct text *answer)
{
    enum conf_option option = hak_conf_find(wish->name);
    switch (hak_option_change(wish->name, wish->value)) {
    case OPTION_CHANGED:
        hak_text_add(answer, hak_conf_rows[option].name);
        hak_text_add(answer, "=");
        add_value(answer, option);
        return true;
    case OPTION_FROZEN:
        hak_text_add(answer, hak_conf_rows[option].name);
        hak_text_add(answer, " is read when the program starts, and cannot be changed now");
        return false;
    case OPTION_WRONG:
        hak_text_add(answer, hak_conf_rows[option].name);
        hak_text_add(answer, " takes ");
        hak_conf_add_range(answer, &hak_conf_rows[option]);
        return false;
    default:
        hak_text_add(answer, "there is no option of that name");
        return false;
    }
}

static bool is_dumped(int error, const char *what, struct text *answer)
{
    if (error == 0)
        return true;
    hak_os_unwritten_add(answer, what, NULL, hak_os_error_name(error), 0);
    return false;
}

/* Appends the statistics to the request's own file: no path of the requester is opened. */
static bool dump(const struct os_kept_fd *file, struct text *answer)
{
    int error = hak_os_request_write(file, sizeof(struct control_request), "", 0);
    if (error == 0)
        error = hak_stats_writer_print_kept(file, EMIT_JSON);
    return is_dumped(error, "the statistics", answer);
}

static bool dump_profile(const struct os_kept_fd *file, const char *form, struct text *answer)
{
    if (!hak_control_profiler_may_write(form, answer))
        return false;
    int error = hak_os_request_write(file, sizeof(struct control_request), "", 0);
    if (error == 0)
        error = hak_control_profiler_write(file, form);
    return is_dumped(error, "the profile", answer);
}

static bool watch(uint32_t seconds, struct text *answer)
{
    const char *error = hak_stats_writer_show_for(seconds);
    hak_text_add(answer, error != NULL ? error : "the numbers are in " HAK_SHM_PATH "PID");
    return error == NULL;
}

static bool perform(struct work *work)
{
    switch (work->wish.kind) {
    case REQUEST_TRIM:
        return trim(&work->answer);
    case REQUEST_DUMP:
        return dump(&work->file, &work->answer);
    case REQUEST_SET:
        return change(&work->wish, &work->answer);
    case REQUEST_PROFILE_ON:
        return hak_control_profiler_start(&work->answer);
    case REQUEST_PROFILE_OFF:
        return hak_control_profiler_stop(&work->answer);
    case REQUEST_PROFILE_DUMP:
        return dump_profile(&work->file, work->wish.value, &work->answer);
    case REQUEST_RULES:
        return hak_control_rules_list(&work->file, &work->answer);
    case REQUEST_RULE:
        return hak_control_rules_take(work->wish.value, &work->answer);
    case REQUEST_SIZES:
        return hak_control_sizes_list(&work->file, &work->answer);
    case REQUEST_WATCH:
        return watch(work->wish.seconds, &work->answer);
    default:
        hak_text_add(&work->answer, "this version of hakmem does not know the request");
        return false;
    }
}

static bool write_field(const struct work *work, size_t at, const void *field, size_t bytes)
{
    return hak_os_request_write(&work->file, at, field, bytes) == 0;
}

static bool write_state(const struct work *work, uint64_t state)
{
    return write_field(work, offsetof(struct control_request, state), &state, sizeof state);
}

/* A request whose beginning cannot be written down is not carried out. */
static bool serve(struct work *work)
{
    char answer[HAK_REQUEST_ANSWER_BYTES] = "";
    work->answer = (struct text){.start = answer, .bytes = sizeof answer - 1};
    if (!write_state(work, REQUEST_TAKEN))
        return false;
    uint64_t is_done = perform(work);
    write_field(work, offsetof(struct control_request, answer), answer, sizeof answer);
    write_field(work, offsetof(struct control_request, is_done), &is_done, sizeof is_done);
    write_state(work, REQUEST_ANSWERED);
    return is_done != 0;
}

static enum control_verdict take(const char *path)
{
    struct control_request request;
    struct work work;
    if (!hak_os_request_open(path, &request, sizeof request, &work.file))
        return CONTROL_NOTHING;
    struct request_finder finder = {
        .pid = hak_os_pid(),
        .pid_space = hak_os_pid_space(),
        .start_ticks = hak_os_start_ticks(0),
        .now_ms = hak_os_clock_ms(),
    };
    bool is_served = false;
    if (hak_request_is_due(&request, &finder)) {
        hak_request_read(&request, &work.wish);
        is_served = serve(&work);
    }
    hak_os_request_close(&work.file);
    if (!is_served)
        return CONTROL_NOTHING;
    return work.wish.kind == REQUEST_WATCH ? CONTROL_WATCHED : CONTROL_DONE;
}

static enum control_verdict look(void)
{
    struct shared_path path = hak_os_shared_path(HAK_SHM_PATH, hak_os_pid(), HAK_REQUEST_SUFFIX);
    return hak_os_request_is_there(path.name) ? take(path.name) : CONTROL_NOTHING;
}

/* A confined program may be killed for the calls that a request needs. */
static enum control_verdict look_safely(void)
{
    if (!hak_os_ask_begin())
        return CONTROL_NOTHING;
    uint64_t blocked = hak_os_block_signals();
    enum control_verdict verdict = look();
    hak_os_restore_signals(blocked);
    hak_os_ask_end();
    return verdict;
}

static HAK_NOINLINE enum control_verdict look_at(uint64_t now, uint64_t next)
{
    hak_store_relaxed(&hak_copy_mark->next_look_ms, now + LOOK_MS);
    if (next == 0 || hak_conf_number(stats_shm) == STATS_SHM_NEVER ||
        !hak_flag_take(&hak_copy_mark->is_looking))
        return CONTROL_NOTHING;
    enum control_verdict verdict = look_safely();
    hak_flag_give(&hak_copy_mark->is_looking);
    return verdict;
}

enum control_verdict hak_control_tick(void)
{
    uint64_t now = hak_os_clock_ms();
    uint64_t next = hak_load_relaxed(&hak_copy_mark->next_look_ms);
    return HAK_LIKELY(next != 0 && now < next) ? CONTROL_NOTHING : look_at(now, next);
}
