/* SPDX-License-Identifier: MIT */
#include "profiles/formats.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* flame.html, as it stands in the tree. */
extern const char flame_page[], flame_page_end[];
__asm__(".pushsection .rodata\n"
        ".globl flame_page, flame_page_end\n"
        "flame_page: .incbin \"" FLAME_PAGE "\"\n"
        "flame_page_end: .byte 0\n"
        ".popsection");

#define MARK "@PROFILE@"

static void write_names(const struct profile *profile, FILE *to)
{
    fputs(",\"names\":[", to);
    for (name_id name = 0; name < profile->name_count; name++) {
        fputs(name > 0 ? "," : "", to);
        json_text(profile_text(profile, name), to);
    }
    fputs("]", to);
}

/* A frame for each line of each location: [function, file, line, module]. */
static void write_frames(const struct profile *profile, FILE *to)
{
    uint32_t place = 0;
    fputs(",\n\"frames\":[", to);
    for (uint32_t i = 0; i < profile->location_count; i++) {
        const struct location *at = &profile->locations[i];
        for (uint32_t line = 0; line < at->line_count; line++, place++) {
            const struct line *from = &profile->lines[at->first_line + line];
            fprintf(to, "%s[%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 "]", place > 0 ? "," : "",
                    from->function, from->file, from->number, profile->modules[at->module].path);
        }
    }
    fputs("]", to);
}

static void write_site(const struct profile *profile, const struct site *site,
                       const uint32_t *first_places, FILE *to)
{
    static struct frame frames[FRAMES_MOST];
    uint32_t count = stack_frames(profile, site->stack, frames), written = 0;
    const uint64_t *values = site->values;
    fprintf(to, "[[%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "],[",
            values[VALUE_LIVE_BYTES], values[VALUE_LIVE_OBJECTS], values[VALUE_ALLOCATED_BYTES],
            values[VALUE_ALLOCATED_OBJECTS], values[VALUE_LIFE_NS]);
    for (uint32_t i = 0; i < site->stack.depth; i++) {
        uint32_t location = profile->frames[site->stack.first_frame + i];
        for (uint32_t line = 0; line < profile->locations[location].line_count; line++)
            if (written < count)
                fprintf(to, "%s%" PRIu32, written++ > 0 ? "," : "", first_places[location] + line);
    }
    fprintf(to, "],%" PRIu32 "]", count == 0 ? 0 : site_origin(profile, frames, count));
}

static void write_profile(const struct profile *profile, FILE *to)
{
    uint32_t *first_places = grow(NULL, profile->location_count, sizeof *first_places);
    uint32_t place = 0;
    for (uint32_t i = 0; i < profile->location_count; i++) {
        first_places[i] = place;
        place += profile->locations[i].line_count;
    }
    fputs("{\"program\":", to);
    json_text(profile_text(profile, profile->program), to);
    fprintf(to,
            ",\"pid\":%" PRIu64 ",\"period\":%" PRIu64 ",\"isLeastPeriod\":%s,\"duration\":%" PRIu64
            ",\"hasBlocks\":%s,\"hasAllocated\":%s,\"hasLives\":%s",
            profile->pid, profile->period_bytes, profile->is_least_period ? "true" : "false",
            profile->duration_ns, profile->has_blocks ? "true" : "false",
            profile->has_allocated ? "true" : "false", profile->has_lives ? "true" : "false");
    write_names(profile, to);
    write_frames(profile, to);
    fputs(",\n\"sites\":[", to);
    for (uint32_t i = 0; i < profile->site_count; i++) {
        fputs(i > 0 ? ",\n" : "\n", to);
        write_site(profile, &profile->sites[i], first_places, to);
    }
    fputs("]}", to);
    free(first_places);
}

void flame_write(const struct profile *profile, FILE *to)
{
    const char *mark = strstr(flame_page, MARK);
    fwrite(flame_page, 1, (size_t)(mark - flame_page), to);
    write_profile(profile, to);
    fputs(mark + strlen(MARK), to);
}
