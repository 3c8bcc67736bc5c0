/* SPDX-License-Identifier: MIT */
/* tests/unit/learn/learned_file_test.c - a file of what was learned is read as it was written, and
 * refused if anything in it is another. If this fails, a damaged file sets numbers, or a program
 * forgets what it learned. */
#include "learn/learned_file.h"
#include "learn/learned_halve.h"

#include "check.h"

#include <string.h>

static struct learned learned, again;
static char text[HAK_LEARNED_BYTES_MOST + 1], other[HAK_LEARNED_BYTES_MOST + 1];

static struct learned_program program_of(const char *name, uint64_t number)
{
    struct learned_program program = {.runs = 7, .first_second_bytes = number};
    hak_learned_name(program.name, name);
    for (uint32_t log = 0; log < LEARNED_LOG_COUNT; log++) {
        struct keep_evidence *seen = &program.logs[log];
        *seen = (struct keep_evidence){.decay_ms = 125, .fault_ms = 1400, .episodes = 20 + log};
        seen->choice = 6 + log;
        for (uint32_t i = 0; i < HAK_KEEP_CHOICES; i++)
            seen->costs[i] = number + i;
    }
    return program;
}

/* So many lines of sizes, as long as they can be. */
static struct size_lines sizes_of(uint32_t count)
{
    struct size_lines sizes = {.watched_ms = HAK_SIZE_NUMBER_MOST, .count = count};
    sizes.samples = HAK_SIZE_NUMBER_MOST;
    for (uint32_t i = 0, cell = HAK_SIZE_CELLS; i < count; cell--)
        if (hak_size_cell_need(cell - 1) != 0)
            sizes.lines[count - ++i] = (struct size_line){
                hak_size_cell_need(cell - 1), {HAK_SIZE_NUMBER_MOST, HAK_SIZE_NUMBER_MOST}};
    return sizes;
}

static size_t write_two(void)
{
    struct learned_program a = program_of("alpha", 1000), b = program_of("beta", 2000);
    const struct match_line tried[] = {
        {KNOB_flush_keep_percent, 1, 1480, 9, 2, 5, 800, 2000},
        {KNOB_big_cache_scale_percent, 2, 1520, 12, 8, 1, 9000, 40},
    };
    hak_learned_put_match(&b, &tried[0]);
    hak_learned_put_match(&b, &tried[1]);
    b.sizes = (struct size_lines){.watched_ms = 900, .samples = 40, .count = 2};
    b.sizes.lines[0] = (struct size_line){112, {5000, 300}};
    b.sizes.lines[1] = (struct size_line){2048, {70, 0}};
    hak_learned_begin(&learned, 4096);
    hak_learned_put(&learned, &a);
    hak_learned_put(&learned, &b);
    return hak_learned_write(&learned, text);
}

/* The same computed another way: bit by bit. */
static uint32_t crc32_by_bits(const char *bytes, size_t count)
{
    uint32_t sum = UINT32_MAX;
    for (size_t i = 0; i < count; i++) {
        sum ^= (unsigned char)bytes[i];
        for (int bit = 0; bit < 8; bit++)
            sum = sum >> 1 ^ (sum & 1 ? 0xedb88320u : 0);
    }
    return ~sum;
}

/* Puts a right checksum below what was changed. */
static size_t seal(size_t bytes)
{
    char *last = text + bytes - 15;
    char line[32];
    CHECK(memcmp(last, "crc32 ", 6) == 0);
    snprintf(line, sizeof line, "crc32 %08x\n", crc32_by_bits(text, bytes - 15));
    memcpy(last, line, 15);
    return bytes;
}

/* Replaces a word of the text. */
static size_t with(const char *word, const char *replacement)
{
    size_t bytes = write_two();
    text[bytes] = '\0';
    char *at = strstr(text, word);
    CHECK(at != NULL);
    size_t rest = (size_t)(at - text) + strlen(word);
    snprintf(other, sizeof other, "%s", text + rest);
    strcpy(at, replacement);
    strcat(at, other);
    return seal(strlen(text));
}

static enum learned_verdict read_text(size_t bytes)
{
    enum learned_verdict verdict = hak_learned_read(&again, text, bytes);
    if (verdict != LEARNED_READ)
        CHECK_EQ(again.count, 0);
    return verdict;
}

