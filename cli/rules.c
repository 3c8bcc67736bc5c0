/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "ask.h"
#include "base/size_class_table.h"
#include "command.h"
#include "learn/effect_line.h"
#include "learned_source.h"
#include "os/own_file.h"
#include "ps.h"
#include "serving.h"
#include "words.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A process has no more sites than that. */
#define LINES_MOST 1200u
/* Of a place. */
#define NAME_BYTES 64u

/* What they change is known of processes only. */
struct rules {
    struct site_line lines[LINES_MOST];
    uint32_t count;
    struct effect_line effects[HAK_SITE_CLASSES];
    uint32_t effect_count;
};

/* Where rules are: a process, or a program's record in a file. */
struct source {
    const char *name;
    int pid;             /* 0: a file */
    const char *program; /* NULL: none was named */
    struct learned learned;
};

static char text[HAK_LEARNED_BYTES_MOST];

static int read_file(struct source *source)
{
    const char *wrong = learned_source_read(&source->learned, source->name);
    if (wrong != NULL)
        return complain(EXIT_FAILED, "rules: %s %s", source->name, wrong);
    return EXIT_DONE;
}

/* NULL: it was complained about. */
static const struct learned_program *read_program(struct source *source)
{
    if (read_file(source) != EXIT_DONE)
        return NULL;
    return learned_source_program(&source->learned, "rules", source->name, source->program);
}

static void take_rules(struct rules *rules, const struct learned_program *program)
{
    rules->count = program->site_count;
    memcpy(rules->lines, program->sites, sizeof program->sites);
}

/* Returns how many bytes it read, up to what is no rule. */
static size_t add_lines(struct rules *rules, const char *from, size_t bytes)
{
    size_t at = 0, read;
    for (; rules->count < LINES_MOST &&
           (read = hak_site_line_read(&rules->lines[rules->count], from + at, bytes - at)) != 0;
         at += read)
        rules->count++;
    return at;
}

static size_t add_effects(struct rules *rules, const char *from, size_t bytes)
{
    size_t at = 0, read;
    for (; rules->effect_count < HAK_SITE_CLASSES &&
           (read = hak_effect_line_read(&rules->effects[rules->effect_count], from + at,
                                        bytes - at)) != 0;
         at += read)
        rules->effect_count++;
    return at;
}

/* False: *why says why the process does not tell them. */
static bool ask_process(int pid, uint32_t wait_ms, struct rules *rules, const char **why)
{
    static char lines[LINES_MOST * HAK_SITE_LINE_BYTES];
    struct ask ask;
    if ((*why = serving_obstacle(pid)) != NULL || !ask_and_wait(&ask, pid, "rules", wait_ms, why))
        return false;
    ssize_t read = pread(ask.fd, lines, sizeof lines, sizeof(struct control_request));
    size_t bytes = read < 0 ? 0 : (size_t)read;
    ask_end(&ask);
    *why = "its answer cannot be read";
    size_t at = add_lines(rules, lines, bytes);
    return at + add_effects(rules, lines + at, bytes - at) == bytes;
}

static int read_process(struct source *source, struct rules *rules)
{
    const char *why;
    if (!ask_process(source->pid, ASK_WAIT_MS, rules, &why))
        return complain(EXIT_FAILED, "rules: %s", why);
    return EXIT_DONE;
}

static int read_rules(struct source *source, struct rules *rules)
{
    if (source->pid != 0)
        return read_process(source, rules);
    const struct learned_program *program = read_program(source);
    if (program == NULL)
        return EXIT_FAILED;
    take_rules(rules, program);
    return EXIT_DONE;
}

/* Names the places; "" where it is any. */
static void put_places(char names[HAK_SITE_FRAMES][NAME_BYTES], const struct site_line *line)
{
    for (uint32_t i = 0; i < HAK_SITE_FRAMES; i++) {
        const struct site_place *place = &line->places[i];
        names[i][0] = '\0';
        if (place->module[0] != '\0')
            snprintf(names[i], NAME_BYTES, "%s+0x%" PRIx64, place->module, place->offset);
    }
}

