/* SPDX-License-Identifier: MIT */
#include "learn/learned_file.h"

#include "base/bits.h"
#include "base/size_class_table.h"
#include "base/text.h"
#include "learn/checksum.h"

#include <string.h>

#define FIRST_WORDS "hakmem learned "
#define VERSION 1u
#define CHECKSUM_WORD "crc32 "
/* The word, eight digits and the end of the line. */
#define CHECKSUM_LINE_BYTES (sizeof CHECKSUM_WORD - 1 + 8 + 1)

static const char *const log_words[LEARNED_LOG_COUNT] = {"big_cache", "slabs"};

static uint32_t class_table(void)
{
    static const uint32_t classes[] = {
#define X(class_index, low, block_bytes) (block_bytes),
        HAK_SIZE_CLASSES(X)
#undef X
    };
    return hak_checksum(classes, sizeof classes);
}

static uint32_t read_hex(struct line_reader *reader)
{
    uint32_t number = 0;
    for (int i = 0; i < 8; i++) {
        uint32_t digit = hak_line_digit(reader, 16);
        if (digit >= 16) {
            reader->is_right = false;
            return 0;
        }
        number = number << 4 | digit;
        reader->at++;
    }
    return number;
}

static void read_name(struct line_reader *reader, char *name)
{
    size_t used = 0;
    while (reader->at < reader->end && *reader->at > ' ' && *reader->at < 0x7f &&
           used < HAK_LEARNED_NAME_BYTES - 1)
        name[used++] = *reader->at++;
    name[used] = '\0';
    if (used == 0)
        reader->is_right = false;
}

static struct match_line *find_match(struct learned_program *program, const struct match_line *line)
{
    uint32_t at = 0;
    while (at < program->match_count &&
           (program->matches[at].knob != line->knob || program->matches[at].arm != line->arm))
        at++;
    return &program->matches[at];
}

static void read_matches(struct line_reader *reader, struct learned_program *program)
{
    struct match_line line;
    size_t bytes;
    while (reader->is_right && (bytes = hak_match_line_read(
                                    &line, reader->at, (size_t)(reader->end - reader->at))) != 0) {
        if (find_match(program, &line) != &program->matches[program->match_count])
            reader->is_right = false; /* twice */
        else
            hak_learned_put_match(program, &line);
        reader->at += bytes;
    }
}

static struct site_line *find_site(struct learned_program *program, const struct site_line *line)
{
    uint32_t at = 0;
    while (at < program->site_count && !hak_site_line_is_same(&program->sites[at], line))
        at++;
    return &program->sites[at];
}

static void read_sites(struct line_reader *reader, struct learned_program *program)
{
    struct site_line line;
    size_t bytes;
    while (reader->is_right && program->site_count < HAK_LEARNED_SITES_MOST &&
           (bytes = hak_site_line_read(&line, reader->at, (size_t)(reader->end - reader->at))) !=
               0) {
        if (find_site(program, &line) != &program->sites[program->site_count])
            reader->is_right = false; /* twice */
        else
            hak_learned_put_site(program, &line);
        reader->at += bytes;
    }
}

static void read_sizes(struct line_reader *reader, struct learned_program *program)
{
    static struct size_spread spread; /* too large for the stack of a small thread */
    size_t bytes = hak_size_spread_read(&spread, reader->at, (size_t)(reader->end - reader->at));
    if (!reader->is_right || bytes == 0)
        return;
    if (hak_size_spread_used(&spread) > HAK_SIZE_LINES_MOST)
        reader->is_right = false;
    else
        hak_size_spread_cut(&spread, &program->sizes);
    reader->at += bytes;
}

/* Lines that a program has any number of, and how many all may have together. */
enum lines { LINES_MATCHES, LINES_SITES, LINES_SIZES, LINES_COUNT };
/* The sizes of a program begin with a line of their own. */
static uint32_t lines_of(const struct learned_program *program, int lines)
{
    if (lines == LINES_SIZES)
        return program->sizes.count + (program->sizes.count != 0);
    return lines == LINES_MATCHES ? program->match_count : program->site_count;
}

