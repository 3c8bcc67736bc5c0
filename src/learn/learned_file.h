/* SPDX-License-Identifier: MIT */
/* learn/learned_file.h - what programs learned, as text: the file that option `profile` names.
 *
 * Owns        the form of the text. The program that ended last comes first; each has four lines,
 *             one for each value that was tried in matches (learn/match_line.h), one for each rule
 *             of a call site (learn/site_line.h), and what sizes it holds (learn/size_spread.h):
 *
 *                 hakmem learned 1
 *                 machine PAGE_BYTES CLASS_TABLE
 *                 program NAME
 *                 first_second RUNS BYTES
 *                 big_cache CHOICE EPISODES DECAY_MS FAULT_MS COST...
 *                 slabs CHOICE EPISODES DECAY_MS FAULT_MS COST...
 *                 match ROW VALUE RATING MATCHES WON LOST GAIN HARM
 *                 site STATE BLOCK_BYTES JUDGED SURVIVORS PLACE CALLER [CALLER]
 *                 sizes WATCHED_MS SAMPLES
 *                 size NEED_BYTES BLOCK_MS SLACK_MS
 *                 crc32 CHECKSUM
 *
 * Invariants  a text that is read is written again as the same bytes: one space between words, no
 *             leading zeros, no name twice, nothing unknown. Nothing outside the text is read, and
 *             nothing is allocated. What is refused leaves an empty record.
 * Threads     one at a time reads a file; the rest are pure functions.
 * Tests       tests/unit/learn/learned_file_test.c, tests/fuzz/learned_fuzz.c
 */
#ifndef HAK_LEARN_LEARNED_FILE_H
#define HAK_LEARN_LEARNED_FILE_H

#include "learn/keep_line.h"
#include "learn/match_line.h"
#include "learn/site_line.h"
#include "learn/size_spread.h"

#define HAK_LEARNED_BYTES_MOST 36864u
#define HAK_LEARNED_PROGRAMS_MOST 32u
#define HAK_LEARNED_NAME_BYTES 64u
/* Values of all programs: those of the programs that ended first go. */
#define HAK_LEARNED_ALL_MATCHES_MOST 24u
/* Rules of one program, and of all: those of the programs that ended first go, but for what the
 * user said; that goes last. */
#define HAK_LEARNED_SITES_MOST 16u
#define HAK_LEARNED_ALL_SITES_MOST 48u

enum learned_log { LEARNED_BIG_CACHE, LEARNED_SLABS, LEARNED_LOG_COUNT };

struct learned_program {
    char name[HAK_LEARNED_NAME_BYTES];
    uint32_t runs;               /* that the next number comes from, halved at each load */
    uint64_t first_second_bytes; /* what was in use at most in the first second */
    struct keep_evidence logs[LEARNED_LOG_COUNT];
    uint32_t match_count;
    struct match_line matches[HAK_MATCH_LINES_MOST];
    uint32_t site_count;
    struct site_line sites[HAK_LEARNED_SITES_MOST];
    struct size_lines sizes;
};

/* What the numbers depend on beside the program. */
struct learned_machine {
    uint64_t page_bytes;
    uint32_t class_table; /* checksum of the size classes */
};

struct learned {
    struct learned_machine machine;
    uint32_t count;
    struct learned_program programs[HAK_LEARNED_PROGRAMS_MOST];
};

enum learned_verdict {
    LEARNED_READ,
    LEARNED_TOO_LONG,
    LEARNED_FOREIGN, /* no such file at all */
    LEARNED_OTHER_VERSION,
    LEARNED_WRONG_CHECKSUM,
    LEARNED_MALFORMED,
    LEARNED_OTHER_PAGE,
    LEARNED_OTHER_CLASSES
};

/* Reads a text, of this machine or another; one of another version that has other size classes, if
 * its sizes can be read here. */
enum learned_verdict hak_learned_read(struct learned *learned, const char *text, size_t bytes);

/* Whether what was read is of this machine and version: LEARNED_READ, or one of the last two. */
enum learned_verdict hak_learned_fits(const struct learned *learned, uint64_t page_bytes);

/* What a verdict says to people. */
const char *hak_learned_verdict_text(enum learned_verdict verdict);

/* An empty record of this version. */
void hak_learned_begin(struct learned *learned, uint64_t page_bytes);

/* Writes the text to HAK_LEARNED_BYTES_MOST bytes; returns its length. */
size_t hak_learned_write(const struct learned *learned, char *text);

/* Makes a name of what a program is called: printable, without spaces, cut. */
void hak_learned_name(char *name, const char *called);

/* NULL: the program is not there. */
const struct learned_program *hak_learned_find(const struct learned *learned, const char *name);

/* Puts the program first, in place of what was known of it; the last one goes if all are taken.
 * Sizes have what room the rest leaves: the programs that ended first lose all of theirs, since a
 * part would be another spread. */
void hak_learned_put(struct learned *learned, const struct learned_program *program);

/* What is known of a value replaces what was. */
void hak_learned_put_match(struct learned_program *program, const struct match_line *line);

/* The rule replaces what was known of its site. False: there is no room. */
bool hak_learned_put_site(struct learned_program *program, const struct site_line *line);

/* The rest moves up. */
void hak_learned_drop_site(struct learned_program *program, uint32_t index);

/* Adds what another file knows of the same program. */
void hak_learned_add(struct learned_program *program, const struct learned_program *other);

#endif
