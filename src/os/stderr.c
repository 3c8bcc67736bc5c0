/* SPDX-License-Identifier: MIT */
#include "os/stderr.h"

#include "base/bits.h"
#include "base/check.h"
#include "os/descriptors.h"
#include "os/file_calls.h"
#include "os/output.h"

#include <errno.h>
#include <stdlib.h>

/* A path of 1,024 bytes, and words. */
#define LINE_BYTES 1280u

#define STDERR 2

static struct os_kept_fd at_start = {.fd = -1};
static struct os_kept_fd copy = {.fd = -1};
static bool is_noted;

void hak_os_stderr_note(void)
{
    at_start = hak_os_kept_fd(STDERR);
    copy.fd = -1;
    is_noted = true;
}

void hak_os_stderr_start(void)
{
    if (!is_noted)
        hak_os_stderr_note();
}

void hak_os_stderr_keep(void)
{
    hak_os_stderr_start();
    if (hak_os_kept_is_same(&copy) || !hak_os_kept_is_same(&at_start))
        return;
    copy = at_start;
    copy.fd = hak_os_kept_copy(STDERR);
}

const struct os_kept_fd *hak_os_stderr(void)
{
    hak_os_stderr_start();
    if (hak_os_kept_is_same(&copy))
        return &copy;
    return hak_os_kept_is_same(&at_start) ? &at_start : NULL;
}

/* Through a number of the program's table, in a thread that has another table. */
static int write_borrowed(struct os_kept_fd to, const char *text, size_t bytes)
{
    to.fd = hak_os_descriptors_borrow(to.fd);
    if (to.fd < 0)
        return EBADF;
    int error = hak_os_output_write_kept(&to, text, bytes);
    int saved = errno;
    hak_call_close(to.fd);
    errno = saved;
    return error;
}

int hak_os_stderr_write(const char *text, size_t bytes)
{
    const struct os_kept_fd *to = hak_os_stderr();
    if (to != NULL)
        return hak_os_output_write_kept(to, text, bytes);
    int error = EBADF;
    if (hak_os_descriptors_are_apart() && (error = write_borrowed(copy, text, bytes)) == EBADF)
        error = write_borrowed(at_start, text, bytes);
    return error;
}

void hak_os_stderr_line(struct text *text)
{
    text->start[text->used < text->bytes ? text->used++ : text->used - 1] = '\n';
    hak_os_stderr_write(text->start, text->used);
}

void hak_os_stderr_unwritten(const char *what, const char *path, const char *why, int error)
{
    char line[LINE_BYTES];
    struct text text = {.start = line, .bytes = sizeof line};
    hak_text_add(&text, "hakmem: ");
    hak_os_unwritten_add(&text, what, path, why, error);
    hak_os_stderr_line(&text);
}

_Noreturn void hak_panic(const char *what)
{
    char line[512];
    struct text text = {.start = line, .bytes = sizeof line};
    hak_text_add(&text, "hakmem: ");
    hak_text_add(&text, what);
    hak_os_stderr_line(&text);
    abort();
}