TEST(a_written_file_is_read_back)
{
    size_t bytes = write_two();
    CHECK_EQ(read_text(bytes), LEARNED_READ);
    CHECK_EQ(hak_learned_fits(&again, 4096), LEARNED_READ);
    CHECK(memcmp(&learned, &again, sizeof learned) == 0);
    CHECK_EQ(hak_learned_write(&again, other), bytes);
    CHECK(memcmp(text, other, bytes) == 0);
    CHECK_STR(again.programs[0].name, "beta");
    CHECK_EQ(seal(bytes), bytes);
    CHECK(memcmp(text, other, bytes) == 0);
}

TEST(every_changed_byte_is_noticed)
{
    size_t bytes = write_two();
    for (size_t i = 0; i < bytes; i++)
        for (int bit = 0; bit < 8; bit++) {
            text[i] = (char)(text[i] ^ 1 << bit);
            CHECK(read_text(bytes) != LEARNED_READ);
            text[i] = (char)(text[i] ^ 1 << bit);
        }
    CHECK_EQ(read_text(bytes), LEARNED_READ);
}

TEST(every_cut_is_noticed)
{
    size_t bytes = write_two();
    for (size_t i = 0; i < bytes; i++)
        CHECK(read_text(i) != LEARNED_READ);
}

TEST(each_refusal_has_its_reason)
{
    CHECK_EQ(read_text(with("hakmem", "hokmem")), LEARNED_FOREIGN);
    CHECK_EQ(read_text(with("learned 1\n", "learned 2\n")), LEARNED_OTHER_VERSION);
    CHECK_EQ(read_text(HAK_LEARNED_BYTES_MOST + 1), LEARNED_TOO_LONG);
    size_t bytes = write_two();
    text[bytes - 2] = text[bytes - 2] == '0' ? '1' : '0';
    CHECK_EQ(read_text(bytes), LEARNED_WRONG_CHECKSUM);
    CHECK_EQ(read_text(write_two()), LEARNED_READ);
    CHECK_EQ(hak_learned_fits(&again, 16384), LEARNED_OTHER_PAGE);
    again.machine.class_table ^= 1;
    CHECK_EQ(hak_learned_fits(&again, 4096), LEARNED_OTHER_CLASSES);
    CHECK_EQ(read_text(with("machine 4096", "machine 16384")), LEARNED_READ);
    CHECK_EQ(hak_learned_fits(&again, 4096), LEARNED_OTHER_PAGE);
}

TEST(sizes_of_other_classes_are_no_fault_of_the_file)
{
    with("size 112 ", "size 113 ");
    CHECK_EQ(read_text(strlen(text)), LEARNED_MALFORMED);
    char *table = strstr(text, "machine 4096 ") + strlen("machine 4096 ");
    *table = *table == '0' ? '1' : '0';
    CHECK_EQ(read_text(seal(strlen(text))), LEARNED_OTHER_CLASSES);
}

TEST(sealed_but_malformed_files_are_refused)
{
    static const char *const changes[][2] = {
        {"machine ", "machine  "},
        {"machine 4096", "machine 04096"},
        {"machine 4096", "machine -1"},
        {"program beta", "program alpha"},
        {"program beta", "program "},
        {"program beta", "program be ta"},
        {"second 7 ", "second 1000001 "},
        {"second 7 2000\n", "second 7\n"},
        {"cache 6", "cache 10"},
        {"slabs 7 ", "slabs 7 7 "},
        {"slabs", "slab"},
        {" 2008\n", " 2008 \n"},
        {" 2008\n", " 2008\n\n"},
        {" 2008\n", " 99999999999999999999\n"},
        {" 2008\n", " 1125899906842625\n"},
        {"program beta\n", "program beta\r\n"},
        {"sizes 900 40\n", "sizes 900\n"},
        {"size 112 ", "size 100 "},
        {"size 2048 ", "size 96 "},
    };
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        CHECK_EQ(read_text(with(changes[i][0], changes[i][1])), LEARNED_MALFORMED);
    CHECK_EQ(read_text(with(" 2008\n", " 1125899906842624\n")), LEARNED_READ);
}