/* Drops some of the last sites; those of which the user said something, only where `all`. */
static uint32_t drop_sites(struct learned_program *program, uint32_t most, bool all)
{
    uint32_t dropped = 0;
    for (uint32_t i = program->site_count; i > 0 && dropped < most; i--)
        if (all || !hak_site_line_is_said(&program->sites[i - 1])) {
            hak_learned_drop_site(program, i - 1);
            dropped++;
        }
    return dropped;
}

/* Drops some of the last lines, or all sizes; returns how many. */
static uint32_t drop_lines(struct learned_program *program, int lines, uint32_t most, bool all)
{
    uint32_t dropped = lines_of(program, lines);
    if (lines == LINES_SITES)
        return drop_sites(program, most, all);
    if (lines == LINES_SIZES) {
        memset(&program->sizes, 0, sizeof program->sizes);
        return dropped;
    }
    dropped = (uint32_t)hak_least(dropped, most);
    program->match_count -= dropped;
    return dropped;
}

static uint32_t lines_of_all(const struct learned *learned, int lines)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < learned->count; i++)
        count += lines_of(&learned->programs[i], lines);
    return count;
}

/* The longest lines: name, runs and bytes, and two logs; the first lines and the last one. */
#define PROGRAM_BYTES (9 + HAK_LEARNED_NAME_BYTES + 13 + 8 + 20 + 2 * HAK_KEEP_LINE_BYTES)
#define FRAME_BYTES 128
hak_static_assert(HAK_LEARNED_PROGRAMS_MOST *PROGRAM_BYTES +
                          HAK_LEARNED_ALL_MATCHES_MOST * HAK_MATCH_LINE_BYTES +
                          HAK_LEARNED_ALL_SITES_MOST * HAK_SITE_LINE_BYTES +
                          (HAK_SIZE_LINES_MOST + 1) * HAK_SIZE_LINE_BYTES <
                      HAK_LEARNED_BYTES_MOST - FRAME_BYTES,
                  "a full record fits the file, with the sizes of the last program");

/* How many lines there may be. */
static uint32_t lines_most(const struct learned *learned, int lines)
{
    if (lines == LINES_MATCHES)
        return HAK_LEARNED_ALL_MATCHES_MOST;
    if (lines == LINES_SITES)
        return HAK_LEARNED_ALL_SITES_MOST;
    uint32_t used = FRAME_BYTES + learned->count * PROGRAM_BYTES +
                    lines_of_all(learned, LINES_MATCHES) * HAK_MATCH_LINE_BYTES +
                    lines_of_all(learned, LINES_SITES) * HAK_SITE_LINE_BYTES;
    return (HAK_LEARNED_BYTES_MOST - used) / HAK_SIZE_LINE_BYTES;
}

/* Lines that are too many. */
static uint32_t excess_of(const struct learned *learned, int lines)
{
    return (uint32_t)hak_excess(lines_of_all(learned, lines), lines_most(learned, lines));
}

static void read_program(struct line_reader *reader, struct learned *learned)
{
    struct learned_program *program = &learned->programs[learned->count];
    memset(program, 0, sizeof *program);
    hak_line_read_word(reader, "program ");
    read_name(reader, program->name);
    hak_line_read_word(reader, "\nfirst_second ");
    program->runs = (uint32_t)hak_line_read_number(reader, 10, HAK_LEARNED_RUNS_MOST);
    hak_line_read_word(reader, " ");
    program->first_second_bytes = hak_line_read_number(reader, 10, HAK_LEARNED_COST_MOST);
    hak_line_read_word(reader, "\n");
    for (int i = 0; i < LEARNED_LOG_COUNT; i++)
        hak_keep_line_read(reader, log_words[i], &program->logs[i]);
    read_matches(reader, program);
    read_sites(reader, program);
    read_sizes(reader, program);
    if (hak_learned_find(learned, program->name) != NULL)
        reader->is_right = false;
    learned->count++;
}

