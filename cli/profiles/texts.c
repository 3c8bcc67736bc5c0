/* SPDX-License-Identifier: MIT */
#include "profiles/formats.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    MODULES_MOST = 1000,
    NAME_BYTES = 4096,
    NESTING_MOST = 32,
};
/* What has no address of a process gets one here: an offset in a file, and a name of its own. */
static const uint32_t module_shift = 44;
static const uint64_t first_name = UINT64_C(1) << 63;

/* The index of a file at a place of its own; 0: too many files. */
static uint32_t module_of(struct profile *profile, const char *path, size_t path_bytes)
{
    name_id name = profile_name(profile, path, path_bytes);
    uint32_t index = 1;
    while (index < profile->module_count && profile->modules[index].path != name)
        index++;
    if (index == MODULES_MOST) {
        profile_refuse(profile, "names too many files");
        return 0;
    }
    uint64_t start = (uint64_t)index << module_shift;
    if (index == profile->module_count)
        profile_add_module(profile, (struct module){.start = start,
                                                    .end = start + (UINT64_C(1) << module_shift),
                                                    .bias = start,
                                                    .has_bias = true,
                                                    .path = name});
    return index;
}

/* The location of an instruction of a file, by its address in the file; false: too many files. */
static bool place_in_file(struct profile *profile, const char *path, size_t path_bytes,
                          uint64_t offset, uint32_t *location)
{
    uint32_t index = module_of(profile, path, path_bytes);
    *location = index == 0 ? 0
                           : profile_location(profile, profile->modules[index].start +
                                                           offset % (UINT64_C(1) << module_shift));
    return index != 0;
}

/* The location of a line that has a name already; `key` tells it from others. */
static uint32_t place_of_name(struct profile *profile, struct line line, const char *key)
{
    uint32_t location = profile_location(profile, first_name + profile_name_of(profile, key));
    if (profile->locations[location].line_count == 0)
        profile_add_line(profile, location, line);
    return location;
}

/* FILE+0xOFFSET, 0xADDRESS, or the name of a function. */
static bool place_frame(struct profile *profile, const char *frame, uint32_t *location)
{
    const char *offset = strrchr(frame, '+');
    const char *number = offset == NULL ? frame : offset + 1;
    bool is_number = strncmp(number, "0x", 2) == 0 && isxdigit((unsigned char)number[2]) &&
                     number[2 + strspn(number + 2, "0123456789abcdef")] == '\0';
    uint64_t value = is_number ? strtoull(number, NULL, 16) : 0;
    if (is_number && offset != NULL && offset > frame)
        return place_in_file(profile, frame, (size_t)(offset - frame), value, location);
    if (is_number)
        *location = profile_location(profile, value);
    else
        *location = place_of_name(
            profile, (struct line){.function = profile_name_of(profile, frame)}, frame);
    return true;
}

/* The last space of a line that ends with one and a number; NULL: it does not. */
static const char *value_of(const char *line, size_t bytes)
{
    const char *end = line + bytes, *at = end;
    while (at > line && isdigit((unsigned char)at[-1]))
        at--;
    return at == end || at <= line + 1 || end - at > 20 || at[-1] != ' ' ? NULL : at - 1;
}

static size_t line_bytes(const char *text, size_t bytes)
{
    const char *end = memchr(text, '\n', bytes);
    return end == NULL ? bytes : (size_t)(end - text);
}

bool is_folded(const char *text, size_t bytes)
{
    size_t first = line_bytes(text, bytes);
    for (size_t i = 0; i < first; i++)
        if ((unsigned char)text[i] < ' ')
            return false;
    return value_of(text, first) != NULL;
}

