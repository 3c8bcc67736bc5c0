/* SPDX-License-Identifier: MIT */
#include "profile/pprof.h"

#include "base/bits.h"
#include "base/text.h"
#include "conf/conf.h"
#include "heap/draw.h"
#include "os/copy_mark.h"
#include "os/os.h"
#include "os/output.h"
#include "os/unwind.h"
#include "profile/show.h"
#include "profile/sites.h"

#include <errno.h>
#include <string.h>

#define BUFFER_BYTES 8192u
/* The longest message inside another one: 32 locations and 5 values, of 10 bytes at most. */
#define MESSAGE_BYTES 512u
#define PATIENCE_MS 1000

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

enum { VALUES = 5 };

/* The location that an address got last. */
struct known {
    uint64_t address;
    uint64_t location;
};
#define KNOWN_MOST 2048u
static struct known known[KNOWN_MOST];
static unsigned char buffer[BUFFER_BYTES];

struct message {
    unsigned char bytes[MESSAGE_BYTES];
    size_t used;
};

struct writer {
    const struct pprof_target *to;
    int error;
    size_t used;
    uint64_t last_location;
    const struct profile_board *board; /* NULL: no modules are known */
    uint32_t module_count;
};

static void flush(struct writer *writer)
{
    const struct pprof_target *to = writer->to;
    const char *bytes = (const char *)buffer;
    if (writer->error == 0 && to->kept != NULL)
        writer->error = hak_os_output_write_kept(to->kept, bytes, writer->used);
    else if (writer->error == 0)
        writer->error = hak_os_output_write(to->fd, bytes, writer->used);
    writer->used = 0;
}

static void write_bytes(struct writer *writer, const void *bytes, size_t count)
{
    if (BUFFER_BYTES - writer->used < count)
        flush(writer);
    memcpy(buffer + writer->used, bytes, count);
    writer->used += count;
}

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
static void write_field(struct writer *writer, uint32_t field, const void *bytes, size_t count)
{
    struct message head = {.used = 0};
    add_varint(&head, field << 3 | 2);
    add_varint(&head, count);
    write_bytes(writer, head.bytes, head.used);
    write_bytes(writer, bytes, count);
}

static void write_number(struct writer *writer, uint32_t field, uint64_t value)
{
    struct message message = {.used = 0};
    add_number(&message, field, value & INT64_MAX);
    write_bytes(writer, message.bytes, message.used);
}

static void write_type(struct writer *writer, uint32_t field, enum string type, enum string unit)
{
    struct message message = {.used = 0};
    add_number(&message, VALUE_TYPE_TYPE, type);
    add_number(&message, VALUE_TYPE_UNIT, unit);
    write_field(writer, field, message.bytes, message.used);
}

static void write_types(struct writer *writer)
{
    write_type(writer, PROFILE_SAMPLE_TYPE, STRING_ALLOC_OBJECTS, STRING_COUNT);
    write_type(writer, PROFILE_SAMPLE_TYPE, STRING_ALLOC_SPACE, STRING_BYTES);
    write_type(writer, PROFILE_SAMPLE_TYPE, STRING_INUSE_OBJECTS, STRING_COUNT);
    write_type(writer, PROFILE_SAMPLE_TYPE, STRING_INUSE_SPACE, STRING_BYTES);
    write_type(writer, PROFILE_SAMPLE_TYPE, STRING_LIFETIME, STRING_NANOSECONDS);
    write_type(writer, PROFILE_PERIOD_TYPE, STRING_SPACE, STRING_BYTES);
    write_number(writer, PROFILE_DEFAULT_SAMPLE_TYPE, STRING_INUSE_SPACE);
}

static void write_times(struct writer *writer)
{
    uint64_t mean_bytes = hak_load_relaxed(&hak_draw_mean_bytes);
    uint64_t since_ms = hak_load_relaxed(&hak_draw_start_ms);
    if (mean_bytes == 0)
        mean_bytes = (uint64_t)hak_conf_number(heap_profile_rate);
    write_number(writer, PROFILE_PERIOD, mean_bytes);
    write_number(writer, PROFILE_TIME_NANOS, hak_os_unix_ms() * 1000000);
    if (since_ms != 0)
        write_number(writer, PROFILE_DURATION_NANOS,
                     hak_excess(hak_os_clock_ms(), since_ms) * 1000000);
}

/* NULL: it is not ready. */
static const struct board_module *module_at(const struct writer *writer, uint32_t index)
{
    const struct board_module *module = &writer->board->modules[index];
    /* acquire: partner is the release in modules.c */
    return hak_load_acquire(&module->state) == BOARD_READY ? module : NULL;
}

static void write_strings(struct writer *writer)
{
    static const char *const texts[] = {
#define X(name, text) text,
        STRING_TABLE(X)
#undef X
    };
    for (uint32_t i = 0; i < STRING_MODULES; i++)
        write_field(writer, PROFILE_STRING_TABLE, texts[i], strlen(texts[i]));
    for (uint32_t i = 0; i < writer->module_count; i++) {
        char digits[2 * HAK_BOARD_BUILD_ID_BYTES];
        size_t used = 0;
        const struct board_module *module = module_at(writer, i);
        size_t id_bytes = module == NULL ? 0 : module->build_id_bytes;
        const char *path = module == NULL ? "" : module->path;
        for (size_t at = 0; at < id_bytes && at < HAK_BOARD_BUILD_ID_BYTES; at++) {
            digits[used++] = "0123456789abcdef"[module->build_id[at] >> 4];
            digits[used++] = "0123456789abcdef"[module->build_id[at] & 15];
        }
        write_field(writer, PROFILE_STRING_TABLE, path, strlen(path));
        write_field(writer, PROFILE_STRING_TABLE, digits, used);
    }
}