/* The first line: kind and version of the file. */
static enum learned_verdict read_head(struct line_reader *reader)
{
    hak_line_read_word(reader, FIRST_WORDS);
    uint64_t version = hak_line_read_number(reader, 10, UINT32_MAX);
    hak_line_read_word(reader, "\n");
    if (!reader->is_right)
        return LEARNED_FOREIGN;
    return version == VERSION ? LEARNED_READ : LEARNED_OTHER_VERSION;
}

/* The last line; the text ends before it then. */
static enum learned_verdict read_checksum(struct line_reader *reader, const char *text)
{
    if ((size_t)(reader->end - reader->at) < CHECKSUM_LINE_BYTES)
        return LEARNED_MALFORMED;
    struct line_reader last = {reader->end - CHECKSUM_LINE_BYTES, reader->end, true};
    reader->end = last.at;
    hak_line_read_word(&last, CHECKSUM_WORD);
    uint32_t sum = read_hex(&last);
    hak_line_read_word(&last, "\n");
    if (!last.is_right)
        return LEARNED_MALFORMED;
    return sum == hak_checksum(text, (size_t)(reader->end - text)) ? LEARNED_READ
                                                                   : LEARNED_WRONG_CHECKSUM;
}

static void read_machine(struct line_reader *reader, struct learned_machine *machine)
{
    hak_line_read_word(reader, "machine ");
    machine->page_bytes = hak_line_read_number(reader, 10, HAK_LEARNED_COST_MOST);
    hak_line_read_word(reader, " ");
    machine->class_table = read_hex(reader);
    hak_line_read_word(reader, "\n");
}

/* What is wrong with a file that is sealed; sizes of other classes are no cells here. */
static enum learned_verdict fault_of(const struct learned_machine *machine)
{
    return machine->class_table == class_table() ? LEARNED_MALFORMED : LEARNED_OTHER_CLASSES;
}

static enum learned_verdict read_programs(struct line_reader *reader, struct learned *learned)
{
    while (reader->is_right && reader->at < reader->end &&
           learned->count < HAK_LEARNED_PROGRAMS_MOST)
        read_program(reader, learned);
    if (!reader->is_right || reader->at != reader->end)
        return fault_of(&learned->machine);
    bool is_full = excess_of(learned, LINES_MATCHES) != 0 || excess_of(learned, LINES_SITES) != 0;
    return is_full ? LEARNED_MALFORMED : LEARNED_READ;
}

static enum learned_verdict read_all(struct learned *learned, const char *text, size_t bytes)
{
    struct line_reader reader = {text, text + bytes, true};
    if (bytes > HAK_LEARNED_BYTES_MOST)
        return LEARNED_TOO_LONG;
    enum learned_verdict verdict = read_head(&reader);
    if (verdict == LEARNED_READ)
        verdict = read_checksum(&reader, text);
    if (verdict != LEARNED_READ)
        return verdict;
    read_machine(&reader, &learned->machine);
    return reader.is_right ? read_programs(&reader, learned) : LEARNED_MALFORMED;
}

/* Programs that are not there stay untouched: their pages would cost more than the file. */
static void clear(struct learned *learned)
{
    learned->machine = (struct learned_machine){.page_bytes = 0};
    learned->count = 0;
}

enum learned_verdict hak_learned_read(struct learned *learned, const char *text, size_t bytes)
{
    clear(learned);
    enum learned_verdict verdict = read_all(learned, text, bytes);
    if (verdict != LEARNED_READ)
        clear(learned);
    return verdict;
}

enum learned_verdict hak_learned_fits(const struct learned *learned, uint64_t page_bytes)
{
    if (learned->machine.page_bytes != page_bytes)
        return LEARNED_OTHER_PAGE;
    return learned->machine.class_table == class_table() ? LEARNED_READ : LEARNED_OTHER_CLASSES;
}

