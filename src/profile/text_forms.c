/* SPDX-License-Identifier: MIT */
#include "profile/text_forms.h"

#include "base/bits.h"
#include "base/text.h"
#include "base/utf8.h"
#include "os/home.h"
#include "os/os.h"
#include "os/program.h"
#include "os/unwind.h"
#include "profile/modules.h"
#include "profile/show.h"
#include "profile/sites.h"

#include <string.h>

static void add(struct profile_writer *to, const char *piece)
{
    hak_profile_writer_add(to, piece, strlen(piece));
}

static void add_number(struct profile_writer *to, uint64_t number, uint32_t base)
{
    char digits[24];
    struct text text = {.start = digits, .bytes = sizeof digits};
    hak_text_add_number(&text, number, base);
    hak_profile_writer_add(to, digits, text.used);
}

static uint32_t depth_of(const struct board_site *site)
{
    return (uint32_t)hak_least(site->frame_count, HAK_BOARD_FRAMES);
}

/* The module with an instruction of the call that returns to `address`; NULL: none is known. */
static const struct board_module *module_of(const struct profile_writer *to, uint64_t address)
{
    uint32_t number = hak_profile_writer_module_of(to, address - 1);
    return number == 0 ? NULL : hak_modules_at(number - 1);
}

/* heap_v2: "  t*: 28: 106496 [30: 120000]", blocks and bytes that live, and that were allocated. */
static void add_counts(struct profile_writer *to, const uint64_t values[PROFILE_VALUES])
{
    add(to, "  t*: ");
    add_number(to, values[PROFILE_LIVE_COUNT], 10);
    add(to, ": ");
    add_number(to, values[PROFILE_LIVE_BYTES], 10);
    add(to, " [");
    add_number(to, values[PROFILE_ALLOCATED_COUNT], 10);
    add(to, ": ");
    add_number(to, values[PROFILE_ALLOCATED_BYTES], 10);
    add(to, "]\n");
}

static void add_site_v2(struct profile_writer *to, const struct board_site *site,
                        const uint64_t values[PROFILE_VALUES])
{
    add(to, "@");
    for (uint32_t i = 0; i < depth_of(site); i++) {
        add(to, " 0x");
        add_number(to, site->frames[i], 16);
    }
    add(to, "\n");
    add_counts(to, values);
}

static uint64_t sums[PROFILE_VALUES];

static void sum_site(struct profile_writer *to, const struct board_site *site,
                     const uint64_t values[PROFILE_VALUES])
{
    (void)to;
    (void)site;
    for (uint32_t i = 0; i < PROFILE_VALUES; i++)
        sums[i] += values[i];
}

static void sum_sites(struct profile_writer *to)
{
    memset(sums, 0, sizeof sums);
    hak_profile_writer_sites(to, sum_site);
}

/* As in /proc/PID/maps. */
static void add_mapping(struct profile_writer *to, const struct board_module *module)
{
    add_number(to, module->start, 16);
    add(to, "-");
    add_number(to, module->end, 16);
    add(to, " r-xp ");
    add_number(to, module->file_offset, 16);
    add(to, " 00:00 0 ");
    add(to, module->path);
    add(to, "\n");
}

void hak_heap_v2_write(struct profile_writer *writer)
{
    sum_sites(writer);
    add(writer, "heap_v2/1\n");
    add_counts(writer, sums);
    hak_profile_writer_sites(writer, add_site_v2);
    add(writer, "\nMAPPED_LIBRARIES:\n");
    for (uint32_t i = 0; i < writer->module_count; i++)
        add_mapping(writer, hak_modules_at(i));
}

/* FILE+0xOFFSET, or 0xADDRESS where no file is known. */
static void add_place(struct profile_writer *to, uint64_t address)
{
    const struct board_module *module = module_of(to, address);
    for (const char *at = module == NULL ? "" : module->path; *at != '\0'; at++) {
        char letter = (unsigned char)*at < ' ' ? '?' : *at;
        hak_profile_writer_add(to, letter == ';' ? "," : &letter, 1);
    }
    add(to, module == NULL ? "0x" : "+0x");
    add_number(to, address - 1 - (module == NULL ? 0 : module->bias), 16);
}

static void add_site_folded(struct profile_writer *to, const struct board_site *site,
                            const uint64_t values[PROFILE_VALUES])
{
    if (values[PROFILE_LIVE_BYTES] == 0)
        return;
    if (depth_of(site) == 0)
        add(to, "(no stack)");
    for (uint32_t i = depth_of(site); i > 0; i--) {
        add_place(to, site->frames[i - 1]);
        add(to, i > 1 ? ";" : "");
    }
    add(to, " ");
    add_number(to, values[PROFILE_LIVE_BYTES], 10);
    add(to, "\n");
}

void hak_folded_write(struct profile_writer *writer)
{
    hak_profile_writer_sites(writer, add_site_folded);
}

