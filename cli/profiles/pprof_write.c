/* SPDX-License-Identifier: MIT */
#include "base/utf8.h"
#include "profile.pb-c.h"
#include "profiles/formats.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static char *const type_names[VALUE_COUNT] = {"alloc_objects", "alloc_space", "inuse_objects",
                                              "inuse_space", "lifetime"};
static char *const unit_names[VALUE_COUNT] = {"count", "bytes", "count", "bytes", "nanoseconds"};

/* The messages, each kind in one block, and what they share: the strings are the names of the
 * profile, then those of the types. */
struct export
{
    const struct profile *profile;
    char *text; /* the profile's, as UTF-8: readers refuse other strings, and the rest with them */
    Pprof__Profile to;
    Pprof__ValueType types[VALUE_COUNT + 1];
    Pprof__Mapping *mappings;
    Pprof__Function *functions;
    Pprof__Location *locations;
    Pprof__Line *lines, **line_list;
    Pprof__Sample *samples;
    uint64_t *frames;
    int64_t *values;
    uint32_t *function_slots; /* by name and file: the number of the function, or 0 */
    uint32_t slot_count;
};

/* A block of `count` elements, and the pointers to each, which protobuf-c asks for. */
#define MAKE(export, field, list, elements)                                                        \
    do {                                                                                           \
        (export)->field = grow(NULL, (elements), sizeof *(export)->field);                         \
        (export)->to.list = grow(NULL, (elements), sizeof(void *));                                \
        for (size_t make_at = 0; make_at < (elements); make_at++)                                  \
            (export)->to.list[make_at] = &(export)->field[make_at];                                \
    } while (0)

static int64_t add_string(struct export *export, const char *text)
{
    export->to.string_table[export->to.n_string_table] = (char *)(uintptr_t)text;
    return (int64_t)export->to.n_string_table++;
}

static void export_names(struct export *export)
{
    const struct profile *profile = export->profile;
    export->to.string_table = grow(NULL, profile->name_count + 16u, sizeof(char *));
    export->text = grow(NULL, profile->text_bytes, 1);
    memcpy(export->text, profile->text, profile->text_bytes);
    for (name_id name = 0; name < profile->name_count; name++) {
        char *text = export->text + profile->name_starts[name];
        hak_utf8_mend(text);
        add_string(export, text);
    }
}

static void export_types(struct export *export)
{
    export->to.sample_type = grow(NULL, VALUE_COUNT, sizeof *export->to.sample_type);
    for (int value = 0; value < VALUE_COUNT; value++) {
        Pprof__ValueType *type = &export->types[value];
        pprof__value_type__init(type);
        type->type = add_string(export, type_names[value]);
        type->unit = add_string(export, unit_names[value]);
        export->to.sample_type[value] = type;
    }
    export->to.n_sample_type = VALUE_COUNT;
    export->to.default_sample_type = export->types[VALUE_LIVE_BYTES].type;
    export->to.period_type = &export->types[VALUE_COUNT];
    pprof__value_type__init(export->to.period_type);
    export->to.period_type->type = add_string(export, "space");
    export->to.period_type->unit = export->types[VALUE_LIVE_BYTES].unit;
}

static void export_mappings(struct export *export)
{
    const struct profile *profile = export->profile;
    size_t count = profile->module_count - 1;
    MAKE(export, mappings, mapping, count);
    for (size_t i = 0; i < count; i++) {
        const struct module *module = &profile->modules[i + 1];
        Pprof__Mapping *to = &export->mappings[i];
        pprof__mapping__init(to);
        to->id = i + 1;
        to->memory_start = module->start;
        to->memory_limit = module->end;
        to->file_offset = module->offset;
        to->filename = module->path;
        to->build_id = module->build_id;
        /* So that readers ask for no symbols of their own. */
        to->has_functions = to->has_filenames = to->has_line_numbers = true;
        to->has_inline_frames = true;
    }
    export->to.n_mapping = count;
}

/* The number of the function of a line; a new one is made at its first line. */
static uint64_t function_of(struct export *export, const struct line *line)
{
    uint64_t hash = (line->function * UINT64_C(0x9e3779b97f4a7c15)) ^
                    (line->file * UINT64_C(0xc2b2ae3d27d4eb4f));
    for (uint32_t at = (uint32_t)(hash >> 32);; at++) {
        uint32_t *slot = &export->function_slots[at & (export->slot_count - 1)];
        Pprof__Function *function = &export->functions[*slot == 0 ? 0 : *slot - 1];
        if (*slot == 0) {
            function = &export->functions[export->to.n_function];
            pprof__function__init(function);
            *slot = (uint32_t)++export->to.n_function;
            function->id = *slot;
            function->name = function->system_name = line->function;
            function->filename = line->file;
            return *slot;
        }
        if (function->name == line->function && function->filename == line->file)
            return *slot;
    }
}