/* The evidence in words. */
static void put_rule(const struct site_line *line)
{
    char names[HAK_SITE_FRAMES][NAME_BYTES];
    put_places(names, line);
    printf("%-9s  %s", hak_rule_state_word(line->state), names[0]);
    for (uint32_t i = 1; i < HAK_SITE_FRAMES && names[i][0] != '\0'; i++)
        printf(" < %s", names[i]);
    printf(", %" PRIu32 " bytes: ", line->block_bytes);
    if (line->judged == 0)
        puts("no samples");
    else
        printf("%" PRIu64 " %% of %" PRIu32 " samples outlived two generations\n",
               (uint64_t)line->survivors * 100 / line->judged, line->judged);
}

static double used_percent(const struct rule_effect *effect, bool is_held)
{
    return effect->pages[is_held] == 0 ? 0 : effect->used[is_held] / effect->pages[is_held] * 100;
}

/* What the learned rules of a size change, as far as it is measured. */
static void put_effect(const struct effect_line *line)
{
    const struct rule_effect *effect = &line->effect;
    double share;
    printf("effect     %" PRIu32 " bytes: ", line->block_bytes);
    if (!hak_effect_share(effect, &share)) {
        printf("not yet measured: of %u pages each, %" PRIu32 " were observed while the rules act, "
               "and %" PRIu32 " while they are held back\n",
               HAK_EFFECT_PAGES_LEAST, (uint32_t)effect->pages[false],
               (uint32_t)effect->pages[true]);
        return;
    }
    printf("pages are in use for %.0f %% of the time, and for %.0f %% while the rules are held "
           "back: ",
           used_percent(effect, false), used_percent(effect, true));
    if (share < 0.005)
        puts("they keep no slabs free");
    else
        printf("they keep %.0f %% of the slabs free\n", share * 100);
}

/* NULL: it is no learned rule that acts, or a file's. */
static const struct rule_effect *find_effect(const struct rules *rules,
                                             const struct site_line *line)
{
    bool is_learned = line->state == RULE_CANARY || line->state == RULE_ACTIVE;
    for (uint32_t i = 0; is_learned && i < rules->effect_count; i++)
        if (rules->effects[i].block_bytes == line->block_bytes)
            return &rules->effects[i].effect;
    return NULL;
}

static void put_effect_json(const struct rule_effect *effect)
{
    double share;
    fputs(", \"effect\": ", stdout);
    if (effect == NULL) {
        fputs("null", stdout);
        return;
    }
    fputs("{\"kept_free_percent\": ", stdout);
    if (hak_effect_share(effect, &share))
        printf("%.1f", share * 100);
    else
        fputs("null", stdout);
    printf(", \"pages\": %" PRIu32 ", \"used_percent\": %.1f, \"held_back_pages\": %" PRIu32
           ", \"held_back_used_percent\": %.1f}",
           (uint32_t)effect->pages[false], used_percent(effect, false),
           (uint32_t)effect->pages[true], used_percent(effect, true));
}

static void put_json(const struct rules *rules, const struct site_line *line, bool is_first)
{
    char names[HAK_SITE_FRAMES][NAME_BYTES];
    put_places(names, line);
    printf("%s{\"state\": \"%s\", \"site\": \"%s\", \"caller\": \"%s\", \"second_caller\": \"%s\", "
           "\"build_id\": \"%" PRIx64 "\", \"block_bytes\": %" PRIu32 ", \"samples\": %" PRIu32
           ", \"survivors\": %" PRIu32,
           is_first ? "[" : ",\n ", hak_rule_state_word(line->state), names[0], names[1], names[2],
           line->places[0].build_id, line->block_bytes, line->judged, line->survivors);
    put_effect_json(find_effect(rules, line));
    putchar('}');
}

/* Rules in force and of the user first, then by evidence. */
static int compare(const void *left, const void *right)
{
    static const int orders[RULE_STATES] = {
        [RULE_PINNED] = 0,  [RULE_FORBIDDEN] = 1, [RULE_ACTIVE] = 2,
        [RULE_CANARY] = 3,  [RULE_SHADOW] = 4,    [RULE_MIXED] = 5,
        [RULE_RETIRED] = 6, [RULE_CANDIDATE] = 7, [RULE_WATCHED] = 8};
    const struct site_line *a = left, *b = right;
    int order = orders[a->state] - orders[b->state];
    return order != 0 ? order : (b->judged > a->judged) - (b->judged < a->judged);
}

