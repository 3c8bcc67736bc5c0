/* SPDX-License-Identifier: MIT */
/* tests/interleave/orders.c - where operations are in the source, and what becomes of the code if
 * one of their memory orders is weaker.
 */
#define _GNU_SOURCE
#include "machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SITES_MOST 1024u /* a power of two */
#define SOURCES_MOST 256u

enum { RELAXED, CONSUME, ACQUIRE, RELEASE, ACQ_REL, SEQ_CST };

/* A line of the source, which may be many instructions: an inline function's are copied. */
struct source {
    char function[80], file[160];
    unsigned line;
    enum operation operation;
    int order;
    int order_now;    /* it may be weakened */
    uint32_t ordinal; /* among its like in the function */
};

struct site {
    const void *pc; /* NULL: none */
    enum operation operation;
    int order;
    uint32_t source; /* + 1 */
};

static struct site sites[SITES_MOST];
static uint32_t site_count;
static struct source sources[SOURCES_MOST];
static uint32_t source_count;
static struct source found[SITES_MOST]; /* where sites are */
extern const char __ehdr_start;

int order_of(const void *pc, enum operation operation, int order)
{
    uint32_t at = (uint32_t)((uintptr_t)pc * 0x9e3779b97f4a7c15ull >> 40) + operation;
    for (at %= SITES_MOST; sites[at].pc != NULL; at = (at + 1) % SITES_MOST)
        if (sites[at].pc == pc && sites[at].operation == operation)
            return sites[at].source == 0 ? order : sources[sites[at].source - 1].order_now;
    if (++site_count == SITES_MOST)
        interleave_fail("the checker: too many atomic operations");
    sites[at] = (struct site){pc, operation, order, 0};
    return order;
}

static void copy_text(char *to, size_t bytes, const char *from, const char *end_at)
{
    snprintf(to, bytes, "%.*s", (int)strcspn(from, end_at), from);
}

/* The innermost function at each place that is not one of base/atomic.h. */
static void locate(const void *const *pcs, uint32_t count, struct source *at_pcs)
{
    char *command = NULL, line[600];
    size_t length = 0;
    FILE *out = open_memstream(&command, &length);
    fprintf(out, "addr2line -a -f -i -e /proc/%d/exe", (int)getpid());
    for (uint32_t i = 0; i < count; i++)
        fprintf(out, " %#lx", (unsigned long)((const char *)pcs[i] - &__ehdr_start) - 1);
    fclose(out);
    FILE *in = popen(command, "r");
    uint32_t at = UINT32_MAX;
    char function[80] = "";
    bool is_function = true;
    while (in != NULL && fgets(line, sizeof line, in) != NULL) {
        if (strncmp(line, "0x", 2) == 0) {
            at++;
            is_function = true;
            if (at < count)
                at_pcs[at].file[0] = '\0';
            continue;
        }
        if (is_function)
            copy_text(function, sizeof function, line, ".\n");
        is_function = !is_function;
        if (!is_function || at >= count || at_pcs[at].file[0] != '\0' ||
            strstr(line, "base/atomic.h") != NULL)
            continue;
        copy_text(at_pcs[at].function, sizeof at_pcs[at].function, function, "\n");
        copy_text(at_pcs[at].file, sizeof at_pcs[at].file, line, ":\n");
        const char *number = strchr(line, ':');
        at_pcs[at].line = number == NULL ? 0 : (unsigned)atoi(number + 1);
    }
    if (in != NULL)
        pclose(in);
    free(command);
}

void describe_pc(const void *pc, char *text, size_t bytes)
{
    struct source source = {.function = "?"};
    locate(&pc, 1, &source);
    const char *name = strrchr(source.file, '/');
    snprintf(text, bytes, "%s (%s:%u)", source.function, name == NULL ? source.file : name + 1,
             source.line);
}