static void export_locations(struct export *export)
{
    const struct profile *profile = export->profile;
    export->slot_count = 64;
    while (export->slot_count < profile->line_count * 2)
        export->slot_count *= 2;
    export->function_slots = grow(NULL, export->slot_count, sizeof *export->function_slots);
    memset(export->function_slots, 0, export->slot_count * sizeof *export->function_slots);
    MAKE(export, functions, function, profile->line_count);
    MAKE(export, locations, location, profile->location_count);
    export->lines = grow(NULL, profile->line_count, sizeof *export->lines);
    export->line_list = grow(NULL, profile->line_count, sizeof *export->line_list);
    for (uint32_t i = 0; i < profile->line_count; i++) {
        Pprof__Line *line = export->line_list[i] = &export->lines[i];
        pprof__line__init(line);
        line->function_id = function_of(export, &profile->lines[i]);
        line->line = profile->lines[i].number;
    }
    for (uint32_t i = 0; i < profile->location_count; i++) {
        Pprof__Location *to = &export->locations[i];
        pprof__location__init(to);
        to->id = i + 1;
        to->mapping_id = profile->locations[i].module;
        to->address = profile->locations[i].address;
        to->n_line = profile->locations[i].line_count;
        to->line = export->line_list + (to->n_line == 0 ? 0 : profile->locations[i].first_line);
    }
    export->to.n_location = profile->location_count;
}

static void export_samples(struct export *export)
{
    const struct profile *profile = export->profile;
    MAKE(export, samples, sample, profile->site_count);
    export->frames = grow(NULL, profile->frame_count, sizeof *export->frames);
    export->values = grow(NULL, (size_t)profile->site_count * VALUE_COUNT, sizeof(int64_t));
    for (uint32_t i = 0; i < profile->frame_count; i++)
        export->frames[i] = profile->frames[i] + 1;
    for (uint32_t i = 0; i < profile->site_count; i++) {
        const struct site *site = &profile->sites[i];
        Pprof__Sample *to = &export->samples[i];
        pprof__sample__init(to);
        to->location_id = export->frames + site->stack.first_frame;
        to->n_location_id = site->stack.depth;
        to->value = export->values + (size_t)i * VALUE_COUNT;
        to->n_value = VALUE_COUNT;
        for (int value = 0; value < VALUE_COUNT; value++)
            to->value[value] = (int64_t)(site->values[value] & INT64_MAX);
    }
    export->to.n_sample = profile->site_count;
}

static bool write_packed(struct profile *profile, const unsigned char *packed, size_t bytes,
                         FILE *to)
{
    z_stream stream = {.next_in = (void *)(uintptr_t)packed, .avail_in = (uInt)bytes};
    if (bytes > UINT32_MAX / 2 || deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED,
                                               MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return profile_refuse(profile, "cannot be compressed");
    size_t room = deflateBound(&stream, bytes);
    stream.next_out = grow(NULL, room, 1);
    stream.avail_out = (uInt)room;
    unsigned char *start = stream.next_out;
    bool is_done = deflate(&stream, Z_FINISH) == Z_STREAM_END;
    is_done = is_done && fwrite(start, 1, stream.total_out, to) == stream.total_out;
    deflateEnd(&stream);
    free(start);
    return is_done || profile_refuse(profile, "cannot be written");
}

static void release(struct export *export)
{
    free(export->text);
    free(export->to.sample_type);
    free(export->to.mapping);
    free(export->to.function);
    free(export->to.location);
    free(export->to.sample);
    free(export->to.string_table);
    free(export->mappings);
    free(export->functions);
    free(export->locations);
    free(export->lines);
    free(export->line_list);
    free(export->samples);
    free(export->frames);
    free(export->values);
    free(export->function_slots);
}

bool pprof_write(struct profile *profile, FILE *to)
{
    struct export export = {.profile = profile};
    pprof__profile__init(&export.to);
    export_names(&export);
    export_types(&export);
    export_mappings(&export);
    export_locations(&export);
    export_samples(&export);
    export.to.time_nanos = (int64_t)(profile->taken_ns & INT64_MAX);
    export.to.duration_nanos = (int64_t)(profile->duration_ns & INT64_MAX);
    export.to.period = (int64_t)(profile->period_bytes & INT64_MAX);
    size_t bytes = pprof__profile__get_packed_size(&export.to);
    unsigned char *packed = grow(NULL, bytes, 1);
    pprof__profile__pack(&export.to, packed);
    bool is_done = write_packed(profile, packed, bytes, to);
    free(packed);
    release(&export);
    return is_done;
}
