/* SPDX-License-Identifier: MIT */
#include "stats/writer.h"

#include "base/atomic.h"
#include "base/bits.h"
#include "base/text.h"
#include "conf/conf.h"
#include "hakmem/hakmem.h"
#include "heap/census.h"
#include "os/copy_mark.h"
#include "os/flag.h"
#include "os/home.h"
#include "os/listen.h"
#include "os/os.h"
#include "os/output.h"
#include "os/stderr.h"
#include "process/start.h"
#include "stats/binding.h"
#include "stats/emit.h"
#include "stats/shm_refresh.h"
#include "stats/snapshot.h"
#include "stats/snapshot_take.h"

#include <errno.h>
#include <string.h>

/* Most reports fit; pages that are not written cost nothing. */
#define BUFFER_BYTES (64 * HAK_KIB)
/* The background thread looks for a signal at least so often, should its waking be lost. */
#define SIGNAL_LOOK_MS 1000

/* The greatest age of the shm stats while the program works, and while it sleeps. */
#define SHOW_MS 250
#define SHOW_CALM_MS 1000

#define NEVER_MS UINT64_MAX

/* Guarded by a word of the copy mark. The stack of the thread that prints may be small. */
static char buffer[BUFFER_BYTES];
static struct snapshot snapshot;
static struct census census;
HAK_AT_HAND static _Atomic uint32_t is_asked; /* by the signal */
static _Atomic uint32_t has_complained;
static _Atomic uint64_t next_ms = NEVER_MS;
static _Atomic uint64_t next_show_ms = NEVER_MS;
HAK_AT_HAND static bool has_signal;
HAK_AT_HAND static void (*stir_background)(void); /* it may sleep when the signal comes */
/* The file that is named, open from the start on: later the program may have no right to open it,
 * or another root folder. The name may hold the process's id, then a child has another file. */
static struct os_kept_fd file = {.fd = -1};
static uint32_t file_pid;

struct stream {
    int fd;
    const struct os_kept_fd *kept; /* NULL: fd is the caller's affair */
    int error;
    struct text text;
};

static void stream_flush(struct stream *stream)
{
    const struct text *text = &stream->text;
    if (stream->error == 0 && stream->kept != NULL)
        stream->error = hak_os_output_write_kept(stream->kept, text->start, text->used);
    else if (stream->error == 0)
        stream->error = hak_os_output_write(stream->fd, text->start, text->used);
    stream->text.used = 0;
}

static void stream_add(void *target, const char *piece, size_t bytes)
{
    struct stream *stream = target;
    if (stream->text.bytes - stream->text.used < bytes)
        stream_flush(stream);
    hak_text_add_bytes(&stream->text, piece, bytes);
}

/* Its holder has the buffer and the snapshot. In a copy of a process the holder may be absent. */
#define IS_BUSY (&hak_copy_mark->is_printing)

static int print_to(struct stream stream, enum emit_form form)
{
    stream.text = (struct text){.start = buffer, .bytes = sizeof buffer};
    hak_snapshot_take(&snapshot, &census);
    hak_snapshot_ask_kernel(&snapshot);
    hak_emit(form, &snapshot, stream_add, &stream);
    stream_flush(&stream);
    return stream.error;
}

void hak_stats_writer_file_name(struct text *path)
{
    const char *name = hak_conf_text(stats_file);
    for (; *name != '\0'; name++) {
        if (name[0] == '%' && name[1] == 'p') {
            hak_text_add_number(path, hak_os_pid(), 10);
            name++;
        } else {
            hak_text_add_bytes(path, name, 1);
        }
    }
}

/* Once. */
static void complain(const char *path, int error)
{
    if (hak_load_relaxed(&has_complained) != 0)
        return;
    hak_store_relaxed(&has_complained, 1);
    hak_os_stderr_unwritten("statistics", *path != '\0' ? path : "standard error",
                            hak_os_error_name(error), error);
}

static enum emit_form form_in_force(void)
{
    int64_t form = hak_conf_number(stats);
    return form == STATS_OFF || form == STATS_EXACT ? EMIT_TEXT : (enum emit_form)form;
}

struct file_name {
    char name[HAK_CONF_TEXT_BYTES + 32];
};