const char *hak_learned_verdict_text(enum learned_verdict verdict)
{
    static const char *const texts[] = {
        [LEARNED_READ] = "can be read",
        [LEARNED_TOO_LONG] = "is larger than 36 KiB",
        [LEARNED_FOREIGN] = "is not a file that hakmem wrote",
        [LEARNED_OTHER_VERSION] = "was written by another version of hakmem",
        [LEARNED_WRONG_CHECKSUM] = "has a wrong checksum",
        [LEARNED_MALFORMED] = "is malformed",
        [LEARNED_OTHER_PAGE] = "was written on a machine with another page size",
        [LEARNED_OTHER_CLASSES] = "was written by a hakmem with other size classes",
    };
    return texts[verdict];
}

void hak_learned_begin(struct learned *learned, uint64_t page_bytes)
{
    clear(learned);
    learned->machine = (struct learned_machine){page_bytes, class_table()};
}

static void write_hex(struct text *text, uint32_t number)
{
    for (int shift = 28; shift >= 0; shift -= 4)
        hak_text_add_bytes(text, &"0123456789abcdef"[number >> shift & 15], 1);
    hak_text_add(text, "\n");
}

size_t hak_learned_write(const struct learned *learned, char *text)
{
    struct text out = {.start = text, .bytes = HAK_LEARNED_BYTES_MOST};
    hak_text_add(&out, FIRST_WORDS);
    hak_text_add_number(&out, VERSION, 10);
    hak_text_add(&out, "\nmachine");
    hak_text_add_bounded(&out, learned->machine.page_bytes, HAK_LEARNED_COST_MOST);
    hak_text_add(&out, " ");
    write_hex(&out, learned->machine.class_table);
    for (uint32_t i = 0; i < learned->count; i++) {
        const struct learned_program *program = &learned->programs[i];
        hak_text_add(&out, "program ");
        hak_text_add(&out, program->name);
        hak_text_add(&out, "\nfirst_second");
        hak_text_add_bounded(&out, program->runs, HAK_LEARNED_RUNS_MOST);
        hak_text_add_bounded(&out, program->first_second_bytes, HAK_LEARNED_COST_MOST);
        hak_text_add(&out, "\n");
        for (int log = 0; log < LEARNED_LOG_COUNT; log++)
            hak_keep_line_write(&out, log_words[log], &program->logs[log]);
        for (uint32_t match = 0; match < program->match_count; match++)
            hak_match_line_write(&out, &program->matches[match]);
        for (uint32_t site = 0; site < program->site_count; site++)
            hak_site_line_write(&out, &program->sites[site]);
        hak_size_lines_write(&out, &program->sizes);
    }
    uint32_t sum = hak_checksum(text, out.used);
    hak_text_add(&out, CHECKSUM_WORD);
    write_hex(&out, sum);
    return out.used;
}

void hak_learned_name(char *name, const char *called)
{
    size_t used = 0;
    for (; *called != '\0' && used < HAK_LEARNED_NAME_BYTES - 1; called++)
        name[used++] = *called > ' ' && *called < 0x7f ? *called : '?';
    if (used == 0)
        name[used++] = '?';
    name[used] = '\0';
}

const struct learned_program *hak_learned_find(const struct learned *learned, const char *name)
{
    for (uint32_t i = 0; i < learned->count; i++)
        if (strcmp(learned->programs[i].name, name) == 0)
            return &learned->programs[i];
    return NULL;
}

/* Drops the excess, starting with the programs that ended first, and with what was learned. */
static void drop_over(struct learned *learned, int lines)
{
    uint32_t over = excess_of(learned, lines);
    for (int all = 0; all <= 1; all++)
        for (uint32_t i = learned->count; i > 0 && over > 0; i--)
            over -= (uint32_t)hak_least(
                over, drop_lines(&learned->programs[i - 1], lines, over, all != 0));
}

void hak_learned_put(struct learned *learned, const struct learned_program *program)
{
    const struct learned_program *known = hak_learned_find(learned, program->name);
    uint32_t at = known != NULL ? (uint32_t)(known - learned->programs) : learned->count;
    if (at == HAK_LEARNED_PROGRAMS_MOST)
        at--;
    else if (known == NULL)
        learned->count++;
    for (; at > 0; at--)
        learned->programs[at] = learned->programs[at - 1];
    learned->programs[0] = *program;
    for (int lines = 0; lines < LINES_COUNT; lines++)
        drop_over(learned, lines);
}

