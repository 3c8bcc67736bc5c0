/* SPDX-License-Identifier: MIT */
#include "base/text.h"
#include "conf/conf.h"
#include "os/confine.h"
#include "os/home.h"
#include "os/os.h"
#include "os/output.h"
#include "os/own_file.h"
#include "os/stderr.h"
#include "profile/output.h"
#include "stats/writer.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

/* As many files of one process id may lie in one folder. */
#define FILES_MOST 100u
#define NAME_BYTES (PATH_MAX + HAK_CONF_TEXT_BYTES + 64)

/* Where the process started, with a / at its end; else where it is at the end. */
static char folder[PATH_MAX];

void hak_profile_output_start(void)
{
    if (!hak_os_full_path("", folder, sizeof folder))
        folder[0] = '\0';
}

static void write_name(char name[NAME_BYTES], uint32_t number, enum profile_form form)
{
    struct text text = {.start = name, .bytes = NAME_BYTES - 1};
    if (*hak_conf_text(stats_file) != '/')
        hak_text_add(&text, folder);
    if (*hak_conf_text(stats_file) != '\0') {
        hak_stats_writer_file_name(&text);
    } else {
        hak_text_add(&text, "hakmem.");
        hak_text_add_number(&text, hak_os_pid(), 10);
    }
    if (number > 1) {
        hak_text_add(&text, ".");
        hak_text_add_number(&text, number, 10);
    }
    hak_text_add(&text, hak_profile_forms[form].suffix);
    name[text.used] = '\0';
}

static void write_file(enum profile_form form)
{
    static char name[NAME_BYTES]; /* the stack may be small */
    int fd = -EEXIST;
    for (uint32_t i = 1; fd == -EEXIST && i <= FILES_MOST; i++) {
        write_name(name, i, form);
        fd = hak_os_output_create(name);
    }
    int error = -fd;
    if (fd >= 0) {
        struct profile_target to = {.fd = fd};
        error = hak_profile_output(&to, form);
        hak_os_close(fd);
        if (error != 0)
            hak_os_output_remove(name);
    }
    if (error != 0)
        hak_os_stderr_unwritten("the heap profile", name, hak_os_error_name(error), error);
}

void hak_profile_output_file(enum profile_form form)
{
    if (!hak_profile_output_has_any() || !hak_os_ask_begin())
        return;
    write_file(form);
    hak_os_ask_end();
}
