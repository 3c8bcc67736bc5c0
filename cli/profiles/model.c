/* SPDX-License-Identifier: MIT */
#include "profiles/model.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *grow(void *start, size_t count, size_t bytes)
{
    void *larger = reallocarray(start, count == 0 ? 1 : count, bytes);
    if (larger == NULL) {
        fputs("hakmem: out of memory\n", stderr);
        exit(1);
    }
    return larger;
}

/* Room for one more element behind `count`. */
#define MAKE_ROOM(array, count, room)                                                              \
    do {                                                                                           \
        if ((count) == (room)) {                                                                   \
            (room) = (room) == 0 ? 64 : (room) * 2;                                                \
            (array) = grow((array), (room), sizeof *(array));                                      \
        }                                                                                          \
    } while (0)

void profile_begin(struct profile *profile)
{
    memset(profile, 0, sizeof *profile);
    profile_name(profile, "", 0);
    profile_add_module(profile, (struct module){0});
}

void profile_end(struct profile *profile)
{
    free(profile->modules);
    free(profile->lines);
    free(profile->locations);
    free(profile->sites);
    free(profile->frames);
    free(profile->text);
    free(profile->name_starts);
    free(profile->name_slots);
    free(profile->address_slots);
    memset(profile, 0, sizeof *profile);
}

bool profile_refuse(struct profile *profile, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(profile->wrong, sizeof profile->wrong, format, arguments);
    va_end(arguments);
    return false;
}

static uint64_t hash_of(const char *text, size_t bytes)
{
    uint64_t hash = 0xcbf29ce484222325ull;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3ull;
    return hash ^ hash >> 32;
}

const char *profile_text(const struct profile *profile, name_id name)
{
    return profile->text + profile->name_starts[name];
}

/* Where a name with this text is or would be: a slot holds a name's id and one more, or 0. */
static uint32_t *find_slot(struct profile *profile, const char *text, size_t bytes)
{
    uint32_t mask = profile->slot_count - 1;
    for (uint32_t at = (uint32_t)hash_of(text, bytes) & mask;; at = (at + 1) & mask) {
        uint32_t *slot = &profile->name_slots[at];
        if (*slot == 0)
            return slot;
        const char *name = profile_text(profile, *slot - 1);
        if (strlen(name) == bytes && memcmp(name, text, bytes) == 0)
            return slot;
    }
}

static void double_slots(struct profile *profile)
{
    profile->slot_count = profile->slot_count == 0 ? 256 : profile->slot_count * 2;
    free(profile->name_slots);
    profile->name_slots = grow(NULL, profile->slot_count, sizeof *profile->name_slots);
    memset(profile->name_slots, 0, profile->slot_count * sizeof *profile->name_slots);
    for (name_id name = 0; name < profile->name_count; name++) {
        const char *text = profile_text(profile, name);
        *find_slot(profile, text, strlen(text)) = name + 1;
    }
}

/* Room for so many more bytes; *text, which may be of a name, moves with the names. */
static void make_text_room(struct profile *profile, const char **text, size_t bytes)
{
    uintptr_t offset = (uintptr_t)*text - (uintptr_t)profile->text;
    bool is_name = profile->text != NULL && offset < profile->text_bytes;
    while (profile->text_bytes + bytes > profile->text_room) {
        profile->text_room = profile->text_room == 0 ? 4096 : profile->text_room * 2;
        profile->text = grow(profile->text, profile->text_room, 1);
    }
    if (is_name)
        *text = profile->text + offset;
}

name_id profile_name(struct profile *profile, const char *text, size_t bytes)
{
    if (profile->name_count * 2 >= profile->slot_count)
        double_slots(profile);
    bytes = strnlen(text, bytes);
    make_text_room(profile, &text, bytes + 1);
    char *copy = profile->text + profile->text_bytes;
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    for (char *letter = copy; *letter != '\0'; letter++)
        if ((unsigned char)*letter < ' ' || *letter == 0x7f)
            *letter = '?';
    uint32_t *slot = find_slot(profile, copy, bytes);
    if (*slot != 0)
        return *slot - 1;
    MAKE_ROOM(profile->name_starts, profile->name_count, profile->name_room);
    profile->name_starts[profile->name_count] = (uint32_t)profile->text_bytes;
    profile->text_bytes += bytes + 1;
    *slot = ++profile->name_count;
    return profile->name_count - 1;
}

name_id profile_name_of(struct profile *profile, const char *text)
{
    return profile_name(profile, text, strlen(text));
}

uint32_t profile_add_module(struct profile *profile, struct module module)
{
    MAKE_ROOM(profile->modules, profile->module_count, profile->module_room);
    profile->modules[profile->module_count] = module;
    return profile->module_count++;
}

uint32_t profile_add_location(struct profile *profile, uint64_t address, uint32_t module)
{
    MAKE_ROOM(profile->locations, profile->location_count, profile->location_room);
    profile->locations[profile->location_count] =
        (struct location){.address = address, .module = module, .first_line = profile->line_count};
    return profile->location_count++;
}

