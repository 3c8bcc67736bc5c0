/* SPDX-License-Identifier: MIT */
#include "os/module.h"

#include "base/atomic.h"
#include "base/bits.h"
#include "base/limits.h"
#include "os/confine.h"
#include "os/elf.h"
#include "os/file_calls.h"
#include "os/flag.h"
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define PATH_BYTES 240u
#define BUFFER_BYTES 1024u

/* A line of /proc/self/maps. */
struct mapping {
    uintptr_t start, end;
    uint64_t offset;
    uint64_t device, inode;
    bool is_readable;
    char path[PATH_BYTES]; /* "": no file */
};

/* Where an address was found. */
struct location {
    uintptr_t base; /* what addresses of the file are counted from */
    char path[PATH_BYTES];
};

static struct {
    _Atomic uint32_t is_taken;
    int fd;
    size_t at, end;
    char buffer[BUFFER_BYTES];
    struct mapping mapping;
    struct location locations[HAK_OS_MODULE_ADDRESSES];
} reader;

/* The next character; -1 at the end. */
static int next(void)
{
    if (reader.at == reader.end) {
        ssize_t count = hak_call_read(reader.fd, reader.buffer, sizeof reader.buffer);
        if (count <= 0)
            return -1;
        reader.at = 0;
        reader.end = (size_t)count;
    }
    return (unsigned char)reader.buffer[reader.at++];
}

/* Reads a number and the character behind it. */
static uint64_t read_number(uint32_t base)
{
    uint64_t number = 0;
    for (;;) {
        int digit = next();
        if (digit >= '0' && digit <= '9')
            number = number * base + (uint64_t)(digit - '0');
        else if (base == 16 && digit >= 'a' && digit <= 'f')
            number = number * base + (uint64_t)(digit - 'a' + 10);
        else
            return number;
    }
}

/* The rest of a line: spaces, then the path, of which too much is left out. */
static void read_path(char *path)
{
    size_t used = 0;
    int character = next();
    while (character == ' ')
        character = next();
    for (; character != '\n' && character != -1; character = next())
        if (used < PATH_BYTES - 1)
            path[used++] = (char)character;
    path[used] = '\0';
}

/* start-end rwxp offset major:minor inode   path; false at the end. */
static bool read_mapping(struct mapping *mapping)
{
    mapping->start = read_number(16);
    mapping->end = read_number(16);
    if (mapping->end == 0)
        return false;
    mapping->is_readable = next() == 'r';
    for (int i = 0; i < 4; i++) /* wxp and a space */
        next();
    mapping->offset = read_number(16);
    mapping->device = read_number(16) << 32;
    mapping->device |= read_number(16);
    mapping->inode = read_number(10);
    /* Only an inode of 0 is followed by nothing but the end of the line, and not always. */
    if (reader.at > 0 && reader.buffer[reader.at - 1] == '\n')
        mapping->path[0] = '\0';
    else
        read_path(mapping->path);
    return true;
}

/* The load bias of a file whose first segment is mapped at `start`: 0 for programs at their linked
 * addresses. */
static uintptr_t base_of(uintptr_t start)
{
    struct os_elf file;
    return hak_elf_open(&file, start, start + HAK_PAGE_BYTES_LEAST) ? file.bias : start;
}

static void find(const uintptr_t *addresses, uint32_t count)
{
    struct mapping *mapping = &reader.mapping;
    uint64_t device = 0, inode = 0;
    uintptr_t start = 0;
    bool is_readable = false;
    while (read_mapping(mapping)) {
        if (mapping->inode == 0)
            continue;
        if (mapping->offset == 0 || mapping->inode != inode || mapping->device != device) {
            start = mapping->start - mapping->offset;
            is_readable = mapping->offset == 0 && mapping->is_readable;
        }
        device = mapping->device;
        inode = mapping->inode;
        for (uint32_t i = 0; i < count; i++) {
            if (addresses[i] < mapping->start || addresses[i] >= mapping->end)
                continue;
            reader.locations[i].base = is_readable ? base_of(start) : start;
            memcpy(reader.locations[i].path, mapping->path, PATH_BYTES);
        }
    }
}

/* False: nothing can be found out. */
static bool read_locations(const uintptr_t *addresses, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        reader.locations[i].path[0] = '\0';
    if (!hak_os_ask_begin())
        return false;
    reader.at = reader.end = 0;
    reader.fd = hak_call_open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    bool is_open = reader.fd >= 0;
    if (is_open) {
        find(addresses, count);
        hak_call_close(reader.fd);
    }
    hak_os_ask_end();
    return is_open;
}

static void add_one(struct text *text, uintptr_t address, const struct location *location)
{
    if (location != NULL && location->path[0] != '\0') {
        hak_text_add(text, location->path);
        hak_text_add(text, "+");
        address -= location->base;
    }
    hak_text_add(text, "0x");
    hak_text_add_number(text, address, 16);
}

void hak_os_module_add(struct text *text, const uintptr_t *addresses, uint32_t count)
{
    int saved = errno;
    bool has_reader = hak_flag_await(&reader.is_taken);
    count = (uint32_t)hak_least(count, HAK_OS_MODULE_ADDRESSES);
    bool is_known = has_reader && read_locations(addresses, count);
    for (uint32_t i = 0; i < count && addresses[i] != 0; i++) {
        hak_text_add(text, i == 0 ? "" : " < ");
        add_one(text, addresses[i], is_known ? &reader.locations[i] : NULL);
    }
    if (has_reader)
        hak_flag_give(&reader.is_taken);
    errno = saved;
}

bool hak_os_module_path(uintptr_t address, char *path, size_t bytes)
{
    int saved = errno;
    const char *found = reader.locations[0].path;
    bool has_reader = hak_flag_await(&reader.is_taken);
    bool is_known = has_reader && read_locations(&address, 1) && *found == '/' &&
                    strlen(found) < hak_least(bytes, PATH_BYTES - 1);
    if (is_known)
        memcpy(path, found, strlen(found) + 1);
    if (has_reader)
        hak_flag_give(&reader.is_taken);
    errno = saved;
    return is_known;
}