static bool is_file_open(void)
{
    bool is_own = strstr(hak_conf_text(stats_file), "%p") == NULL || file_pid == hak_os_pid();
    return is_own && hak_os_kept_is_same(&file);
}

/* /dev/stderr and its like are what the descriptor of that number is: the program's own file, if it
 * has another one by now. */
static bool is_descriptor(const char *name)
{
    return strncmp(name, "/dev/std", 8) == 0 || strncmp(name, "/dev/fd/", 8) == 0 ||
           strncmp(name, "/proc/", 6) == 0;
}

/* Opens the file, by its name if it is not open, or not any more; returns 0 or an error number. */
static int open_file(struct file_name *name)
{
    struct text path = {.start = name->name, .bytes = sizeof name->name - 1};
    hak_stats_writer_file_name(&path);
    name->name[path.used] = '\0';
    if (is_file_open())
        return 0;
    if (file_pid != 0 && is_descriptor(name->name))
        return EBADF;
    if (hak_os_kept_is_same(&file)) /* the parent's */
        hak_os_close(file.fd);
    int fd = hak_os_output_open(name->name);
    file = hak_os_kept_fd(fd);
    file_pid = hak_os_pid();
    if (fd >= 0 && file.fd < 0) { /* nobody can say later whether it is the same */
        hak_os_close(fd);
        return EBADF;
    }
    return fd < 0 ? -fd : 0;
}

/* Errors that show at the start are reported then, since many programs close their standard error
 * before the statistics are written. The reader of a pipe may come later. */
static void try_file(void)
{
    struct file_name name = {""};
    int error = open_file(&name);
    if (error != 0 && error != ENXIO)
        complain(name.name, error);
}

/* To where the options say. The caller is the busy one. */
static void print(void)
{
    struct file_name name = {""};
    struct stream stream = {.fd = -1};
    int error = EBADF;
    if (*hak_conf_text(stats_file) == '\0')
        stream.kept = hak_os_stderr();
    else if ((error = open_file(&name)) == 0)
        stream.kept = &file;
    if (stream.kept != NULL)
        error = print_to(stream, form_in_force());
    if (error != 0 && error != EINTR) /* given up in a pause of the background thread */
        complain(name.name, error);
}

static uint64_t interval_ms(void)
{
    return (uint64_t)hak_conf_number(stats_interval);
}

static bool has_interval(void)
{
    return interval_ms() < HAK_CONF_NEVER_MS;
}

static void wake(void)
{
    hak_store_relaxed(&is_asked, 1);
    stir_background();
}

static bool is_print_due(uint64_t now)
{
    return now >= hak_load_relaxed(&next_ms) || hak_load_relaxed(&is_asked) != 0;
}

static bool is_show_due(uint64_t now)
{
    return now >= hak_load_relaxed(&next_show_ms);
}

/* The caller holds the busy flag; another thread may have printed before that. */
static void print_if_due(uint64_t now)
{
    if (!is_print_due(now))
        return;
    hak_store_relaxed(&is_asked, 0);
    if (now >= hak_load_relaxed(&next_ms))
        hak_store_relaxed(&next_ms, now + interval_ms());
    print();
}

/* By the option, or on request. */
static bool is_shown(uint64_t now)
{
    return hak_conf_number(stats_shm) == STATS_SHM_ON ||
           now < hak_load_relaxed(&hak_copy_mark->shown_until_ms);
}

static void show_if_due(uint64_t now)
{
    if (!is_show_due(now))
        return;
    if (is_shown(now)) {
        hak_store_relaxed(&next_show_ms, now + SHOW_MS);
        hak_shm_refresh();
    } else { /* nobody looks any more, or it was the parent that was watched */
        hak_store_relaxed(&next_show_ms, NEVER_MS);
        hak_shm_end();
    }
}

void hak_stats_writer_tick(void)
{
    uint64_t now = hak_os_clock_ms();
    if (HAK_LIKELY(!is_print_due(now) && !is_show_due(now)))
        return;
    if (!hak_flag_take(IS_BUSY))
        return;
    print_if_due(now);
    show_if_due(now);
    hak_flag_give(IS_BUSY);
}

bool hak_stats_writer_keeps_files(void)
{
    return has_signal || has_interval();
}