/* `unix_ms: 1700000000000`, a line of statistics in their raw form; no frame is named so. */
static bool is_statistic(const char *line, const char *value)
{
    size_t name = strspn(line, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return name > 0 && line[name] == ':' && line + name + 1 == value;
}

static bool refuse_statistics(struct profile *profile)
{
    return profile_refuse(profile, "is statistics, not a heap profile: hakmem stats shows them");
}

static bool read_folded_line(struct profile *profile, char *line, char *value)
{
    uint32_t stack[PROFILE_DEPTH_MOST], depth = 0;
    if (is_statistic(line, value))
        return refuse_statistics(profile);
    *value = '\0';
    /* The innermost frame comes last in the file, and first in a site. */
    for (char *last; depth < PROFILE_DEPTH_MOST; *last = '\0') {
        last = strrchr(line, ';');
        if (!place_frame(profile, last == NULL ? line : last + 1, &stack[depth++]))
            return false;
        if (last == NULL)
            break;
    }
    if (profile->site_count == PROFILE_SITES_MOST)
        return profile_refuse(profile, "has too many sites");
    struct site *site = profile_add_site(profile, stack, depth);
    site->values[VALUE_LIVE_BYTES] = strtoull(value + 1, NULL, 10);
    return true;
}

bool folded_read(struct profile *profile, const char *text, size_t bytes)
{
    for (const char *end = text + bytes; text < end;) {
        size_t count = line_bytes(text, (size_t)(end - text));
        const char *value = value_of(text, count);
        if (count > 0 && value == NULL)
            return profile_refuse(profile, "is not `FRAME;FRAME BYTES` in each line");
        char *line = count > 0 ? grow(NULL, count + 1, 1) : NULL;
        if (line != NULL) {
            memcpy(line, text, count);
            line[count] = '\0';
        }
        bool is_read = line == NULL || read_folded_line(profile, line, line + (value - text));
        free(line);
        if (!is_read)
            return false;
        text += count + (text + count < end);
    }
    return true;
}

/* The unread part of a JSON text. */
struct json {
    struct profile *profile;
    const char *at, *end;
    int nesting;
    bool has_sites, has_memory; /* each heap profile has the one, all statistics the other */
};

static bool is_next(struct json *json, char letter)
{
    while (json->at < json->end && strchr(" \t\r\n", *json->at) != NULL && *json->at != '\0')
        json->at++;
    return json->at < json->end && *json->at == letter;
}

static bool take(struct json *json, char letter)
{
    bool is_there = is_next(json, letter);
    json->at += is_there;
    return is_there;
}

static bool fail(struct json *json)
{
    return profile_refuse(json->profile, "is no heap profile in JSON");
}

/* One letter of a string, by its escape; what is not ASCII stays a question. */
static char escaped(struct json *json)
{
    static const char from[] = "nrtbf", to[] = "\n\r\t\b\f";
    char letter = *json->at++;
    const char *known = letter == '\0' ? NULL : strchr(from, letter);
    if (letter != 'u')
        return known == NULL ? letter : to[known - from];
    uint32_t code = 0;
    for (int i = 0; i < 4 && json->at < json->end && isxdigit((unsigned char)*json->at); i++) {
        char digit[2] = {*json->at++, '\0'};
        code = code * 16 + (uint32_t)strtoul(digit, NULL, 16);
    }
    return code > 0 && code < 128 ? (char)code : '?';
}

/* A string, cut where it is long. */
static bool read_string(struct json *json, char to[NAME_BYTES])
{
    size_t used = 0;
    if (!take(json, '"'))
        return fail(json);
    while (json->at < json->end && *json->at != '"') {
        char letter = *json->at++;
        if (letter == '\\' && json->at < json->end)
            letter = escaped(json);
        if (used < NAME_BYTES - 1)
            to[used++] = letter;
    }
    to[used] = '\0';
    return take(json, '"') || fail(json);
}

/* The largest number stands for larger ones. */
static bool read_number(struct json *json, uint64_t *number)
{
    is_next(json, '0'); /* goes past white space */
    const char *start = json->at;
    for (*number = 0; json->at < json->end && isdigit((unsigned char)*json->at); json->at++)
        if (__builtin_mul_overflow(*number, 10, number) ||
            __builtin_add_overflow(*number, (uint64_t)(*json->at - '0'), number))
            *number = UINT64_MAX;
    return json->at > start || fail(json);
}

/* Reads an object or a list: `read` takes each value, with its key, "" in lists. */
static bool read_members(struct json *json, char open, char close,
                         bool (*read)(struct json *json, const char *key, void *to), void *to)
{
    if (!take(json, open) || ++json->nesting > NESTING_MOST)
        return fail(json);
    for (bool is_first = true; !take(json, close); is_first = false) {
        char key[NAME_BYTES] = "";
        if ((!is_first && !take(json, ',')) ||
            (open == '{' && (!read_string(json, key) || !take(json, ':'))))
            return fail(json);
        if (!read(json, key, to))
            return false;
    }
    json->nesting--;
    return true;
}

/* Skips a value. */
static bool skip(struct json *json, const char *key, void *unused)
{
    (void)key;
    char text[NAME_BYTES];
    if (is_next(json, '{'))
        return read_members(json, '{', '}', skip, unused);
    if (is_next(json, '['))
        return read_members(json, '[', ']', skip, unused);
    if (is_next(json, '"'))
        return read_string(json, text);
    const char *start = json->at;
    while (json->at < json->end && (isalnum((unsigned char)*json->at) || *json->at == '-' ||
                                    *json->at == '+' || *json->at == '.'))
        json->at++;
    return json->at > start || fail(json);
}

struct json_frame {
    char function[NAME_BYTES], file[NAME_BYTES], module[NAME_BYTES], address[NAME_BYTES],
        offset[NAME_BYTES];
    uint64_t line;
};

static bool read_frame_member(struct json *json, const char *key, void *to)
{
    struct json_frame *frame = to;
    struct {
        const char *key;
        char *text;
    } const texts[] = {{"function", frame->function},
                       {"file", frame->file},
                       {"module", frame->module},
                       {"address", frame->address},
                       {"offset", frame->offset}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp(key, texts[i].key) == 0)
            return read_string(json, texts[i].text);
    return strcmp(key, "line") == 0 ? read_number(json, &frame->line) : skip(json, key, NULL);
}

struct json_module {
    char path[NAME_BYTES], build_id[NAME_BYTES];
};

static bool read_module_member(struct json *json, const char *key, void *to)
{
    struct json_module *module = to;
    if (strcmp(key, "path") == 0)
        return read_string(json, module->path);
    return strcmp(key, "build_id") == 0 ? read_string(json, module->build_id)
                                        : skip(json, key, NULL);
}

static bool read_module(struct json *json, const char *unused, void *unused_either)
{
    (void)unused;
    (void)unused_either;
    static struct json_module module;
    struct profile *profile = json->profile;
    memset(&module, 0, sizeof module);
    if (!read_members(json, '{', '}', read_module_member, &module))
        return false;
    uint32_t index = module_of(profile, module.path, strlen(module.path));
    if (index != 0)
        profile->modules[index].build_id = profile_name_of(profile, module.build_id);
    return index != 0;
}

struct json_stack {
    uint32_t locations[PROFILE_DEPTH_MOST], depth;
};

static bool read_frame(struct json *json, const char *unused, void *to)
{
    (void)unused;
    static struct json_frame frame;
    struct json_stack *stack = to;
    struct profile *profile = json->profile;
    char key[3 * NAME_BYTES];
    memset(&frame, 0, sizeof frame);
    if (!read_members(json, '{', '}', read_frame_member, &frame))
        return false;
    if (stack->depth == PROFILE_DEPTH_MOST)
        return true;
    uint32_t *location = &stack->locations[stack->depth++];
    if (*frame.function == '\0' && *frame.offset != '\0')
        return place_in_file(profile, frame.module, strlen(frame.module),
                             strtoull(frame.offset, NULL, 16), location);
    if (*frame.function == '\0')
        return place_frame(profile, frame.address, location);
    snprintf(key, sizeof key, "%s %s:%" PRIu64, frame.function, frame.file, frame.line);
    *location = place_of_name(profile,
                              (struct line){.function = profile_name_of(profile, frame.function),
                                            .file = profile_name_of(profile, frame.file),
                                            .number = (uint32_t)(frame.line & INT32_MAX)},
                              key);
    return true;
}

struct json_site {
    struct site site;
    struct json_stack stack, freed_by;
};

static bool read_site_member(struct json *json, const char *key, void *to)
{
    struct json_site *read = to;
    struct profile *profile = json->profile;
    struct site *site = &read->site;
    struct {
        const char *key;
        uint64_t *number;
        bool *is_known;
    } const numbers[] = {
        {"live_bytes", &site->values[VALUE_LIVE_BYTES], NULL},
        {"live_objects", &site->values[VALUE_LIVE_OBJECTS], &profile->has_blocks},
        {"allocated_bytes", &site->values[VALUE_ALLOCATED_BYTES], &profile->has_allocated},
        {"allocated_objects", &site->values[VALUE_ALLOCATED_OBJECTS], NULL},
        {"life_ns", &site->values[VALUE_LIFE_NS], &profile->has_lives},
        {"samples", &site->samples, NULL},
        {"oldest_ns", &site->oldest_ns, &profile->has_ages},
        {"grown_ns", &site->grown_ns, NULL},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (strcmp(key, numbers[i].key) != 0)
            continue;
        if (numbers[i].is_known != NULL)
            *numbers[i].is_known = true;
        return read_number(json, numbers[i].number);
    }
    if (strcmp(key, "stack") == 0)
        return read_members(json, '[', ']', read_frame, &read->stack);
    if (strcmp(key, "freed_by") == 0)
        return read_members(json, '[', ']', read_frame, &read->freed_by);
    return skip(json, key, NULL);
}

static bool read_site(struct json *json, const char *unused, void *unused_either)
{
    (void)unused;
    (void)unused_either;
    static struct json_site read;
    memset(&read, 0, sizeof read);
    if (!read_members(json, '{', '}', read_site_member, &read))
        return false;
    if (json->profile->site_count == PROFILE_SITES_MOST)
        return profile_refuse(json->profile, "has too many sites");
    struct site *site = profile_add_site(json->profile, read.stack.locations, read.stack.depth);
    read.site.stack = site->stack;
    read.site.freed_by =
        profile_add_stack(json->profile, read.freed_by.locations, read.freed_by.depth);
    *site = read.site;
    return true;
}

static bool read_member(struct json *json, const char *key, void *unused)
{
    struct profile *profile = json->profile;
    struct {
        const char *key;
        uint64_t *number;
    } const numbers[] = {{"pid", &profile->pid},
                         {"period_bytes", &profile->period_bytes},
                         {"taken_ns", &profile->taken_ns},
                         {"duration_ns", &profile->duration_ns},
                         {"lost_sites", &profile->lost_sites},
                         {"lost_samples", &profile->lost_samples},
                         {"unshown_sites", &profile->unshown_sites},
                         {"lost_modules", &profile->lost_modules}};
    char text[NAME_BYTES];
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(key, numbers[i].key) == 0)
            return read_number(json, numbers[i].number);
    json->has_sites |= strcmp(key, "sites") == 0;
    json->has_memory |= strcmp(key, "memory") == 0;
    if (strcmp(key, "modules") == 0)
        return read_members(json, '[', ']', read_module, unused);
    if (strcmp(key, "sites") == 0)
        return read_members(json, '[', ']', read_site, unused);
    if (strcmp(key, "program") != 0)
        return skip(json, key, NULL);
    if (!read_string(json, text))
        return false;
    profile->program = profile_name_of(profile, text);
    return true;
}

bool json_read(struct profile *profile, const char *text, size_t bytes)
{
    struct json json = {.profile = profile, .at = text, .end = text + bytes};
    if (!read_members(&json, '{', '}', read_member, NULL))
        return false;
    if (!json.has_sites && json.has_memory)
        return refuse_statistics(profile);
    profile_find_period(profile);
    return json.has_sites || profile_refuse(profile, "is JSON, but no heap profile");
}
