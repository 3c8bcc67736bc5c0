/* SPDX-License-Identifier: MIT */
/* tests/unit/os/rules_test.c - a rule that was kept is used only while the tables say the same. If
 * this fails, stacks are wrong, or read where they should not be, after a library was loaded where
 * another one had been. */
#include "os/rules.h"

#include "../../check.h"
#include "threads.h"

#include <string.h>

#define FUNCTIONS 3000u
#define CODE_BYTES 16u
#define OWN_BYTES 24u
#if defined(__aarch64__)
#define RETURN_REGISTER 30u
#else
#define RETURN_REGISTER 16u
#endif

/* A file's tables, made by hand: functions whose frames differ in size. */
static struct {
    struct {
        unsigned char encodings[4];
        uint32_t section, count;
        int32_t pairs[FUNCTIONS][2];
    } header;
    uint32_t unused;
    unsigned char common[24];
    unsigned char own[FUNCTIONS][OWN_BYTES];
    unsigned char code[FUNCTIONS * CODE_BYTES];
} file __attribute__((aligned(16)));

static void put(unsigned char *to, int64_t value)
{
    int32_t narrow = (int32_t)value;
    memcpy(to, &narrow, sizeof narrow);
}

/* The function's frame has so many words. */
static void describe(uint32_t i, uint32_t words)
{
    unsigned char *own = file.own[i];
    put(own, OWN_BYTES - 4);
    put(own + 4, own + 4 - file.common);
    put(own + 8, file.code + i * CODE_BYTES - (own + 8));
    put(own + 12, CODE_BYTES);
    own[16] = 0;
    own[17] = 0x0e; /* def_cfa_offset */
    own[18] = (unsigned char)(words * sizeof(uintptr_t));
}

static void make_file(uint32_t add)
{
    /* clang-format off */
    static const unsigned char common[24] = {
        20, 0, 0, 0, 0, 0, 0, 0, 1,                      /* length, kind, version */
        'z', 'R', 0, 1, 0x78, RETURN_REGISTER, 1, 0x1b,  /* augmentation, alignments, encoding */
        0x0c, HAK_DWARF_STACK_POINTER, 8, 0x80 | RETURN_REGISTER, 1}; /* def_cfa, offset */
    /* clang-format on */
    static const unsigned char encodings[4] = {1, 0x1b, 3, 0x3b};
    memcpy(file.common, common, sizeof common);
    memcpy(file.header.encodings, encodings, sizeof encodings);
    file.header.count = FUNCTIONS;
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        unsigned char *header = (unsigned char *)&file.header;
        file.header.pairs[i][0] = (int32_t)(file.code + i * CODE_BYTES - header);
        file.header.pairs[i][1] = (int32_t)(file.own[i] - header);
        describe(i, 1 + (i + add) % 15);
    }
}

static bool read_stack(uintptr_t address, uintptr_t *word)
{
    *word = address * 3;
    return true;
}

/* So many words are in the frame of the function; 0: nobody knows. */
static uint32_t words_of(uint32_t i)
{
    uintptr_t stack = 1 << 20;
    struct dwarf_frame frame = {.address = (uintptr_t)file.code + i * CODE_BYTES + 5,
                                .read = read_stack};
    frame.registers[HAK_DWARF_STACK_POINTER] = stack;
    if (!hak_dwarf_step(&frame, (const unsigned char *)&file.header))
        return 0;
    uintptr_t cfa = frame.registers[HAK_DWARF_STACK_POINTER];
    CHECK_EQ(frame.address, (cfa - sizeof(uintptr_t)) * 3);
    return (uint32_t)((cfa - stack) / sizeof(uintptr_t));
}

static bool is_kept(uint32_t i)
{
    struct frame_rule rule;
    return hak_rules_find((const unsigned char *)&file.header,
                          (uintptr_t)file.code + i * CODE_BYTES + 4, &rule);
}

TEST(a_rule_is_kept_after_the_first_step)
{
    make_file(0);
    CHECK(!is_kept(7));
    CHECK_EQ(words_of(7), 8);
    CHECK(is_kept(7));
    CHECK_EQ(words_of(7), 8);
}

TEST(another_file_at_the_same_addresses_gets_its_own_rules)
{
    make_file(0);
    CHECK_EQ(words_of(7), 8);
    make_file(1); /* the functions' entries differ */
    CHECK(!is_kept(7));
    CHECK_EQ(words_of(7), 9);
    file.common[13] = 0x70; /* the common entry differs: addresses are in other places */
    CHECK(!is_kept(7));
    file.common[13] = 0x78;
    CHECK_EQ(words_of(7), 9);
    CHECK(is_kept(7));
    file.header.pairs[7][1] = file.header.pairs[8][1]; /* the table differs */
    CHECK(!is_kept(7));
    make_file(1);
    file.header.count = 5; /* and ends before */
    CHECK(!is_kept(7));
    CHECK_EQ(words_of(7), 0);
}

/* Functions whose rules take one place, each with a frame of its own size. */
static uint32_t rivals[16];
static uint32_t rival_count;

static void find_rivals_of(uint32_t first)
{
    rival_count = 0;
    rivals[rival_count++] = first;
    for (uint32_t i = 0; i < FUNCTIONS && rival_count < 4; i++) {
        words_of(first);
        words_of(i);
        if (!is_kept(first) && i % 15 != rivals[rival_count - 1] % 15)
            rivals[rival_count++] = i;
    }
}

/* Which functions share a place depends on where the program was loaded. */
static void find_rivals(void)
{
    for (uint32_t first = 0; rival_count < 2 && first < FUNCTIONS; first++)
        find_rivals_of(first);
    CHECK(rival_count >= 2);
}

static void *step_in_turns(void *first)
{
    for (uintptr_t i = (uintptr_t)first; i < 100000; i++) {
        uint32_t function = rivals[i / 2 % rival_count];
        CHECK_EQ(words_of(function), 1 + function % 15);
    }
    return NULL;
}

TEST(threads_that_take_each_other_s_places_see_no_torn_rule)
{
    pthread_t threads[3];
    make_file(0);
    find_rivals();
    start_threads(threads, 3, step_in_turns);
    join_threads(threads, 3);
}