/* As many rules as there may be, of three places each. */
static void put_longest_sites(struct learned_program *program)
{
    struct site_line line = {.state = RULE_FORBIDDEN,
                             .block_bytes = 4096,
                             .judged = HAK_SITE_COUNT_MOST,
                             .survivors = HAK_SITE_COUNT_MOST};
    for (uint32_t i = 0; i < HAK_SITE_FRAMES; i++) {
        memset(line.places[i].module, 'm', sizeof line.places[i].module - 1);
        line.places[i].offset = HAK_SITE_OFFSET_MOST;
        line.places[i].build_id = UINT64_MAX;
    }
    for (uint32_t i = 0; i < HAK_LEARNED_SITES_MOST; i++, line.places[2].offset--)
        CHECK(hak_learned_put_site(program, &line));
    CHECK(!hak_learned_put_site(program, &line));
}

TEST(a_full_record_fits_and_the_last_one_goes)
{
    char name[100];
    hak_learned_begin(&learned, UINT64_MAX);
    for (uint32_t i = 0; i < HAK_LEARNED_PROGRAMS_MOST + 1; i++) {
        snprintf(name, sizeof name, "%02u%090u", i, 1u);
        struct learned_program program = program_of(name, UINT64_MAX - 10);
        program.runs = program.logs[0].episodes = UINT32_MAX;
        program.logs[1].decay_ms = program.logs[1].fault_ms = UINT64_MAX;
        program.sizes = sizes_of(HAK_SIZE_LINES_MOST);
        put_longest_sites(&program);
        hak_learned_put(&learned, &program);
    }
    CHECK_EQ(learned.count, HAK_LEARNED_PROGRAMS_MOST);
    size_t bytes = hak_learned_write(&learned, text);
    CHECK(bytes < HAK_LEARNED_BYTES_MOST);
    CHECK_EQ(read_text(bytes), LEARNED_READ);
    CHECK_EQ(again.count, HAK_LEARNED_PROGRAMS_MOST);
    CHECK(memcmp(again.programs[0].name, "32", 2) == 0);
    CHECK_EQ(again.programs[0].sizes.count, HAK_SIZE_LINES_MOST);
    CHECK_EQ(again.programs[0].site_count, HAK_LEARNED_SITES_MOST);
    CHECK_EQ(again.programs[HAK_LEARNED_PROGRAMS_MOST - 1].sizes.count, 0);
    CHECK(memcmp(again.programs[HAK_LEARNED_PROGRAMS_MOST - 1].name, "01", 2) == 0);
}

/* The second place is the user's. */
static struct learned_program with_sites(const char *name)
{
    struct learned_program program = program_of(name, 1);
    struct site_line line = {.block_bytes = 64, .judged = 8, .places[0] = {"m", 1, 1}};
    for (uint32_t i = 0; i < HAK_LEARNED_SITES_MOST; i++, line.places[0].offset++) {
        line.state = i == 1 ? RULE_FORBIDDEN : RULE_ACTIVE;
        CHECK(hak_learned_put_site(&program, &line));
    }
    return program;
}

TEST(what_the_user_said_of_sites_goes_last)
{
    char name[8];
    hak_learned_begin(&learned, 4096);
    for (uint32_t i = 0; i < HAK_LEARNED_PROGRAMS_MOST; i++) {
        snprintf(name, sizeof name, "%u", i);
        struct learned_program program = with_sites(name);
        hak_learned_put(&learned, &program);
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < learned.count; i++) {
        const struct learned_program *program = &learned.programs[i];
        count += program->site_count;
        CHECK(program->site_count > 0);
        bool is_cut = program->site_count == 1;
        CHECK_EQ(program->sites[!is_cut].state, RULE_FORBIDDEN);
        CHECK_EQ(program->sites[!is_cut].places[0].offset, 2);
    }
    CHECK_EQ(count, HAK_LEARNED_ALL_SITES_MOST);
    CHECK_EQ(learned.programs[0].site_count, HAK_LEARNED_SITES_MOST);
    CHECK_EQ(read_text(hak_learned_write(&learned, text)), LEARNED_READ);
}