static void put_rules(struct rules *rules, bool is_json)
{
    qsort(rules->lines, rules->count, sizeof *rules->lines, compare);
    for (uint32_t i = 0; i < rules->count; i++) {
        if (is_json)
            put_json(rules, &rules->lines[i], i == 0);
        else
            put_rule(&rules->lines[i]);
    }
    if (is_json)
        puts(rules->count == 0 ? "[]" : "]");
    else if (rules->count == 0)
        puts("no rules");
    for (uint32_t i = 0; !is_json && i < rules->effect_count; i++)
        put_effect(&rules->effects[i]);
}

static void print(void *seen, bool is_json)
{
    put_rules(seen, is_json);
}

/* Each program of a file, by name where there are several. */
static int list_programs(struct source *source)
{
    static struct rules rules;
    int status = read_file(source);
    for (uint32_t i = 0; status == EXIT_DONE && i < source->learned.count; i++) {
        if (source->learned.count > 1)
            printf("%s%s\n", i == 0 ? "" : "\n", source->learned.programs[i].name);
        take_rules(&rules, &source->learned.programs[i]);
        put_rules(&rules, false);
    }
    return status;
}

static int list(struct source *source, bool is_json)
{
    static struct rules rules;
    if (source->pid == 0 && source->program == NULL && !is_json)
        return list_programs(source);
    int status = read_rules(source, &rules);
    if (status == EXIT_DONE)
        put_rules(&rules, is_json);
    return status;
}

static bool look(int pid, void *seen)
{
    struct rules *rules = seen;
    const char *why;
    rules->count = rules->effect_count = 0;
    return ask_process(pid, PROCESS_WAIT_MS, rules, &why);
}

static int list_all(bool is_json)
{
    static struct rules rules;
    processes_show(&(struct process_view){.key = "rules",
                                          .none = "no process of this user is known to learn "
                                                  "call sites: start one with HAKMEM_MODE=learning",
                                          .seen = &rules,
                                          .look = look,
                                          .print = print},
                   is_json);
    return EXIT_DONE;
}

static int export(struct source *source)
{
    static struct rules rules;
    int status = read_rules(source, &rules);
    for (uint32_t i = 0; status == EXIT_DONE && i < rules.count; i++) {
        char written[HAK_SITE_LINE_BYTES];
        struct text line = {.start = written, .bytes = sizeof written};
        hak_site_line_write(&line, &rules.lines[i]);
        fwrite(written, 1, line.used, stdout);
    }
    return status;
}

static int tell_process(struct source *source, const struct site_line *line)
{
    char words[HAK_REQUEST_WORDS_BYTES];
    struct ask ask;
    const char *answer, *obstacle = serving_obstacle(source->pid);
    struct text out = {.start = words, .bytes = sizeof words - 1};
    if (obstacle != NULL)
        return complain(EXIT_FAILED, "rules: %s", obstacle);
    hak_text_add(&out, "rule ");
    hak_site_line_write(&out, line);
    words[out.used - 1] = '\0';
    if (!ask_and_wait(&ask, source->pid, words, ASK_WAIT_MS, &answer))
        return complain(EXIT_FAILED, "rules: %s", answer);
    ask_end(&ask);
    printf("process %d: %s\n", source->pid, answer);
    return EXIT_DONE;
}

static int tell_file(struct source *source, const struct site_line *lines, uint32_t count)
{
    const struct learned_program *known = read_program(source);
    char path[PATH_MAX];
    if (known == NULL)
        return EXIT_FAILED;
    struct learned_program program = *known;
    for (uint32_t i = 0; i < count; i++)
        if (!hak_learned_put_site(&program, &lines[i]))
            return complain(EXIT_FAILED, "rules: a program has at most %u rules in a file",
                            HAK_LEARNED_SITES_MOST);
    hak_learned_put(&source->learned, &program);
    if (!hak_os_full_path(source->name, path, sizeof path))
        return complain(EXIT_FAILED, "rules: %s is too long a name", source->name);
    int error = hak_os_own_file_replace(path, text, hak_learned_write(&source->learned, text));
    if (error != 0)
        return complain(EXIT_FAILED, "rules: %s cannot be written: %s", source->name,
                        strerror(error));
    printf("%s: %" PRIu32 " rule%s of %s written\n", source->name, count, count == 1 ? "" : "s",
           program.name);
    return EXIT_DONE;
}