bool hak_stats_writer_has_work(void)
{
    return hak_stats_writer_keeps_files() || hak_load_relaxed(&next_show_ms) != NEVER_MS;
}

uint32_t hak_stats_writer_patience_ms(void)
{
    uint64_t least = has_signal ? SIGNAL_LOOK_MS : NEVER_MS;
    if (has_interval())
        least = hak_least(least, interval_ms());
    if (hak_load_relaxed(&next_show_ms) != NEVER_MS || hak_conf_number(blackbox) == BLACKBOX_ON)
        least = hak_least(least, SHOW_CALM_MS);
    return least == NEVER_MS ? 0 : (uint32_t)hak_least(least, UINT32_MAX);
}

const char *hak_stats_writer_show_for(uint32_t seconds)
{
    if (!hak_flag_await_second(IS_BUSY))
        return "another thread has been printing for too long";
    uint64_t now = hak_os_clock_ms();
    hak_store_relaxed(&hak_copy_mark->shown_until_ms, now + (uint64_t)seconds * 1000);
    hak_store_relaxed(&next_show_ms, now);
    show_if_due(now);
    hak_flag_give(IS_BUSY);
    return !is_shown(now) || hak_shm_is_there() ? NULL : "they cannot be published in /dev/shm";
}

static void start_listening(void)
{
    const char *name = hak_conf_text(stats_signal);
    int number = hak_os_signal_find(name);
    has_signal = number != 0 && hak_os_signal_listen(number, wake);
    if (has_signal)
        return;
    char line[HAK_CONF_TEXT_BYTES + 128];
    struct text text = {.start = line, .bytes = sizeof line};
    hak_text_add(&text, "hakmem: HAKMEM_STATS_SIGNAL=");
    hak_text_add(&text, name);
    hak_text_add(&text, ": the kernel refuses to deliver it");
    hak_os_stderr_line(&text);
}

static bool has_something_to_print(void)
{
    return hak_conf_number(stats) != STATS_OFF || has_interval() || has_signal;
}

void hak_stats_writer_start(void (*stir)(void))
{
    stir_background = stir;
    if (*hak_conf_text(stats_signal) != '\0')
        start_listening();
    if (has_something_to_print() && *hak_conf_text(stats_file) != '\0')
        try_file();
    else if (has_something_to_print())
        hak_os_stderr_keep();
    if (has_interval())
        hak_store_relaxed(&next_ms, hak_os_clock_ms() + interval_ms());
    if (hak_conf_number(stats_shm) == STATS_SHM_ON)
        hak_store_relaxed(&next_show_ms, 0);
    hak_stats_writer_tick();
}

/* At the end of the process, after the program's own destructors. */
__attribute__((destructor)) static void print_at_exit(void)
{
    bool has_shown = hak_load_relaxed(&next_show_ms) != NEVER_MS;
    if ((hak_conf_number(stats) == STATS_OFF && !has_shown) || !hak_flag_await_second(IS_BUSY))
        return;
    if (hak_conf_number(stats) != STATS_OFF) {
        hak_binding_tell();
        print();
    }
    hak_store_relaxed(&next_show_ms, NEVER_MS);
    hak_shm_end();
    hak_flag_give(IS_BUSY);
}

static enum emit_form find_form(const char *name)
{
    static const char *const names[] = {"", "text", "raw", "json", "xml", "openmetrics", "summary"};
    for (int i = EMIT_TEXT; i <= EMIT_SUMMARY; i++)
        if (strcmp(names[i], name) == 0)
            return (enum emit_form)i;
    return EMIT_NOTHING;
}

static int print_now(struct stream stream, enum emit_form form)
{
    if (!hak_flag_await_second(IS_BUSY))
        return EBUSY;
    int error = print_to(stream, form);
    hak_flag_give(IS_BUSY);
    return error;
}

int hak_stats_writer_print_kept(const struct os_kept_fd *to, enum emit_form form)
{
    return print_now((struct stream){.fd = -1, .kept = to}, form);
}

int hakmem_stats_print(int fd, const char *form_name)
{
    hak_process_start();
    enum emit_form form = form_name == NULL ? form_in_force() : find_form(form_name);
    if (form == EMIT_NOTHING)
        return EINVAL;
    return print_now((struct stream){.fd = fd}, form);
}