void hak_learned_put_match(struct learned_program *program, const struct match_line *line)
{
    struct match_line *place = find_match(program, line);
    program->match_count += place == &program->matches[program->match_count];
    *place = *line;
}

void hak_learned_drop_site(struct learned_program *program, uint32_t index)
{
    program->site_count--;
    for (; index < program->site_count; index++)
        program->sites[index] = program->sites[index + 1];
}

bool hak_learned_put_site(struct learned_program *program, const struct site_line *line)
{
    struct site_line *place = find_site(program, line);
    if (place == &program->sites[HAK_LEARNED_SITES_MOST])
        return false;
    program->site_count += place == &program->sites[program->site_count];
    *place++ = *line;
    /* A line of no build is that of each: it replaces several. */
    for (struct site_line *i = place; i != &program->sites[program->site_count]; i++)
        if (!hak_site_line_is_same(i, line))
            *place++ = *i;
    program->site_count = (uint32_t)(place - program->sites);
    return true;
}

/* Evidence under different settings cannot be added: the larger one is kept. */
static void add_log(struct keep_evidence *log, const struct keep_evidence *other)
{
    bool is_more = other->episodes > log->episodes;
    if (log->decay_ms != other->decay_ms || log->fault_ms != other->fault_ms) {
        if (is_more)
            *log = *other;
        return;
    }
    if (is_more)
        log->choice = other->choice;
    log->episodes = (uint32_t)hak_least(log->episodes + other->episodes, HAK_LEARNED_RUNS_MOST);
    for (uint32_t i = 0; i < HAK_KEEP_CHOICES; i++)
        log->costs[i] = hak_least(log->costs[i] + other->costs[i], HAK_LEARNED_COST_MOST);
}

/* bytes * part / whole, without overflow of the product. */
static uint64_t share(uint64_t bytes, uint32_t part, uint32_t whole)
{
    return bytes / whole * part + bytes % whole * part / whole;
}

/* A rule of the user wins, then the one with more evidence. */
static void add_site(struct learned_program *program, const struct site_line *line)
{
    struct site_line *known = find_site(program, line);
    if (known == &program->sites[program->site_count]) {
        hak_learned_put_site(program, line);
        return;
    }
    if (line->judged > known->judged && known->state < RULE_PINNED)
        known->state = line->state;
    known->judged =
        (uint32_t)hak_least((uint64_t)known->judged + line->judged, HAK_SITE_COUNT_MOST);
    known->survivors =
        (uint32_t)hak_least((uint64_t)known->survivors + line->survivors, known->judged);
}

static void add_sizes(struct learned_program *program, const struct size_lines *other)
{
    struct size_spread sum = {.watched_ms = 0};
    hak_size_spread_add(&sum, &program->sizes);
    hak_size_spread_add(&sum, other);
    hak_size_spread_cut(&sum, &program->sizes);
}

void hak_learned_add(struct learned_program *program, const struct learned_program *other)
{
    uint32_t runs = program->runs + other->runs;
    if (runs != 0)
        program->first_second_bytes = share(program->first_second_bytes, program->runs, runs) +
                                      share(other->first_second_bytes, other->runs, runs);
    program->runs = (uint32_t)hak_least(runs, HAK_LEARNED_RUNS_MOST);
    for (int i = 0; i < LEARNED_LOG_COUNT; i++)
        add_log(&program->logs[i], &other->logs[i]);
    for (uint32_t i = 0; i < other->match_count; i++) {
        struct match_line *known = find_match(program, &other->matches[i]);
        if (known == &program->matches[program->match_count])
            hak_learned_put_match(program, &other->matches[i]);
        else
            hak_match_line_add(known, &other->matches[i]);
    }
    for (uint32_t i = 0; i < other->site_count; i++)
        add_site(program, &other->sites[i]);
    add_sizes(program, &other->sizes);
}