/* The path in the sources: a compiler's cache may bring objects that were built elsewhere. */
static const char *inside(const char *path)
{
    const char *at = strstr(path, "/src/");
    return at == NULL ? path : at;
}

static bool is_same(const struct source *one, const struct source *other)
{
    return one->line == other->line && one->operation == other->operation &&
           one->order == other->order && strcmp(one->function, other->function) == 0 &&
           strcmp(inside(one->file), inside(other->file)) == 0;
}

static void add_source(struct site *site, const struct source *source)
{
    for (uint32_t i = 0; i < source_count; i++)
        if (is_same(&sources[i], source)) {
            site->source = i + 1;
            return;
        }
    if (source_count == SOURCES_MOST)
        abort();
    sources[source_count++] = *source;
    site->source = source_count;
}

/* Numbers those of a function that look alike, by their lines. */
static void number_sources(void)
{
    for (uint32_t i = 0; i < source_count; i++) {
        sources[i].ordinal = 1;
        for (uint32_t j = 0; j < source_count; j++)
            if (strcmp(sources[i].function, sources[j].function) == 0 &&
                sources[i].operation == sources[j].operation &&
                sources[i].order == sources[j].order && sources[j].line < sources[i].line)
                sources[i].ordinal++;
    }
}

static int compare_sites(const void *one, const void *other)
{
    const struct source *a = &found[*(const uint32_t *)one], *b = &found[*(const uint32_t *)other];
    int by_file = strcmp(inside(a->file), inside(b->file));
    return by_file != 0         ? by_file
           : a->line != b->line ? (a->line < b->line ? -1 : 1)
                                : (int)a->operation - (int)b->operation;
}

/* Whether one of the words is a part of the path. */
static bool is_of(const char *path, const char *words)
{
    char word[80];
    for (; *words != '\0'; words += strcspn(words, " "), words += strspn(words, " ")) {
        copy_text(word, sizeof word, words, " ");
        if (strstr(path, word) != NULL)
            return true;
    }
    return false;
}

/* In the order of the file: where things are in memory differs from run to run. */
static void find_sources(const char *files)
{
    const void *pcs[SITES_MOST];
    uint32_t places[SITES_MOST], indices[SITES_MOST], count = 0;
    source_count = 0;
    for (uint32_t i = 0; i < SITES_MOST; i++) {
        if (sites[i].pc == NULL || sites[i].order == RELAXED)
            continue;
        indices[count] = count;
        places[count] = i;
        pcs[count++] = sites[i].pc;
    }
    locate(pcs, count, found);
    for (uint32_t i = 0; i < count; i++) {
        found[i].operation = sites[places[i]].operation;
        found[i].order = found[i].order_now = sites[places[i]].order;
    }
    qsort(indices, count, sizeof *indices, compare_sites);
    for (uint32_t i = 0; i < count; i++)
        if (is_of(found[indices[i]].file, files))
            add_source(&sites[places[indices[i]]], &found[indices[i]]);
    number_sources();
}

/* What is left of an order without one of its parts; itself if it has none such. */
static const char *const part_names[] = {"without acquire", "without release", "not seq_cst",
                                         "left out"};
#define PART_COUNT (sizeof part_names / sizeof *part_names)

static int without(int order, uint32_t part)
{
    if (part == 0)
        return order == ACQUIRE ? RELAXED : order == ACQ_REL ? RELEASE : order;
    if (part == 1)
        return order == RELEASE ? RELAXED : order == ACQ_REL ? ACQUIRE : order;
    if (part == 2)
        return order == SEQ_CST ? ACQ_REL : order;
    return order == HAPPENS ? LEFT_OUT : order;
}

/* The harness that notices; NULL: none does. */
static const struct harness *find_out(const struct harness *harnesses, uint32_t count,
                                      struct explored *explored)
{
    for (uint32_t i = 0; i < count; i++) {
        *explored = interleave_explore(&harnesses[i]);
        if (explored->failure != NULL)
            return &harnesses[i];
    }
    return NULL;
}