TEST(what_was_read_before_is_no_part_of_a_file)
{
    write_two();
    struct learned_program bare = program_of("bare", 3);
    CHECK_EQ(read_text(hak_learned_write(&learned, text)), LEARNED_READ);
    hak_learned_begin(&learned, 4096);
    hak_learned_put(&learned, &bare);
    CHECK_EQ(read_text(hak_learned_write(&learned, text)), LEARNED_READ);
    CHECK_EQ(again.count, 1);
    CHECK(memcmp(&again.programs[0], &bare, sizeof bare) == 0);
}

TEST(programs_that_are_not_there_are_not_touched)
{
    size_t bytes = write_two();
    struct learned_program *third = &again.programs[2];
    memset(third, 'x', sizeof *third);
    hak_learned_begin(&again, 4096);
    CHECK_EQ(again.count, 0);
    CHECK_EQ(read_text(bytes), LEARNED_READ);
    CHECK_EQ(read_text(bytes - 1), LEARNED_MALFORMED);
    for (size_t i = 0; i < sizeof *third; i++)
        CHECK_EQ(((const char *)third)[i], 'x');
}

TEST(a_program_is_there_once_and_first_when_it_was_put_last)
{
    write_two();
    struct learned_program alpha = program_of("alpha", 5);
    hak_learned_put(&learned, &alpha);
    CHECK_EQ(learned.count, 2);
    CHECK_EQ(learned.programs[0].first_second_bytes, 5);
    CHECK_STR(learned.programs[1].name, "beta");
}

TEST(names_are_one_word)
{
    char name[HAK_LEARNED_NAME_BYTES];
    hak_learned_name(name, "a b\n\xff");
    CHECK_STR(name, "a?b??");
    hak_learned_name(name, "");
    CHECK_STR(name, "?");
}

TEST(evidence_halves_until_it_is_forgotten)
{
    struct learned_program program = program_of("alpha", 1000);
    hak_learned_halve(&program);
    CHECK_EQ(program.runs, 4);
    CHECK_EQ(program.logs[0].episodes, 10);
    CHECK_EQ(program.logs[0].costs[2], 501);
    CHECK_EQ(program.logs[0].choice, 6);
    CHECK_EQ(program.first_second_bytes, 1000);
    for (int i = 0; i < 5; i++)
        hak_learned_halve(&program);
    CHECK_EQ(program.logs[0].choice, 0);
    CHECK_EQ(program.logs[0].costs[2], 0);
    CHECK_EQ(program.runs, 1);
    CHECK_EQ(program.first_second_bytes, 1000);
}

TEST(evidence_adds_up)
{
    struct learned_program a = program_of("a", 1000), b = program_of("a", 4000);
    a.runs = 2, b.runs = 1;
    b.logs[0].episodes = 30;
    b.logs[0].choice = 2;
    b.logs[1].decay_ms = 1000;
    hak_learned_add(&a, &b);
    CHECK_EQ(a.runs, 3);
    CHECK_EQ(a.first_second_bytes, 1999);
    CHECK_EQ(a.logs[0].episodes, 50);
    CHECK_EQ(a.logs[0].choice, 2);
    CHECK_EQ(a.logs[0].costs[1], 5002);
    CHECK_EQ(a.logs[1].episodes, 21);
    CHECK_EQ(a.logs[1].decay_ms, 125);
    a.logs[0].costs[0] = HAK_LEARNED_COST_MOST;
    hak_learned_add(&a, &a);
    CHECK_EQ(a.logs[0].costs[0], HAK_LEARNED_COST_MOST);
}

TEST(values_of_matches_are_kept_with_their_program)
{
    size_t bytes = write_two();
    CHECK_EQ(hak_learned_read(&again, text, bytes), LEARNED_READ);
    CHECK_EQ(again.programs[0].match_count, 2); /* beta */
    CHECK_EQ(again.programs[1].match_count, 0);
    CHECK_EQ(again.programs[0].matches[1].won, 8);
    hak_learned_halve(&again.programs[0]);
    CHECK_EQ(again.programs[0].match_count, 2);
    CHECK_EQ(again.programs[0].matches[1].gain, 3000); /* 9 to 1: 3 to 1 */
    for (int i = 0; i < 4; i++)
        hak_learned_halve(&again.programs[0]);
    CHECK_EQ(again.programs[0].match_count, 0);
}