static int tell(struct source *source, const struct site_line *lines, uint32_t count)
{
    if (source->pid == 0)
        return tell_file(source, lines, count);
    for (uint32_t i = 0; i < count; i++)
        if (tell_process(source, &lines[i]) != EXIT_DONE)
            return EXIT_FAILED;
    return EXIT_DONE;
}

/* Which class serves so many bytes: a rule has the size of its blocks. */
static uint32_t block_bytes_of(unsigned long bytes)
{
    static const uint32_t blocks[] = {8,
#define X(class_index, below, block_bytes) (block_bytes),
                                      HAK_SIZE_CLASSES_EVEN(X)
#undef X
    };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        if (blocks[i] >= bytes)
            return blocks[i];
    return 0;
}

/* SITE BYTES [CALLER]... */
static bool read_site(struct site_line *line, char **words)
{
    char *end;
    if (words[0] == NULL || words[1] == NULL)
        return false;
    unsigned long number = strtoul(words[1], &end, 10);
    if (!isdigit((unsigned char)*words[1]) || *end != '\0' || number == 0)
        return false;
    line->block_bytes = block_bytes_of(number);
    if (line->block_bytes == 0 || !hak_site_place_read(&line->places[0], words[0]))
        return false;
    uint32_t count = 1;
    for (; count < HAK_SITE_FRAMES && words[count + 1] != NULL; count++)
        if (!hak_site_place_read(&line->places[count], words[count + 1]))
            return false;
    return words[count + 1] == NULL;
}

static int change(struct source *source, enum rule_state state, char **words)
{
    struct site_line line = {.state = state};
    if (!read_site(&line, words))
        return complain(EXIT_USAGE, "rules: a site is FILE+0xOFFSET BYTES, BYTES up to 4096, then "
                                    "FILE+0xOFFSET of its caller and of the caller's, if these are "
                                    "distinguished");
    return tell(source, &line, 1);
}

static int import(struct source *source, char **words)
{
    static struct rules rules;
    static char lines[LINES_MOST * HAK_SITE_LINE_BYTES];
    if (words[0] == NULL || words[1] != NULL)
        return complain(EXIT_USAGE, "rules: import takes one file");
    FILE *file = fopen(words[0], "re");
    if (file == NULL)
        return complain(EXIT_FAILED, "rules: %s cannot be read: %s", words[0], strerror(errno));
    size_t bytes = fread(lines, 1, sizeof lines, file);
    fclose(file);
    if (add_lines(&rules, lines, bytes) != bytes)
        return complain(EXIT_FAILED, "rules: line %" PRIu32 " of %s is no rule", rules.count + 1,
                        words[0]);
    return tell(source, rules.lines, rules.count);
}

static int carry_out(struct source *source, char **words, bool is_json)
{
    const char *verb = words[0] == NULL ? "list" : words[0];
    if (words[0] == NULL || (strcmp(verb, "list") == 0 && words[1] == NULL))
        return list(source, is_json);
    if (strcmp(verb, "export") == 0 && words[1] == NULL)
        return export(source);
    if (strcmp(verb, "import") == 0)
        return import(source, words + 1);
    if (strcmp(verb, "pin") == 0)
        return change(source, RULE_PINNED, words + 1);
    if (strcmp(verb, "forbid") == 0)
        return change(source, RULE_FORBIDDEN, words + 1);
    if (strcmp(verb, "free") == 0)
        return change(source, RULE_WATCHED, words + 1);
    bool is_known = strcmp(verb, "list") == 0 || strcmp(verb, "export") == 0;
    return complain_word("rules", is_known ? words[1] : verb);
}

int command_rules(int argument_count, char **arguments)
{
    (void)argument_count;
    static struct source source;
    bool is_json = false;
    char **words = arguments + 1;
    int status =
        words_read("rules", words,
                   (struct word_option[]){
                       {"--json", &is_json, NULL}, {"--program", NULL, &source.program}, {0}});
    if (status != EXIT_DONE)
        return status;
    if (words[0] == NULL)
        return source.program == NULL ? list_all(is_json) : complain_usage("rules");
    source.name = words[0];
    source.pid = process_number_from(words[0]);
    if (source.pid != 0 && source.program != NULL)
        return complain(EXIT_USAGE, "rules: --program names one of a file, and %s is a process",
                        words[0]);
    return carry_out(&source, words + 1, is_json);
}
