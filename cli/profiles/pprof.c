/* SPDX-License-Identifier: MIT */
#include "profile.pb-c.h"
#include "profiles/formats.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* No profile is larger than this when it is unpacked. */
#define UNPACKED_BYTES_MOST ((size_t)256 << 20)

static const char *const value_types[VALUE_COUNT] = {"alloc_objects", "alloc_space",
                                                     "inuse_objects", "inuse_space", "lifetime"};

/* gzip's bytes unpacked, in a block that the caller frees; NULL: the profile has the reason. */
static unsigned char *unpack(struct profile *profile, const void *from, size_t from_bytes,
                             size_t *bytes)
{
    z_stream stream = {.next_in = (void *)(uintptr_t)from, .avail_in = (uInt)from_bytes};
    size_t room = 1 << 16;
    unsigned char *start = NULL;
    int status = inflateInit2(&stream, MAX_WBITS + 16);
    *bytes = 0;
    while (status == Z_OK && *bytes < UNPACKED_BYTES_MOST) {
        room *= 2;
        start = grow(start, room, 1);
        stream.next_out = start + *bytes;
        stream.avail_out = (uInt)(room - *bytes);
        status = inflate(&stream, Z_NO_FLUSH);
        *bytes = room - stream.avail_out;
        if (status == Z_OK && stream.avail_in == 0 && stream.avail_out > 0)
            status = Z_BUF_ERROR;
    }
    inflateEnd(&stream);
    if (status == Z_STREAM_END)
        return start;
    free(start);
    profile_refuse(profile, status == Z_OK ? "is too large" : "is cut short or no gzip");
    return NULL;
}

/* Everything that a message refers to by number, and where it is here. */
struct import {
    struct profile *profile;
    const Pprof__Profile *from;
    name_id *names;
    uint32_t *modules, *locations;
    int columns[VALUE_COUNT]; /* of each value among the sample's; -1: none */
};

static const char *text_of(const struct import *import, int64_t index)
{
    bool is_there = index >= 0 && (uint64_t)index < import->from->n_string_table;
    return is_there ? import->from->string_table[index] : "";
}

static name_id name_of(const struct import *import, int64_t index)
{
    bool is_there = index >= 0 && (uint64_t)index < import->from->n_string_table;
    return is_there ? import->names[index] : 0;
}

/* Numbers and their places in a list, sorted by number: other tools number as they like. */
struct numbered {
    uint64_t number;
    uint32_t place;
};

static int compare_numbers(const void *left, const void *right)
{
    uint64_t first = ((const struct numbered *)left)->number;
    uint64_t second = ((const struct numbered *)right)->number;
    return first < second ? -1 : first > second;
}

/* `from` has the number that a message of the list has first. */
static struct numbered *number_list(size_t count, void *const *from, size_t number_at)
{
    struct numbered *list = grow(NULL, count, sizeof *list);
    for (size_t i = 0; i < count; i++) {
        memcpy(&list[i].number, (const char *)from[i] + number_at, sizeof list[i].number);
        list[i].place = (uint32_t)i;
    }
    qsort(list, count, sizeof *list, compare_numbers);
    return list;
}

/* The place of a number, or -1. */
static int64_t place_of(const struct numbered *list, size_t count, uint64_t number)
{
    struct numbered key = {.number = number};
    const struct numbered *found = bsearch(&key, list, count, sizeof *list, compare_numbers);
    return found == NULL ? -1 : (int64_t)found->place;
}

static bool import_types(struct import *import)
{
    const Pprof__Profile *from = import->from;
    bool has_any = false;
    for (int value = 0; value < VALUE_COUNT; value++)
        import->columns[value] = -1;
    for (size_t i = 0; i < from->n_sample_type && i < 64; i++) {
        const char *type = text_of(import, from->sample_type[i]->type);
        for (int value = 0; value < VALUE_COUNT; value++)
            if (strcmp(type, value_types[value]) == 0)
                import->columns[value] = (int)i;
        /* tcmalloc's, and older tools'. */
        if (strcmp(type, "objects") == 0)
            import->columns[VALUE_LIVE_OBJECTS] = (int)i;
        if (strcmp(type, "space") == 0)
            import->columns[VALUE_LIVE_BYTES] = (int)i;
    }
    for (int value = 0; value < VALUE_LIFE_NS; value++)
        has_any |= value % 2 == 1 && import->columns[value] >= 0;
    import->profile->has_blocks = import->columns[VALUE_LIVE_OBJECTS] >= 0;
    import->profile->has_allocated = import->columns[VALUE_ALLOCATED_BYTES] >= 0;
    import->profile->has_lives = import->columns[VALUE_LIFE_NS] >= 0;
    const char *type = from->n_sample_type == 0 ? "" : text_of(import, from->sample_type[0]->type);
    return has_any || profile_refuse(import->profile, "holds no bytes of memory but '%.40s'", type);
}

static void import_modules(struct import *import)
{
    struct profile *profile = import->profile;
    import->modules = grow(NULL, import->from->n_mapping, sizeof *import->modules);
    for (size_t i = 0; i < import->from->n_mapping; i++) {
        const Pprof__Mapping *mapping = import->from->mapping[i];
        import->modules[i] = profile_add_module(
            profile, (struct module){.start = mapping->memory_start,
                                     .end = mapping->memory_limit,
                                     .offset = mapping->file_offset,
                                     .path = name_of(import, mapping->filename),
                                     .build_id = name_of(import, mapping->build_id)});
    }
    if (profile->module_count > 1)
        profile->program =
            profile_name_of(profile, base_name(profile_text(profile, profile->modules[1].path)));
}