/* A part of an order that the harnesses did not miss. */
struct spare {
    uint32_t source, part;
    char name[300];
};

static void name_part(uint32_t source, uint32_t part, char *name, size_t bytes)
{
    const struct source *of = &sources[source];
    char ordinal[16] = "";
    if (of->ordinal > 1)
        snprintf(ordinal, sizeof ordinal, " #%u", of->ordinal);
    const char *order = order_names[of->order];
    snprintf(name, bytes, "%.79s %s%s%s%s: %s", of->function, operation_names[of->operation],
             *order == '\0' ? "" : " ", order, ordinal, part_names[part]);
}

/* Weakens one part of an order beyond what is weak already; false, and as it was: that is
 * noticed. */
static bool weaken(const struct spare *spare, const char *how, const struct harness *harnesses,
                   uint32_t count)
{
    struct source *source = &sources[spare->source];
    struct explored explored;
    int before = source->order_now;
    source->order_now = without(before, spare->part);
    const struct harness *by = find_out(harnesses, count, &explored);
    if (by == NULL)
        return true;
    source->order_now = before;
    printf("%-68s noticed%s by \"%s\" (execution %lu): %s\n", spare->name, how, by->name,
           (unsigned long)explored.executions, explored.failure);
    return false;
}

/* Each alone; returns how many were not noticed. */
static uint32_t weaken_each(const struct harness *harnesses, uint32_t count, struct spare *spares)
{
    uint32_t spare_count = 0;
    for (uint32_t i = 0; i < source_count; i++)
        for (uint32_t part = 0; part < PART_COUNT; part++) {
            struct spare *spare = &spares[spare_count];
            *spare = (struct spare){.source = i, .part = part};
            name_part(i, part, spare->name, sizeof spare->name);
            if (without(sources[i].order, part) == sources[i].order)
                continue;
            spare_count += weaken(spare, "", harnesses, count);
            sources[i].order_now = sources[i].order;
        }
    return spare_count;
}

static const struct kept_order *find_kept(const struct kept_order *kept, const char *name)
{
    while (kept->site != NULL && strcmp(kept->site, name) != 0)
        kept++;
    return kept->site == NULL ? NULL : kept;
}

/* Those that were not missed alone, one after the other: of several that do the same, the last is
 * missed. What is never missed must be kept for a reason, and nothing else. */
static bool weaken_together(const struct spare *spares, uint32_t spare_count,
                            const struct harness *harnesses, uint32_t count,
                            const struct kept_order *kept)
{
    uint32_t kept_count = 0;
    bool is_right = true;
    for (uint32_t i = 0; i < spare_count; i++) {
        if (!weaken(&spares[i], " with those above weak, too,", harnesses, count))
            continue;
        const struct kept_order *reason = find_kept(kept, spares[i].name);
        printf("%-68s not noticed: %s\n", spares[i].name,
               reason == NULL ? "AND NOBODY SAYS WHY IT STAYS" : reason->reason);
        kept_count += reason != NULL;
        is_right &= reason != NULL;
    }
    while (kept->site != NULL)
        kept++, kept_count--;
    if (kept_count != 0)
        printf("OTHERS ARE KEPT THAT ARE NOTICED\n");
    return is_right && kept_count == 0;
}

bool interleave_needs_orders(const char *files, const struct harness *harnesses, uint32_t count,
                             const struct kept_order *kept)
{
    static struct spare spares[SOURCES_MOST * PART_COUNT + 1];
    for (uint32_t i = 0; i < count; i++)
        if (!holds_within(&harnesses[i]))
            return false;
    find_sources(files);
    uint32_t spare_count = weaken_each(harnesses, count, spares);
    bool is_right = weaken_together(spares, spare_count, harnesses, count, kept);
    fflush(stdout);
    source_count = 0;
    for (uint32_t i = 0; i < SITES_MOST; i++)
        sites[i].source = 0;
    return is_right;
}
