/* SPDX-License-Identifier: MIT */
#include "profile/writer.h"

#include "base/bits.h"
#include "conf/conf.h"
#include "heap/draw.h"
#include "os/os.h"
#include "os/output.h"
#include "profile/modules.h"
#include "profile/sites.h"

#include <string.h>

#define BUFFER_BYTES 8192u

static unsigned char buffer[BUFFER_BYTES];

struct profile_writer hak_profile_writer(const struct profile_target *to)
{
    return (struct profile_writer){.to = to, .module_count = hak_modules_count()};
}

int hak_profile_writer_end(struct profile_writer *writer)
{
    const struct profile_target *to = writer->to;
    const char *bytes = (const char *)buffer;
    if (writer->error == 0 && to->kept != NULL)
        writer->error = hak_os_output_write_kept(to->kept, bytes, writer->used);
    else if (writer->error == 0)
        writer->error = hak_os_output_write(to->fd, bytes, writer->used);
    writer->used = 0;
    return writer->error;
}

void hak_profile_writer_add(struct profile_writer *writer, const void *bytes, size_t count)
{
    if (BUFFER_BYTES - writer->used < count)
        hak_profile_writer_end(writer);
    memcpy(buffer + writer->used, bytes, count);
    writer->used += count;
}

/* Of modules at one place the later one counts. */
size_t hak_profile_writer_build_id(const struct board_module *module,
                                   char digits[HAK_BUILD_ID_DIGITS])
{
    size_t bytes = hak_least(module->build_id_bytes, HAK_BOARD_BUILD_ID_BYTES);
    for (size_t at = 0; at < bytes; at++) {
        digits[2 * at] = "0123456789abcdef"[module->build_id[at] >> 4];
        digits[2 * at + 1] = "0123456789abcdef"[module->build_id[at] & 15];
    }
    return 2 * bytes;
}

uint32_t hak_profile_writer_module_of(const struct profile_writer *writer, uint64_t address)
{
    for (uint32_t i = writer->module_count; i > 0; i--) {
        const struct board_module *module = hak_modules_at(i - 1);
        if (address >= module->start && address < module->end)
            return i;
    }
    return 0;
}

void hak_profile_writer_sites(struct profile_writer *writer,
                              void (*visit)(struct profile_writer *writer,
                                            const struct board_site *site,
                                            const uint64_t values[PROFILE_VALUES]))
{
    for (uint32_t i = 0, count = hak_sites_count(); i < count; i++) {
        const struct board_site *site = hak_sites_at(i);
        uint64_t values[PROFILE_VALUES];
        if (site == NULL)
            continue;
        /* What was freed before what was allocated: the difference is never negative by that. */
        uint64_t freed_count = hak_load_relaxed(&site->freed_count);
        uint64_t freed_bytes = hak_load_relaxed(&site->freed_bytes);
        values[PROFILE_ALLOCATED_COUNT] = hak_load_relaxed(&site->allocated_count);
        values[PROFILE_ALLOCATED_BYTES] = hak_load_relaxed(&site->allocated_bytes);
        values[PROFILE_LIVE_COUNT] = hak_excess(values[PROFILE_ALLOCATED_COUNT], freed_count);
        values[PROFILE_LIVE_BYTES] = hak_excess(values[PROFILE_ALLOCATED_BYTES], freed_bytes);
        values[PROFILE_LIFE_NS] =
            hak_least(hak_load_relaxed(&site->life_us), INT64_MAX / 1000) * 1000;
        if (values[PROFILE_ALLOCATED_COUNT] != 0)
            visit(writer, site, values);
    }
}

struct profile_times hak_profile_times(void)
{
    struct profile_times times = {.mean_bytes = hak_load_relaxed(&hak_draw_profile_mean_bytes),
                                  .taken_ns = hak_os_unix_ms() * 1000000};
    uint64_t since_ms = hak_load_relaxed(&hak_draw_start_ms);
    if (times.mean_bytes == 0)
        times.mean_bytes = (uint64_t)hak_conf_number(heap_profile_rate);
    if (since_ms != 0)
        times.duration_ns = hak_excess(hak_os_clock_ms(), since_ms) * 1000000;
    return times;
}