/* Where the location of an address is or would be: a slot holds its index and one more, or 0. */
static uint32_t *find_address(struct profile *profile, uint64_t address)
{
    uint32_t mask = profile->address_slot_count - 1;
    uint64_t hash = address * UINT64_C(0x9e3779b97f4a7c15);
    for (uint32_t at = (uint32_t)(hash >> 32) & mask;; at = (at + 1) & mask) {
        uint32_t *slot = &profile->address_slots[at];
        if (*slot == 0 || profile->locations[*slot - 1].address == address)
            return slot;
    }
}

uint32_t profile_location(struct profile *profile, uint64_t address)
{
    if (profile->location_count * 2 >= profile->address_slot_count) {
        uint32_t count = profile->address_slot_count == 0 ? 256 : profile->address_slot_count * 2;
        free(profile->address_slots);
        profile->address_slots = grow(NULL, count, sizeof *profile->address_slots);
        memset(profile->address_slots, 0, count * sizeof *profile->address_slots);
        profile->address_slot_count = count;
        for (uint32_t i = 0; i < profile->location_count; i++)
            *find_address(profile, profile->locations[i].address) = i + 1;
    }
    uint32_t *slot = find_address(profile, address);
    if (*slot == 0)
        *slot = profile_add_location(profile, address, profile_module_at(profile, address)) + 1;
    return *slot - 1;
}

uint32_t profile_find_location(struct profile *profile, uint64_t address)
{
    uint32_t *slot = profile->address_slot_count == 0 ? NULL : find_address(profile, address);
    return slot == NULL || *slot == 0 ? UINT32_MAX : *slot - 1;
}

void profile_add_line(struct profile *profile, uint32_t location, struct line line)
{
    struct location *of = &profile->locations[location];
    if (of->line_count == 0)
        of->first_line = profile->line_count;
    MAKE_ROOM(profile->lines, profile->line_count, profile->line_room);
    profile->lines[profile->line_count++] = line;
    of->line_count++;
}

struct stack profile_add_stack(struct profile *profile, const uint32_t *locations, uint32_t depth)
{
    struct stack stack = {.first_frame = profile->frame_count, .depth = depth};
    for (uint32_t i = 0; i < depth; i++) {
        MAKE_ROOM(profile->frames, profile->frame_count, profile->frame_room);
        profile->frames[profile->frame_count++] = locations[i];
    }
    return stack;
}

struct site *profile_add_site(struct profile *profile, const uint32_t *locations, uint32_t depth)
{
    MAKE_ROOM(profile->sites, profile->site_count, profile->site_room);
    struct site *site = &profile->sites[profile->site_count++];
    *site = (struct site){.stack = profile_add_stack(profile, locations, depth)};
    return site;
}

void profile_name_unknown(struct profile *profile)
{
    char name[300];
    for (uint32_t i = 0; i < profile->location_count; i++) {
        const struct location *location = &profile->locations[i];
        const struct module *module = &profile->modules[location->module];
        const char *file = base_name(profile_text(profile, module->path));
        uint64_t offset =
            location->address - (module->has_bias ? module->bias : module->start - module->offset);
        if (location->line_count > 0)
            continue;
        int bytes = *file == '\0' ? snprintf(name, sizeof name, "0x%" PRIx64, location->address)
                                  : snprintf(name, sizeof name, "%.250s+0x%" PRIx64, file, offset);
        profile_add_line(profile, i,
                         (struct line){.function = profile_name(profile, name, (size_t)bytes)});
    }
}

uint32_t profile_module_at(const struct profile *profile, uint64_t address)
{
    uint32_t i = profile->module_count - 1; /* of modules at one place the later one counts */
    while (i > 0 && (address < profile->modules[i].start || address >= profile->modules[i].end))
        i--;
    return i;
}

uint64_t add_bounded(uint64_t left, uint64_t right)
{
    return left > UINT64_MAX - right ? UINT64_MAX : left + right;
}

uint64_t profile_sum(const struct profile *profile, enum value value)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < profile->site_count; i++)
        sum = add_bounded(sum, profile->sites[i].values[value]);
    return sum;
}

const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

/* A block of b bytes is sampled with the probability p = 1 - exp(-b / period), and stands for 1/p.
 * So sites tell whose samples are many, and stand for clearly more blocks than they are. */
void profile_find_period(struct profile *profile)
{
    double sum = 0, told = 0, all = 0;
    for (uint32_t i = 0; i < profile->site_count; i++) {
        const struct site *site = &profile->sites[i];
        double samples = (double)site->samples;
        double blocks = (double)site->values[VALUE_ALLOCATED_OBJECTS];
        double bytes = (double)site->values[VALUE_ALLOCATED_BYTES];
        all += samples;
        if (samples < 16 || blocks < samples * 5 / 4)
            continue;
        sum += samples * (bytes / blocks) / -log1p(-samples / blocks);
        told += samples;
    }
    double period = told > 0 ? sum / told : 0;
    profile->is_least_period = told == 0 && all > 0;
    /* The library doubles it; less is chance. */
    if (profile->period_bytes > 0 && period > 1.5 * (double)profile->period_bytes)
        profile->period_bytes = (uint64_t)fmin(period, 9e18);
}
