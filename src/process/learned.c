/* SPDX-License-Identifier: MIT */
#include "process/learned.h"

#include "base/bits.h"
#include "base/text.h"
#include "conf/conf.h"
#include "heap/limit.h"
#include "learn/learned_file.h"
#include "learn/learned_halve.h"
#include "learn/learned_user.h"
#include "os/confine.h"
#include "os/home.h"
#include "os/lock.h"
#include "os/os.h"
#include "os/output.h"
#include "os/own_file.h"
#include "os/program.h"
#include "os/stderr.h"
#include "policy/policy_table.h"
#include "process/matches.h"
#include "profile/site_rules.h"
#include "profile/size_log.h"
#include "slab/superslab_pool.h"
#include "span/big_cache.h"
#include "span/large.h"

#include <errno.h>

#define SECOND_MS 1000u
/* What the file's name may be, from the root on. */
#define PATH_BYTES 1024

HAK_AT_HAND _Atomic uint64_t hak_learned_second_ms;

/* Untouched without the option. */
static char text[HAK_LEARNED_BYTES_MOST];
static struct learned all;
static struct learned_program mine, loaded; /* as it is, and as the file had it */
static char path[PATH_BYTES];
static uint32_t saving_pid; /* 0: nothing is saved */
static _Atomic size_t second_bytes;

/* NULL: it was read, or there is nothing to read; `all` holds it. */
static const char *read_file(void)
{
    size_t bytes;
    enum own_file file = hak_os_own_file_read(path, text, sizeof text, &bytes);
    hak_learned_begin(&all, hak_os_page_bytes());
    if (file == OWN_FILE_LARGE)
        return hak_learned_verdict_text(LEARNED_TOO_LONG);
    if (file == OWN_FILE_ABSENT || (file == OWN_FILE_READ && bytes == 0))
        return NULL;
    if (file != OWN_FILE_READ)
        return hak_os_own_file_text(file);
    enum learned_verdict verdict = hak_learned_read(&all, text, bytes);
    if (verdict == LEARNED_READ)
        verdict = hak_learned_fits(&all, hak_os_page_bytes());
    return verdict == LEARNED_READ ? NULL : hak_learned_verdict_text(verdict);
}

static void refuse(const char *why)
{
    char line[128];
    struct text out = {.start = line, .bytes = sizeof line - 1};
    hak_text_add(&out, why);
    hak_text_add(&out, ", ignored");
    line[out.used] = '\0';
    hak_conf_tell_file(hak_conf_text(profile), line);
}

static bool learns(enum conf_learn word)
{
    return (hak_conf_number(learn) & word) != 0;
}

static void begin(void)
{
    if (learns(LEARN_BIG_CACHE))
        hak_big_cache_begin(&mine.logs[LEARNED_BIG_CACHE]);
    if (learns(LEARN_DECAY))
        hak_pool_begin(&mine.logs[LEARNED_SLABS]);
    for (uint32_t i = 0; i < mine.match_count; i++)
        hak_matches_bring(&mine.matches[i]);
    for (uint32_t i = 0; learns(LEARN_SITES) && i < mine.site_count; i++)
        hak_rules_bring(&mine.sites[i]);
}

void hak_learned_load_slow(void)
{
    const char *wrong = NULL;
    if (hak_os_is_privileged())
        wrong = "is not for a program with raised privileges";
    else if (!hak_os_full_path(hak_conf_text(profile), path, sizeof path))
        wrong = "is too long a name";
    else
        wrong = read_file();
    if (wrong != NULL) {
        refuse(wrong);
        return;
    }
    hak_learned_name(mine.name, hak_os_program_name());
    const struct learned_program *known = hak_learned_find(&all, mine.name);
    if (known != NULL)
        mine = loaded = *known;
    hak_learned_halve(&mine);
    hak_os_stderr_keep();
    saving_pid = hak_os_pid();
    hak_store_relaxed(&hak_learned_second_ms, hak_os_clock_ms() + SECOND_MS);
    begin();
}

