/* SPDX-License-Identifier: MIT */
#include "profile/pprof.h"

#include "base/bits.h"
#include "base/utf8.h"
#include "os/unwind.h"
#include "profile/modules.h"

#include <string.h>

/* The longest message inside another one: 32 locations and 5 values, of 10 bytes at most. */
#define MESSAGE_BYTES 512u

/* Numbers of the fields that are used. */
enum profile_field {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_MAPPING = 3,
    PROFILE_LOCATION = 4,
    PROFILE_STRING_TABLE = 6,
    PROFILE_TIME_NANOS = 9,
    PROFILE_DURATION_NANOS = 10,
    PROFILE_PERIOD_TYPE = 11,
    PROFILE_PERIOD = 12,
    PROFILE_DEFAULT_SAMPLE_TYPE = 14,
};
enum value_type_field { VALUE_TYPE_TYPE = 1, VALUE_TYPE_UNIT = 2 };
enum sample_field { SAMPLE_LOCATION_ID = 1, SAMPLE_VALUE = 2 };
enum mapping_field {
    MAPPING_ID = 1,
    MAPPING_START = 2,
    MAPPING_LIMIT = 3,
    MAPPING_OFFSET = 4,
    MAPPING_FILENAME = 5,
    MAPPING_BUILD_ID = 6,
};
enum location_field { LOCATION_ID = 1, LOCATION_MAPPING_ID = 2, LOCATION_ADDRESS = 3 };

/* The first strings; behind them are two for each module. */
#define STRING_TABLE(X)                                                                            \
    X(EMPTY, "")                                                                                   \
    X(ALLOC_OBJECTS, "alloc_objects")                                                              \
    X(COUNT, "count")                                                                              \
    X(ALLOC_SPACE, "alloc_space")                                                                  \
    X(BYTES, "bytes")                                                                              \
    X(INUSE_OBJECTS, "inuse_objects")                                                              \
    X(INUSE_SPACE, "inuse_space")                                                                  \
    X(LIFETIME, "lifetime")                                                                        \
    X(NANOSECONDS, "nanoseconds")                                                                  \
    X(SPACE, "space")
enum string {
#define X(name, text) STRING_##name,
    STRING_TABLE(X)
#undef X
        STRING_MODULES
};

/* The location that an address got last. */
struct known {
    uint64_t address;
    uint64_t location;
};
#define KNOWN_MOST 2048u
static struct known known[KNOWN_MOST];
static uint64_t last_location;

struct message {
    unsigned char bytes[MESSAGE_BYTES];
    size_t used;
};

static size_t varint(unsigned char to[10], uint64_t value)
{
    size_t used = 0;
    for (; value >= 0x80; value >>= 7)
        to[used++] = (unsigned char)(value | 0x80);
    to[used++] = (unsigned char)value;
    return used;
}

static void add_varint(struct message *message, uint64_t value)
{
    message->used += varint(message->bytes + message->used, value);
}

static void add_number(struct message *message, uint32_t field, uint64_t value)
{
    add_varint(message, field << 3);
    add_varint(message, value);
}

static void add_numbers(struct message *message, uint32_t field, const uint64_t *values,
                        size_t count)
{
    unsigned char scratch[10];
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += varint(scratch, values[i]);
    add_varint(message, field << 3 | 2);
    add_varint(message, bytes);
    for (size_t i = 0; i < count; i++)
        add_varint(message, values[i]);
}

/* A message or a text as a field of the whole. */
static void write_field(struct profile_writer *writer, uint32_t field, const void *bytes,
                        size_t count)
{
    struct message head = {.used = 0};
    add_varint(&head, field << 3 | 2);
    add_varint(&head, count);
    hak_profile_writer_add(writer, head.bytes, head.used);
    hak_profile_writer_add(writer, bytes, count);
}

static void write_number(struct profile_writer *writer, uint32_t field, uint64_t value)
{
    struct message message = {.used = 0};
    add_number(&message, field, value & INT64_MAX);
    hak_profile_writer_add(writer, message.bytes, message.used);
}

static void write_type(struct profile_writer *writer, uint32_t field, enum string type,
                       enum string unit)
{
    struct message message = {.used = 0};
    add_number(&message, VALUE_TYPE_TYPE, type);
    add_number(&message, VALUE_TYPE_UNIT, unit);
    write_field(writer, field, message.bytes, message.used);
}

static void write_types(struct profile_writer *writer)
{
    write_type(writer, PROFILE_SAMPLE_TYPE, STRING_ALLOC_OBJECTS, STRING_COUNT);
    write_type(writer, PROFILE_SAMPLE_TYPE, STRING_ALLOC_SPACE, STRING_BYTES);
    write_type(writer, PROFILE_SAMPLE_TYPE, STRING_INUSE_OBJECTS, STRING_COUNT);
    write_type(writer, PROFILE_SAMPLE_TYPE, STRING_INUSE_SPACE, STRING_BYTES);
    write_type(writer, PROFILE_SAMPLE_TYPE, STRING_LIFETIME, STRING_NANOSECONDS);
    write_type(writer, PROFILE_PERIOD_TYPE, STRING_SPACE, STRING_BYTES);
    write_number(writer, PROFILE_DEFAULT_SAMPLE_TYPE, STRING_INUSE_SPACE);
}