static void import_lines(struct import *import, const Pprof__Location *location, uint32_t to,
                         const struct numbered *functions)
{
    for (size_t i = 0; i < location->n_line; i++) {
        const Pprof__Line *line = location->line[i];
        int64_t place = place_of(functions, import->from->n_function, line->function_id);
        if (place < 0)
            continue;
        const Pprof__Function *function = import->from->function[place];
        bool has_number = line->line > 0 && line->line <= INT32_MAX;
        profile_add_line(import->profile, to,
                         (struct line){.function = name_of(import, function->name),
                                       .file = name_of(import, function->filename),
                                       .number = has_number ? (uint32_t)line->line : 0});
    }
}

static void import_locations(struct import *import)
{
    const Pprof__Profile *from = import->from;
    struct numbered *functions =
        number_list(from->n_function, (void *const *)from->function, offsetof(Pprof__Function, id));
    struct numbered *mappings =
        number_list(from->n_mapping, (void *const *)from->mapping, offsetof(Pprof__Mapping, id));
    import->locations = grow(NULL, from->n_location, sizeof *import->locations);
    for (size_t i = 0; i < from->n_location; i++) {
        const Pprof__Location *location = from->location[i];
        int64_t place = place_of(mappings, from->n_mapping, location->mapping_id);
        import->locations[i] = profile_add_location(import->profile, location->address,
                                                    place < 0 ? 0 : import->modules[place]);
        import_lines(import, location, import->locations[i], functions);
    }
    free(functions);
    free(mappings);
}

static bool import_values(struct import *import, const Pprof__Sample *sample, struct site *site)
{
    for (int value = 0; value < VALUE_COUNT; value++) {
        int column = import->columns[value];
        if (column < 0 || (size_t)column >= sample->n_value)
            continue;
        if (sample->value[column] < 0)
            return profile_refuse(import->profile, "has negative values: it is a difference");
        site->values[value] = (uint64_t)sample->value[column];
    }
    return true;
}

static bool import_sites(struct import *import)
{
    const Pprof__Profile *from = import->from;
    uint32_t stack[PROFILE_DEPTH_MOST];
    bool is_right = true;
    struct numbered *locations =
        number_list(from->n_location, (void *const *)from->location, offsetof(Pprof__Location, id));
    if (from->n_sample > PROFILE_SITES_MOST)
        is_right = profile_refuse(import->profile, "has too many sites");
    for (size_t i = 0; is_right && i < from->n_sample; i++) {
        const Pprof__Sample *sample = from->sample[i];
        uint32_t depth = 0;
        for (size_t frame = 0; frame < sample->n_location_id && depth < PROFILE_DEPTH_MOST;
             frame++) {
            int64_t place = place_of(locations, from->n_location, sample->location_id[frame]);
            if (place >= 0)
                stack[depth++] = import->locations[place];
        }
        is_right = import_values(import, sample, profile_add_site(import->profile, stack, depth));
    }
    free(locations);
    return is_right;
}

static bool import_profile(struct import *import)
{
    const Pprof__Profile *from = import->from;
    struct profile *profile = import->profile;
    import->names = grow(NULL, from->n_string_table, sizeof *import->names);
    for (size_t i = 0; i < from->n_string_table; i++)
        import->names[i] = profile_name_of(profile, from->string_table[i]);
    if (!import_types(import))
        return false;
    import_modules(import);
    import_locations(import);
    profile->taken_ns = from->time_nanos > 0 ? (uint64_t)from->time_nanos : 0;
    profile->duration_ns = from->duration_nanos > 0 ? (uint64_t)from->duration_nanos : 0;
    const char *period = from->period_type == NULL ? "" : text_of(import, from->period_type->type);
    if (from->period > 0 && strcmp(period, "space") == 0)
        profile->period_bytes = (uint64_t)from->period;
    return import_sites(import);
}

bool pprof_read(struct profile *profile, const void *bytes, size_t byte_count)
{
    static const unsigned char gzip[] = {0x1f, 0x8b};
    unsigned char *unpacked = NULL;
    if (byte_count > UNPACKED_BYTES_MOST)
        return profile_refuse(profile, "is too large");
    if (byte_count >= sizeof gzip && memcmp(bytes, gzip, sizeof gzip) == 0) {
        unpacked = unpack(profile, bytes, byte_count, &byte_count);
        if (unpacked == NULL)
            return false;
        bytes = unpacked;
    }
    Pprof__Profile *from = pprof__profile__unpack(NULL, byte_count, bytes);
    free(unpacked);
    /* Almost any few bytes are a message of fields that nobody knows. */
    if (from == NULL || from->n_string_table == 0 || from->n_sample_type == 0) {
        if (from != NULL)
            pprof__profile__free_unpacked(from, NULL);
        return profile_refuse(profile, "is no heap profile");
    }
    struct import import = {.profile = profile, .from = from};
    bool is_right = import_profile(&import);
    free(import.names);
    free(import.modules);
    free(import.locations);
    pprof__profile__free_unpacked(from, NULL);
    return is_right;
}