void hak_learned_look(void)
{
    uint64_t end_ms = hak_load_relaxed(&hak_learned_second_ms);
    if (end_ms == 0)
        return;
    if (hak_os_clock_ms() >= end_ms) {
        hak_store_relaxed(&hak_learned_second_ms, 0);
        return;
    }
    size_t used = hak_excess(hak_held_bytes(), hak_limit_warm_bytes());
    if (used > hak_load_relaxed(&second_bytes))
        hak_store_relaxed(&second_bytes, used); /* a race may lose the larger one */
}

/* A process that ends in its first second may have had no tick while it held most. */
static void look_last(void)
{
    if (hak_load_relaxed(&hak_learned_second_ms) == 0)
        return;
    hak_learned_look();
    if (hak_load_relaxed(&hak_learned_second_ms) == 0)
        return;
    hak_store_relaxed(&second_bytes,
                      hak_most(hak_load_relaxed(&second_bytes), hak_large_peak_bytes()));
}

/* Unneeded memory costs: a lower value is adopted at once, a higher one by halves. */
static void learn_second(void)
{
    size_t bytes = hak_load_relaxed(&second_bytes);
    if (bytes == 0)
        return;
    if (mine.runs != 0 && bytes > mine.first_second_bytes)
        bytes = mine.first_second_bytes + (bytes - mine.first_second_bytes) / 2;
    mine.first_second_bytes = bytes;
    mine.runs++;
}

static void learn_log(enum learned_log log, void (*read)(struct keep_evidence *seen))
{
    struct keep_evidence seen;
    read(&seen);
    if (seen.episodes != 0)
        mine.logs[log] = seen;
}

/* Rules of the user come first, then those in force, then wrappers. */
static int order_of(const struct site_line *line)
{
    if (hak_site_line_is_said(line))
        return 0;
    if (line->state == RULE_ACTIVE)
        return 1;
    return line->state == RULE_MIXED ? 2 : 3;
}

static void learn_sites(void)
{
    struct site_line line;
    mine.site_count = 0;
    for (int order = 0; order <= 3; order++)
        for (uint32_t i = 0; hak_rules_line(i, &line); i++)
            if (order_of(&line) == order && hak_site_line_lasts(&line))
                hak_learned_put_site(&mine, &line);
}

/* Adds the sizes of earlier runs to those of this one. */
static void learn_sizes(void)
{
    static struct size_spread spread;
    if (!hak_size_log_read(&spread, hak_os_clock_ns()))
        return;
    hak_size_spread_add(&spread, &mine.sizes);
    hak_size_spread_cut(&spread, &mine.sizes);
}

static void complain(const char *why, int error)
{
    hak_os_stderr_unwritten("what was learned", path, why, error);
}

static const char *why_not_replaced(int error)
{
    return error == EBUSY ? "the file is a mount point: its directory is to be mounted"
                          : hak_os_error_name(error);
}

/* Reads the file again: others may have written about other programs, the user about this one. */
static void save(void)
{
    const char *wrong = read_file();
    if (wrong != NULL) {
        complain(wrong, 0);
        return;
    }
    const struct learned_program *now = hak_learned_find(&all, mine.name);
    if (now != NULL)
        hak_learned_heed(&mine, &loaded, now);
    hak_learned_put(&all, &mine);
    int error = hak_os_own_file_replace(path, text, hak_learned_write(&all, text));
    if (error != 0)
        complain(why_not_replaced(error), error);
}

/* At the end of the process. One that ends inside a slow path, by a handler, learned nothing. */
__attribute__((destructor)) static void save_at_exit(void)
{
    if (HAK_LIKELY(*hak_conf_text(profile) == '\0') || saving_pid == 0 || hak_lock_is_inside() ||
        saving_pid != hak_os_pid())
        return;
    look_last();
    learn_second();
    if (learns(LEARN_BIG_CACHE))
        learn_log(LEARNED_BIG_CACHE, hak_big_cache_learned);
    if (learns(LEARN_DECAY))
        learn_log(LEARNED_SLABS, hak_pool_learned);
    hak_matches_tell(&mine);
    if (learns(LEARN_SITES))
        learn_sites();
    learn_sizes();
    if (!hak_os_ask_begin()) {
        complain("the program confined itself", 0);
        return;
    }
    save();
    hak_os_ask_end();
    saving_pid = 0;
}