TEST(a_value_stands_there_once)
{
    write_two();
    struct learned_program *beta = &learned.programs[0];
    beta->matches[1] = beta->matches[0];
    size_t bytes = hak_learned_write(&learned, text);
    CHECK_EQ(hak_learned_read(&again, text, bytes), LEARNED_MALFORMED);
}

TEST(values_of_the_programs_that_ended_first_go)
{
    hak_learned_begin(&learned, 4096);
    for (uint32_t i = 0; i < HAK_LEARNED_ALL_MATCHES_MOST; i++) {
        char name[16];
        snprintf(name, sizeof name, "p%u", i);
        struct learned_program program = program_of(name, i);
        hak_learned_put_match(&program, &(struct match_line){0, 1, 1500, 2, 1, 1, 1000, 1000});
        hak_learned_put_match(&program, &(struct match_line){0, 2, 1500, 2, 1, 1, 1000, 1000});
        hak_learned_put(&learned, &program);
    }
    CHECK_EQ(learned.programs[0].match_count, 2);
    CHECK_EQ(learned.programs[HAK_LEARNED_ALL_MATCHES_MOST / 2 - 1].match_count, 2);
    CHECK_EQ(learned.programs[HAK_LEARNED_ALL_MATCHES_MOST / 2].match_count, 0);
    size_t bytes = hak_learned_write(&learned, text);
    CHECK_EQ(hak_learned_read(&again, text, bytes), LEARNED_READ);
}

TEST(two_files_of_a_program_add_up_their_results_for_a_value)
{
    write_two();
    struct learned_program sum = learned.programs[0];
    hak_learned_add(&sum, &learned.programs[0]);
    CHECK_EQ(sum.match_count, 2);
    CHECK_EQ(sum.matches[1].matches, 24);
    CHECK_EQ(sum.matches[1].gain, 81000);
    hak_learned_add(&learned.programs[1], &learned.programs[0]);
    CHECK_EQ(learned.programs[1].match_count, 2);
}

TEST(sizes_are_kept_with_their_program_and_halve_and_add_up)
{
    size_t bytes = write_two();
    CHECK_EQ(hak_learned_read(&again, text, bytes), LEARNED_READ);
    struct learned_program beta = again.programs[0];
    CHECK_EQ(again.programs[1].sizes.count, 0);
    CHECK_EQ(beta.sizes.count, 2);
    CHECK_EQ(beta.sizes.lines[1].need_bytes, 2048);
    CHECK_EQ(beta.sizes.lines[0].cell.slack_ms, 300);
    hak_learned_halve(&beta);
    CHECK_EQ(beta.sizes.watched_ms, 450);
    CHECK_EQ(beta.sizes.lines[0].cell.block_ms, 2500);
    hak_learned_add(&beta, &again.programs[0]);
    CHECK_EQ(beta.sizes.watched_ms, 1350);
    CHECK_EQ(beta.sizes.samples, 60);
    CHECK_EQ(beta.sizes.lines[0].cell.block_ms, 7500);
}

TEST(sizes_of_the_programs_that_ended_first_go_as_a_whole)
{
    uint32_t kept = 0;
    hak_learned_begin(&learned, 4096);
    for (uint32_t i = 0; i < HAK_LEARNED_PROGRAMS_MOST; i++) {
        char name[16];
        snprintf(name, sizeof name, "p%u", i);
        struct learned_program program = program_of(name, i);
        program.sizes = sizes_of(40);
        hak_learned_put(&learned, &program);
        if (i < 3)
            CHECK_EQ(learned.programs[i].sizes.count, 40);
    }
    while (kept < learned.count && learned.programs[kept].sizes.count == 40)
        kept++;
    CHECK(kept >= 3 && kept < HAK_LEARNED_PROGRAMS_MOST);
    for (uint32_t i = kept; i < learned.count; i++)
        CHECK_EQ(learned.programs[i].sizes.count, 0);
    size_t bytes = hak_learned_write(&learned, text);
    CHECK(bytes < HAK_LEARNED_BYTES_MOST);
    CHECK_EQ(hak_learned_read(&again, text, bytes), LEARNED_READ);
    CHECK(memcmp(&learned, &again, sizeof learned) == 0);
}
