/* SPDX-License-Identifier: MIT */
#include "command.h"
#include "learned_source.h"
#include "words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const log_names[LEARNED_LOG_COUNT] = {"big_cache", "slabs"};

static uint64_t page_bytes(void)
{
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

static int read_or_complain(struct learned *learned, const char *path)
{
    const char *wrong = learned_source_read(learned, path);
    return wrong == NULL ? EXIT_DONE : complain(EXIT_FAILED, "learned: %s %s", path, wrong);
}

static void put_program_json(const struct learned_program *program)
{
    if (program == NULL) {
        fputs("null", stdout);
        return;
    }
    printf("{\"runs\": %" PRIu32 ", \"first_second_bytes\": %" PRIu64, program->runs,
           program->first_second_bytes);
    for (int i = 0; i < LEARNED_LOG_COUNT; i++) {
        const struct keep_evidence *log = &program->logs[i];
        printf(", \"%s\": {\"keep_ms\": %" PRIu64 ", \"episodes\": %" PRIu32
               ", \"decay_ms\": %" PRIu64 ", \"fault_ms\": %" PRIu64 ", \"costs\": [",
               log_names[i], hak_keep_evidence_ms(log), log->episodes, log->decay_ms,
               log->fault_ms);
        for (uint32_t cost = 0; cost < HAK_KEEP_CHOICES; cost++)
            printf("%s%" PRIu64, cost == 0 ? "" : ", ", log->costs[cost]);
        fputs("]}", stdout);
    }
    printf(", \"sites\": %" PRIu32 ", \"values\": %" PRIu32 ", \"sizes\": %" PRIu32 "}",
           program->site_count, program->match_count, program->sizes.count);
}

static void put_all_json(const struct learned *learned)
{
    putchar('{');
    for (uint32_t i = 0; i < learned->count; i++) {
        fputs(i == 0 ? "" : ", ", stdout);
        put_json_string(learned->programs[i].name);
        fputs(": ", stdout);
        put_program_json(&learned->programs[i]);
    }
    putchar('}');
}

/* A keep time and what it rests on: `500 ms 24`; without evidence `-`. */
static const char *keep_text(char *words, const struct keep_evidence *log)
{
    if (log->episodes == 0)
        return "-";
    snprintf(words, 64, "%" PRIu64 " ms %6" PRIu32, hak_keep_evidence_ms(log), log->episodes);
    return words;
}

static void put_head(void)
{
    printf("%-24s %6s %12s  %18s  %18s %6s %6s %6s\n", "PROGRAM", "RUNS", "FIRST SECOND",
           "LARGE BLOCKS SEEN", "SLABS SEEN", "RULES", "VALUES", "SIZES");
}

static void put_row(const char *name, const struct learned_program *program)
{
    char size[32], large[64], slabs[64];
    printf("%-24s %6" PRIu32 " %12s  %18s  %18s %6" PRIu32 " %6" PRIu32 " %6" PRIu32 "\n", name,
           program->runs, size_text(size, program->first_second_bytes),
           keep_text(large, &program->logs[LEARNED_BIG_CACHE]),
           keep_text(slabs, &program->logs[LEARNED_SLABS]), program->site_count,
           program->match_count, program->sizes.count);
}

static int show(char **files, bool is_json)
{
    static struct learned learned;
    int status = EXIT_DONE;
    bool is_first = true;
    if (is_json)
        putchar('[');
    for (bool has_many = files[1] != NULL; *files != NULL; files++) {
        if (read_or_complain(&learned, *files) != EXIT_DONE) {
            status = EXIT_FAILED;
            continue;
        }
        if (is_json) {
            fputs(is_first ? "{\"file\": " : ",\n {\"file\": ", stdout);
            put_json_string(*files);
            fputs(", \"programs\": ", stdout);
            put_all_json(&learned);
            putchar('}');
        } else {
            if (has_many)
                printf("%s%s\n", is_first ? "" : "\n", *files);
            put_head();
            for (uint32_t i = 0; i < learned.count; i++)
                put_row(learned.programs[i].name, &learned.programs[i]);
        }
        is_first = false;
    }
    if (is_json)
        puts("]");
    return status;
}

/* The program's part, as a file of its own. */
static size_t write_alone(const struct learned_program *program, char *text)
{
    static struct learned alone;
    hak_learned_begin(&alone, page_bytes());
    hak_learned_put(&alone, program);
    return hak_learned_write(&alone, text);
}

static bool is_same(const struct learned_program *a, const struct learned_program *b)
{
    static char texts[2][HAK_LEARNED_BYTES_MOST];
    size_t bytes = write_alone(a, texts[0]);
    return bytes == write_alone(b, texts[1]) && memcmp(texts[0], texts[1], bytes) == 0;
}

static void put_change(const char *name, const struct learned_program *before,
                       const struct learned_program *after, bool is_json, bool is_first)
{
    char label[HAK_LEARNED_NAME_BYTES + 2];
    if (is_json) {
        fputs(is_first ? "" : ",\n ", stdout);
        fputs("{\"program\": ", stdout);
        put_json_string(name);
        fputs(", \"before\": ", stdout);
        put_program_json(before);
        fputs(", \"after\": ", stdout);
        put_program_json(after);
        putchar('}');
        return;
    }
    if (is_first)
        put_head();
    if (before != NULL) {
        snprintf(label, sizeof label, "-%s", name);
        put_row(label, before);
    }
    if (after != NULL) {
        snprintf(label, sizeof label, "+%s", name);
        put_row(label, after);
    }
}

static int diff(char **files, bool is_json)
{
    static struct learned before, after;
    bool is_first = true;
    if (files[1] == NULL || files[2] != NULL)
        return complain(EXIT_USAGE, "learned: diff takes two files");
    if (read_or_complain(&before, files[0]) != EXIT_DONE ||
        read_or_complain(&after, files[1]) != EXIT_DONE)
        return EXIT_FAILED;
    if (is_json)
        putchar('[');
    for (uint32_t i = 0; i < before.count; i++) {
        const struct learned_program *old = &before.programs[i];
        const struct learned_program *new = hak_learned_find(&after, old->name);
        if (new != NULL && is_same(old, new))
            continue;
        put_change(old->name, old, new, is_json, is_first);
        is_first = false;
    }
    for (uint32_t i = 0; i < after.count; i++) {
        const struct learned_program *new = &after.programs[i];
        if (hak_learned_find(&before, new->name) != NULL)
            continue;
        put_change(new->name, NULL, new, is_json, is_first);
        is_first = false;
    }
    if (is_json)
        puts("]");
    else if (is_first)
        puts("no difference");
    return EXIT_DONE;
}

static void merge_into(struct learned *sum, const struct learned *learned)
{
    for (uint32_t i = learned->count; i-- > 0;) {
        struct learned_program program = learned->programs[i];
        const struct learned_program *known = hak_learned_find(sum, program.name);
        if (known != NULL)
            hak_learned_add(&program, known);
        hak_learned_put(sum, &program);
    }
}

static int merge(char **files, bool is_json)
{
    static struct learned sum, learned;
    static char text[HAK_LEARNED_BYTES_MOST];
    if (read_or_complain(&sum, files[0]) != EXIT_DONE)
        return EXIT_FAILED;
    for (char **file = files + 1; *file != NULL; file++) {
        if (read_or_complain(&learned, *file) != EXIT_DONE)
            return EXIT_FAILED;
        if (learned.machine.page_bytes != sum.machine.page_bytes ||
            learned.machine.class_table != sum.machine.class_table)
            return complain(EXIT_FAILED, "learned: %s and %s are of different machines or versions",
                            files[0], *file);
        merge_into(&sum, &learned);
    }
    if (is_json) {
        put_all_json(&sum);
        putchar('\n');
    } else {
        fwrite(text, 1, hak_learned_write(&sum, text), stdout);
    }
    return EXIT_DONE;
}

static int lint(char **files, bool is_json)
{
    static struct learned learned;
    int status = EXIT_DONE;
    for (char **file = files; *file != NULL; file++) {
        const char *wrong = learned_source_read(&learned, *file);
        enum learned_verdict fits = LEARNED_READ;
        if (wrong == NULL && (fits = hak_learned_fits(&learned, page_bytes())) != LEARNED_READ)
            wrong = hak_learned_verdict_text(fits);
        if (is_json) {
            fputs(file == files ? "[{\"file\": " : ",\n {\"file\": ", stdout);
            put_json_string(*file);
            printf(", \"is_sound\": %s, \"reason\": ", wrong == NULL ? "true" : "false");
            put_json_string(wrong == NULL ? "" : wrong);
            putchar('}');
        } else if (wrong == NULL) {
            printf("%s: sound, %" PRIu32 " program%s\n", *file, learned.count,
                   learned.count == 1 ? "" : "s");
        } else {
            complain(EXIT_FAILED, "learned: %s %s", *file, wrong);
        }
        status = wrong == NULL ? status : EXIT_FAILED;
    }
    if (is_json)
        puts("]");
    return status;
}

int command_learned(int argument_count, char **arguments)
{
    (void)argument_count;
    static const struct {
        const char *word;
        int (*run)(char **files, bool is_json);
    } verbs[] = {{"show", show}, {"diff", diff}, {"merge", merge}, {"lint", lint}};
    bool is_json = false;
    char **words = arguments + 1;
    int status =
        words_read("learned", words, (struct word_option[]){{"--json", &is_json, NULL}, {0}});
    if (status != EXIT_DONE)
        return status;
    if (words[0] == NULL)
        return complain_usage("learned");
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(verbs[i].word, words[0]) == 0)
            return words[1] == NULL ? complain_usage("learned") : verbs[i].run(words + 1, is_json);
    return complain_word("learned", words[0]);
}
