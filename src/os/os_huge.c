/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "os/os_huge.h"

#include "os/os.h"
#include "os/os_fault.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define SETTING "/sys/kernel/mm/transparent_hugepage/enabled"
/* Linux 6.8 and later: the setting for pages of 2 MiB, which may be to inherit the one above. */
#define SIZE_SETTING "/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled"
/* Until it was read: what is given back shall stay away wherever it might be filled again. */
static _Atomic uint32_t known = HUGE_ALWAYS;

enum os_huge hak_os_huge_setting(const char *size_text, const char *text)
{
    if (*size_text != '\0' && strstr(size_text, "[inherit]") == NULL)
        text = size_text;
    if (strstr(text, "[always]") != NULL)
        return HUGE_ALWAYS;
    return strstr(text, "[madvise]") != NULL ? HUGE_ON_REQUEST : HUGE_NEVER;
}

void hak_os_read_huge_pages(void)
{
    char size_text[64], text[64];
    hak_os_read_text(SIZE_SETTING, size_text, sizeof size_text);
    hak_os_read_text(SETTING, text, sizeof text);
    hak_store_relaxed(&known, (uint32_t)hak_os_huge_setting(size_text, text));
}

enum os_huge hak_os_huge_pages(void)
{
    uint32_t fake = HAK_CHECK_LEVEL < 2 ? 0 : hak_load_relaxed(&hak_os_fault.huge_pages);
    if (fake != 0)
        return (enum os_huge)(fake - 1);
    return (enum os_huge)hak_load_relaxed(&known);
}

/* A file read line by line; what does not fit a line is cut. */
struct lines {
    int fd;
    size_t begin;
    size_t end;
    char buffer[2048];
};

/* The next line, ended by 0; NULL: there is none. */
static char *next_line(struct lines *lines)
{
    for (;;) {
        char *start = lines->buffer + lines->begin;
        char *newline = memchr(start, '\n', lines->end - lines->begin);
        if (newline != NULL) {
            *newline = '\0';
            lines->begin = (size_t)(newline + 1 - lines->buffer);
            return start;
        }
        lines->end -= lines->begin;
        memmove(lines->buffer, start, lines->end);
        lines->begin = 0;
        if (lines->end == sizeof lines->buffer)
            lines->end = 0;
        ssize_t got =
            read(lines->fd, lines->buffer + lines->end, sizeof lines->buffer - lines->end);
        if (got <= 0)
            return NULL;
        lines->end += (size_t)got;
    }
}

static uint64_t number_at(const char *text, uint64_t base)
{
    uint64_t value = 0;
    for (; *text == ' '; text++)
        continue;
    for (;; text++) {
        uint64_t digit = *text >= 'a' ? (uint64_t)(*text - 'a') + 10 : (uint64_t)(*text - '0');
        if (digit >= base)
            return value;
        value = value * base + digit;
    }
}

/* A mapping's first line begins with its addresses, all others with a capital. */
static bool is_mapping(const char *line)
{
    return (*line >= '0' && *line <= '9') || (*line >= 'a' && *line <= 'f');
}

uint64_t hak_os_huge_bytes(const void *start, size_t bytes)
{
    static const char field[] = "AnonHugePages:";
    struct lines lines = {.begin = 0};
    uint64_t sum = 0;
    bool is_within = false;
    int saved = errno;
    lines.fd = open("/proc/self/smaps", O_RDONLY | O_CLOEXEC);
    for (char *line; lines.fd >= 0 && (line = next_line(&lines)) != NULL;) {
        if (is_mapping(line))
            is_within = number_at(line, 16) - (uintptr_t)start < bytes;
        else if (is_within && strncmp(line, field, sizeof field - 1) == 0)
            sum += number_at(line + sizeof field - 1, 10) * 1024;
    }
    if (lines.fd >= 0)
        close(lines.fd);
    errno = saved;
    return sum;
}