static void write_mapping(struct writer *writer, uint32_t index)
{
    struct message message = {.used = 0};
    const struct board_module *module = module_at(writer, index);
    add_number(&message, MAPPING_ID, index + 1u);
    if (module != NULL) {
        add_number(&message, MAPPING_START, module->start);
        add_number(&message, MAPPING_LIMIT, module->end);
        add_number(&message, MAPPING_OFFSET, module->file_offset);
        add_number(&message, MAPPING_FILENAME, STRING_MODULES + 2u * index);
        add_number(&message, MAPPING_BUILD_ID, STRING_MODULES + 2u * index + 1u);
    }
    write_field(writer, PROFILE_MAPPING, message.bytes, message.used);
}

/* The module of the program itself, which readers expect first; module_count: it is not there. */
static uint32_t find_program(const struct writer *writer)
{
    char program[HAK_BOARD_PATH_BYTES];
    hak_os_program_path(program, sizeof program);
    for (uint32_t i = 0; i < writer->module_count; i++) {
        const struct board_module *module = module_at(writer, i);
        if (module != NULL && strcmp(module->path, program) == 0)
            return i;
    }
    return writer->module_count;
}

static void write_mappings(struct writer *writer)
{
    uint32_t program = find_program(writer);
    if (program < writer->module_count)
        write_mapping(writer, program);
    for (uint32_t i = 0; i < writer->module_count; i++)
        if (i != program)
            write_mapping(writer, i);
}

/* The number of the mapping; of modules at one place the later one counts. 0: none is known. */
static uint32_t mapping_of(const struct writer *writer, uint64_t address)
{
    for (uint32_t i = writer->module_count; i > 0; i--) {
        const struct board_module *module = module_at(writer, i - 1);
        if (module != NULL && address >= module->start && address < module->end)
            return i;
    }
    return 0;
}

static uint64_t location_of(struct writer *writer, uint64_t address)
{
    struct known *slot = &known[hak_bit_mix(address) % KNOWN_MOST];
    struct message message = {.used = 0};
    if (slot->location != 0 && slot->address == address)
        return slot->location;
    *slot = (struct known){.address = address, .location = ++writer->last_location};
    add_number(&message, LOCATION_ID, slot->location);
    add_number(&message, LOCATION_MAPPING_ID, mapping_of(writer, address));
    add_number(&message, LOCATION_ADDRESS, address);
    write_field(writer, PROFILE_LOCATION, message.bytes, message.used);
    return slot->location;
}

static void write_site(struct writer *writer, const struct board_site *site)
{
    uint64_t locations[HAK_BOARD_FRAMES], values[VALUES];
    struct message message = {.used = 0};
    size_t depth = hak_least(site->frame_count, HAK_BOARD_FRAMES);
    /* What was freed before what was allocated: the difference is never negative by that. */
    uint64_t freed_count = hak_load_relaxed(&site->freed_count);
    uint64_t freed_bytes = hak_load_relaxed(&site->freed_bytes);
    values[0] = hak_load_relaxed(&site->allocated_count);
    values[1] = hak_load_relaxed(&site->allocated_bytes);
    values[2] = hak_excess(values[0], freed_count);
    values[3] = hak_excess(values[1], freed_bytes);
    values[4] = hak_least(hak_load_relaxed(&site->life_us), INT64_MAX / 1000) * 1000;
    if (values[0] == 0)
        return;
    for (size_t i = 0; i < depth; i++) /* an instruction of the call, and not the one behind it */
        locations[i] = location_of(writer, site->frames[i] - 1);
    add_numbers(&message, SAMPLE_LOCATION_ID, locations, depth);
    add_numbers(&message, SAMPLE_VALUE, values, VALUES);
    write_field(writer, PROFILE_SAMPLE, message.bytes, message.used);
}

static int write_profile(struct writer *writer)
{
    memset(known, 0, sizeof known);
    writer->board = hak_show_board();
    if (writer->board != NULL)
        writer->module_count = (uint32_t)hak_least(
            hak_load_relaxed(&writer->board->head.module_count), HAK_BOARD_MODULES);
    write_strings(writer);
    write_types(writer);
    write_times(writer);
    write_mappings(writer);
    for (uint32_t i = 0, count = hak_sites_count(); i < count; i++) {
        const struct board_site *site = hak_sites_at(i);
        if (site != NULL)
            write_site(writer, site);
    }
    flush(writer);
    return writer->error;
}

/* False: somebody else has the buffer for too long. */
static bool await_buffer(void)
{
    uint32_t expected = 0;
    uint64_t deadline_ms = hak_os_clock_ms() + PATIENCE_MS;
    /* acquire: partner is the release in hak_pprof_write; the buffer is then the caller's */
    while (!hak_cas_acquire(&hak_copy_mark->is_writing_pprof, &expected, 1)) {
        if (hak_os_clock_ms() > deadline_ms)
            return false;
        expected = 0;
        hak_os_yield();
    }
    return true;
}

int hak_pprof_write(const struct pprof_target *to)
{
    struct writer writer = {.to = to};
    if (!await_buffer())
        return EBUSY;
    int error = write_profile(&writer);
    /* release: partner is the acquire in await_buffer */
    hak_store_release(&hak_copy_mark->is_writing_pprof, 0);
    return error;
}

bool hak_pprof_has_any(void)
{
    for (uint32_t i = 0, count = hak_sites_count(); i < count; i++)
        if (hak_sites_at(i) != NULL && hak_load_relaxed(&hak_sites_at(i)->samples) != 0)
            return true;
    return false;
}
