/* SPDX-License-Identifier: MIT */
#include "base/utf8.h"
#include "profiles/formats.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool profile_read(struct profile *profile, const char *bytes, size_t byte_count)
{
    if (byte_count == 0)
        return profile_refuse(profile, "is empty");
    if (is_heap_v2(bytes, byte_count))
        return heap_v2_read(profile, bytes, byte_count);
    if (*bytes == '{')
        return json_read(profile, bytes, byte_count);
    if (is_folded(bytes, byte_count))
        return folded_read(profile, bytes, byte_count);
    return pprof_read(profile, bytes, byte_count);
}

void json_text(const char *text, FILE *to)
{
    fputc('"', to);
    while (*text != '\0') {
        size_t bytes = hak_utf8_bytes(text);
        if (bytes == 0)
            fputs("\\ufffd", to);
        else if (*text == '"' || *text == '\\')
            fprintf(to, "\\%c", *text);
        else if ((unsigned char)*text < ' ' || *text == '<' || *text == '&')
            fprintf(to, "\\u%04x", (unsigned)(unsigned char)*text);
        else
            fwrite(text, 1, bytes, to);
        text += bytes == 0 ? 1 : bytes;
    }
    fputc('"', to);
}

/* A stack as one line, outermost first. */
struct folded {
    char *stack;
    uint64_t value;
};

static char *fold(const struct profile *profile, const struct site *site, struct frame *frames)
{
    char *text = NULL;
    size_t bytes;
    uint32_t count = stack_frames(profile, site->stack, frames);
    FILE *to = open_memstream(&text, &bytes);
    if (to == NULL)
        return NULL;
    if (count == 0)
        fputs("(no stack)", to);
    while (count-- > 0) {
        for (const char *at = profile_text(profile, frames[count].function); *at != '\0'; at++)
            fputc(*at == ';' ? ',' : *at, to);
        if (count > 0)
            fputc(';', to);
    }
    fclose(to);
    return text;
}

static int compare_folded(const void *left, const void *right)
{
    return strcmp(((const struct folded *)left)->stack, ((const struct folded *)right)->stack);
}

void folded_write(const struct profile *profile, enum value value, FILE *to)
{
    static struct frame frames[FRAMES_MOST];
    struct folded *list = grow(NULL, profile->site_count, sizeof *list);
    uint32_t count = 0;
    for (uint32_t i = 0; i < profile->site_count; i++) {
        struct folded folded = {.value = profile->sites[i].values[value]};
        if (folded.value > 0)
            folded.stack = fold(profile, &profile->sites[i], frames);
        if (folded.stack != NULL)
            list[count++] = folded;
    }
    qsort(list, count, sizeof *list, compare_folded);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t sum = list[i].value;
        for (; i + 1 < count && compare_folded(&list[i], &list[i + 1]) == 0; i++) {
            sum = add_bounded(sum, list[i + 1].value);
            free(list[i].stack);
        }
        fprintf(to, "%s %" PRIu64 "\n", list[i].stack, sum);
        free(list[i].stack);
    }
    free(list);
}

static void write_frame(const struct profile *profile, const struct frame *frame, FILE *to)
{
    fputs("{\"function\":", to);
    json_text(profile_text(profile, frame->function), to);
    if (frame->file != 0) {
        fputs(",\"file\":", to);
        json_text(profile_text(profile, frame->file), to);
        fprintf(to, ",\"line\":%" PRIu32, frame->number);
    }
    fputs(",\"module\":", to);
    json_text(profile_text(profile, frame->module), to);
    fprintf(to, ",\"address\":\"0x%" PRIx64 "\"%s}", frame->address,
            frame->is_inlined ? ",\"inlined\":true" : "");
}

static void write_stack(const struct profile *profile, const char *name, struct stack stack,
                        FILE *to)
{
    static struct frame frames[FRAMES_MOST];
    fprintf(to, ",\"%s\":[", name);
    uint32_t count = stack_frames(profile, stack, frames);
    for (uint32_t i = 0; i < count; i++) {
        fputs(i > 0 ? "," : "", to);
        write_frame(profile, &frames[i], to);
    }
    fputc(']', to);
}

static void write_site(const struct profile *profile, const struct site *site, FILE *to)
{
    const uint64_t *values = site->values;
    fprintf(to, "{\"live_bytes\":%" PRIu64, values[VALUE_LIVE_BYTES]);
    if (profile->has_blocks)
        fprintf(to, ",\"live_objects\":%" PRIu64, values[VALUE_LIVE_OBJECTS]);
    if (profile->has_allocated)
        fprintf(to, ",\"allocated_bytes\":%" PRIu64 ",\"allocated_objects\":%" PRIu64,
                values[VALUE_ALLOCATED_BYTES], values[VALUE_ALLOCATED_OBJECTS]);
    if (profile->has_lives)
        fprintf(to, ",\"life_ns\":%" PRIu64, values[VALUE_LIFE_NS]);
    if (profile->has_ages)
        fprintf(to, ",\"samples\":%" PRIu64 ",\"oldest_ns\":%" PRIu64 ",\"grown_ns\":%" PRIu64,
                site->samples, site->oldest_ns, site->grown_ns);
    write_stack(profile, "stack", site->stack, to);
    if (site->freed_by.depth > 0)
        write_stack(profile, "freed_by", site->freed_by, to);
    fputc('}', to);
}

static void write_modules(const struct profile *profile, FILE *to)
{
    for (uint32_t i = 1; i < profile->module_count; i++) {
        fputs(i > 1 ? ",\n{\"path\":" : "\n{\"path\":", to);
        json_text(profile_text(profile, profile->modules[i].path), to);
        fputs(",\"build_id\":", to);
        json_text(profile_text(profile, profile->modules[i].build_id), to);
        fputc('}', to);
    }
}

void json_write(const struct profile *profile, FILE *to)
{
    fputs("{\"schema\":1,\"program\":", to);
    json_text(profile_text(profile, profile->program), to);
    fprintf(to,
            ",\"pid\":%" PRIu64 ",\"period_bytes\":%" PRIu64 ",\"taken_ns\":%" PRIu64
            ",\"duration_ns\":%" PRIu64 ",\"lost_sites\":%" PRIu64 ",\"lost_samples\":%" PRIu64
            ",\"unshown_sites\":%" PRIu64 ",\"lost_modules\":%" PRIu64 ",\"live_bytes\":%" PRIu64
            ",\"modules\":[",
            profile->pid, profile->period_bytes, profile->taken_ns, profile->duration_ns,
            profile->lost_sites, profile->lost_samples, profile->unshown_sites,
            profile->lost_modules, profile_sum(profile, VALUE_LIVE_BYTES));
    write_modules(profile, to);
    fputs("],\"sites\":[", to);
    for (uint32_t i = 0; i < profile->site_count; i++) {
        fputs(i > 0 ? ",\n" : "\n", to);
        write_site(profile, &profile->sites[i], to);
    }
    fputs("\n]}\n", to);
}