/* A string; bytes that are not UTF-8 become U+FFFD. */
static void add_string(struct profile_writer *to, const char *text)
{
    add(to, "\"");
    while (*text != '\0') {
        size_t bytes = hak_utf8_bytes(text);
        bool is_escaped = *text == '"' || *text == '\\';
        if (is_escaped)
            add(to, "\\");
        if (bytes == 0 || (unsigned char)*text < ' ')
            add(to, "\\ufffd");
        else
            hak_profile_writer_add(to, text, bytes);
        text += bytes == 0 ? 1 : bytes;
    }
    add(to, "\"");
}

/* ,"name":number */
static void add_field(struct profile_writer *to, const char *name, uint64_t number)
{
    add(to, ",\"");
    add(to, name);
    add(to, "\":");
    add_number(to, number, 10);
}

static void add_frame_json(struct profile_writer *to, uint64_t address)
{
    const struct board_module *module = module_of(to, address);
    add(to, "{\"module\":");
    add_string(to, module == NULL ? "" : module->path);
    add(to, ",\"address\":\"0x");
    add_number(to, address - 1, 16);
    if (module != NULL) {
        add(to, "\",\"offset\":\"0x");
        add_number(to, address - 1 - module->bias, 16);
    }
    add(to, "\"}");
}

static bool is_first_site;

static uint64_t age_ns(uint64_t now_ms, const _Atomic uint64_t *since_ms)
{
    uint64_t since = hak_load_relaxed(since_ms);
    return since == 0 ? 0 : hak_excess(now_ms, since) * 1000000;
}

static void add_stack_json(struct profile_writer *to, const char *name,
                           const struct board_site *site)
{
    add(to, ",\"");
    add(to, name);
    add(to, "\":[");
    for (uint32_t i = 0; i < depth_of(site); i++) {
        add(to, i > 0 ? "," : "");
        add_frame_json(to, site->frames[i]);
    }
    add(to, "]");
}

static void add_site_json(struct profile_writer *to, const struct board_site *site,
                          const uint64_t values[PROFILE_VALUES])
{
    uint64_t now_ms = hak_os_clock_ms();
    add(to, is_first_site ? "\n{\"live_bytes\":" : ",\n{\"live_bytes\":");
    is_first_site = false;
    add_number(to, values[PROFILE_LIVE_BYTES], 10);
    add_field(to, "live_objects", values[PROFILE_LIVE_COUNT]);
    add_field(to, "allocated_bytes", values[PROFILE_ALLOCATED_BYTES]);
    add_field(to, "allocated_objects", values[PROFILE_ALLOCATED_COUNT]);
    add_field(to, "life_ns", values[PROFILE_LIFE_NS]);
    add_field(to, "samples", hak_load_relaxed(&site->samples));
    add_field(to, "oldest_ns", age_ns(now_ms, &site->oldest_ms));
    add_field(to, "grown_ns", age_ns(now_ms, &site->last_ms));
    add_stack_json(to, "stack", site);
    const struct board_site *freeing = hak_sites_at((uint32_t)hak_load_relaxed(&site->freed_by));
    if (freeing != NULL && depth_of(freeing) > 0)
        add_stack_json(to, "freed_by", freeing);
    add(to, "}");
}

/* "modules":[{"path":"/usr/lib/libz.so.1","build_id":"5ad2..."}], which say of which file the
 * offsets are. */
static void add_modules_json(struct profile_writer *to)
{
    add(to, ",\"modules\":[");
    for (uint32_t i = 0; i < to->module_count; i++) {
        char digits[HAK_BUILD_ID_DIGITS];
        const struct board_module *module = hak_modules_at(i);
        add(to, i == 0 ? "\n{\"path\":" : ",\n{\"path\":");
        add_string(to, module->path);
        add(to, ",\"build_id\":\"");
        hak_profile_writer_add(to, digits, hak_profile_writer_build_id(module, digits));
        add(to, "\"}");
    }
    add(to, "]");
}

void hak_json_write(struct profile_writer *writer)
{
    struct profile_times times = hak_profile_times();
    hak_show_update_oldest();
    sum_sites(writer);
    add(writer, "{\"schema\":1,\"program\":");
    add_string(writer, hak_os_program_name());
    add_field(writer, "pid", hak_os_pid());
    add_field(writer, "period_bytes", times.mean_bytes);
    add_field(writer, "taken_ns", times.taken_ns);
    add_field(writer, "duration_ns", times.duration_ns);
    add_field(writer, "lost_sites", hak_load_relaxed(&hak_sites_dropped.sites_full));
    add_field(writer, "lost_samples", hak_load_relaxed(&hak_sites_dropped.untracked));
    add_field(writer, "lost_modules", hak_load_relaxed(&hak_sites_dropped.modules_full));
    add_field(writer, "live_bytes", sums[PROFILE_LIVE_BYTES]);
    add_modules_json(writer);
    add(writer, ",\"sites\":[");
    is_first_site = true;
    hak_profile_writer_sites(writer, add_site_json);
    add(writer, "\n]}\n");
}