static void write_times(struct profile_writer *writer)
{
    struct profile_times times = hak_profile_times();
    write_number(writer, PROFILE_PERIOD, times.mean_bytes);
    write_number(writer, PROFILE_TIME_NANOS, times.taken_ns);
    if (times.duration_ns != 0)
        write_number(writer, PROFILE_DURATION_NANOS, times.duration_ns);
}

/* A file name may be any bytes; readers refuse a string that is no UTF-8, and the rest with it. */
static void write_path(struct profile_writer *writer, const char *path)
{
    char string[HAK_BOARD_PATH_BYTES];
    memcpy(string, path, strlen(path) + 1);
    hak_utf8_mend(string);
    write_field(writer, PROFILE_STRING_TABLE, string, strlen(string));
}

static void write_strings(struct profile_writer *writer)
{
    static const char *const texts[] = {
#define X(name, text) text,
        STRING_TABLE(X)
#undef X
    };
    for (uint32_t i = 0; i < STRING_MODULES; i++)
        write_field(writer, PROFILE_STRING_TABLE, texts[i], strlen(texts[i]));
    for (uint32_t i = 0; i < writer->module_count; i++) {
        char digits[HAK_BUILD_ID_DIGITS];
        const struct board_module *module = hak_modules_at(i);
        size_t count = hak_profile_writer_build_id(module, digits);
        write_path(writer, module->path);
        write_field(writer, PROFILE_STRING_TABLE, digits, count);
    }
}

static void write_mapping(struct profile_writer *writer, uint32_t index)
{
    struct message message = {.used = 0};
    const struct board_module *module = hak_modules_at(index);
    add_number(&message, MAPPING_ID, index + 1u);
    add_number(&message, MAPPING_START, module->start);
    add_number(&message, MAPPING_LIMIT, module->end);
    add_number(&message, MAPPING_OFFSET, module->file_offset);
    add_number(&message, MAPPING_FILENAME, STRING_MODULES + 2u * index);
    add_number(&message, MAPPING_BUILD_ID, STRING_MODULES + 2u * index + 1u);
    write_field(writer, PROFILE_MAPPING, message.bytes, message.used);
}

/* The module of the program itself, which readers expect first; module_count: it is not there. */
static uint32_t find_program(const struct profile_writer *writer)
{
    char program[HAK_BOARD_PATH_BYTES];
    hak_os_program_path(program, sizeof program);
    for (uint32_t i = 0; i < writer->module_count; i++)
        if (strcmp(hak_modules_at(i)->path, program) == 0)
            return i;
    return writer->module_count;
}

static void write_mappings(struct profile_writer *writer)
{
    uint32_t program = find_program(writer);
    if (program < writer->module_count)
        write_mapping(writer, program);
    for (uint32_t i = 0; i < writer->module_count; i++)
        if (i != program)
            write_mapping(writer, i);
}

static uint64_t location_of(struct profile_writer *writer, uint64_t address)
{
    struct known *slot = &known[hak_bit_mix(address) % KNOWN_MOST];
    struct message message = {.used = 0};
    if (slot->location != 0 && slot->address == address)
        return slot->location;
    *slot = (struct known){.address = address, .location = ++last_location};
    add_number(&message, LOCATION_ID, slot->location);
    add_number(&message, LOCATION_MAPPING_ID, hak_profile_writer_module_of(writer, address));
    add_number(&message, LOCATION_ADDRESS, address);
    write_field(writer, PROFILE_LOCATION, message.bytes, message.used);
    return slot->location;
}

static void write_site(struct profile_writer *writer, const struct board_site *site,
                       const uint64_t values[PROFILE_VALUES])
{
    uint64_t locations[HAK_BOARD_FRAMES];
    struct message message = {.used = 0};
    size_t depth = hak_least(site->frame_count, HAK_BOARD_FRAMES);
    for (size_t i = 0; i < depth; i++) /* an instruction of the call, and not the one behind it */
        locations[i] = location_of(writer, site->frames[i] - 1);
    add_numbers(&message, SAMPLE_LOCATION_ID, locations, depth);
    add_numbers(&message, SAMPLE_VALUE, values, PROFILE_VALUES);
    write_field(writer, PROFILE_SAMPLE, message.bytes, message.used);
}

void hak_pprof_write(struct profile_writer *writer)
{
    memset(known, 0, sizeof known);
    last_location = 0;
    write_strings(writer);
    write_types(writer);
    write_times(writer);
    write_mappings(writer);
    hak_profile_writer_sites(writer, write_site);
}
