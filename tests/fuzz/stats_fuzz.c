/* SPDX-License-Identifier: MIT */
/* tests/fuzz/stats_fuzz.c - statistics of any numbers in buffers of any size: the text is lines of
 * `name: number` cut where the buffer ends, the XML is balanced and each piece within its bound. */
#include "fuzz.h"
#include "hakmem/hakmem.h"
#include "observe/emit.h"

#include <inttypes.h>

#define XML_BYTES (64 * HAK_KIB)

static struct snapshot snapshot;
static char whole[HAK_EMIT_TEXT_BYTES];
static char xml[XML_BYTES];

/* Numbers as extreme as the input likes; an input that is short repeats itself. */
static void snapshot_fill(struct input *input)
{
    unsigned char *place = (unsigned char *)&snapshot;
    const unsigned char *first = input->next;
    for (size_t i = 0; i < sizeof snapshot; i++) {
        if (input_is_over(input))
            input->next = first;
        place[i] = (unsigned char)input_byte(input);
    }
    snapshot.class_count = snapshot.class_count % (HAK_SNAPSHOT_CLASSES + 1);
}

static void text_check(size_t room_bytes)
{
    struct text all = {.start = whole, .bytes = sizeof whole};
    hak_emit_text(&snapshot, &all);
    CHECK(all.used <= sizeof whole);
    char *cut_text = malloc(room_bytes + 1);
    struct text cut = {.start = cut_text, .bytes = room_bytes};
    hak_emit_text(&snapshot, &cut);
    CHECK(cut.used <= room_bytes);
    CHECK_EQ(memcmp(cut_text, whole, cut.used), 0);
    free(cut_text);
}

/* Each line reads back as the number that it was made of. */
static void number_check(const char *name, uint64_t number)
{
    char line[128];
    int bytes = snprintf(line, sizeof line, "%s: %" PRIu64 "\n", name, number);
    CHECK(memmem(whole, sizeof whole, line, (size_t)bytes) != NULL);
}

static void piece_take(void *target, const char *piece, size_t bytes)
{
    size_t *used = target;
    CHECK(bytes <= 512);
    CHECK(*used + bytes < sizeof xml);
    memcpy(xml + *used, piece, bytes);
    *used += bytes;
}

/* Every element that is opened is closed, in order; attributes are quoted. */
static void xml_check(void)
{
    size_t used = 0;
    hak_emit_xml(&snapshot, piece_take, &used);
    xml[used] = '\0';
    int depth = 0;
    for (const char *at = xml; (at = strchr(at, '<')) != NULL; at++) {
        const char *end = strchr(at, '>');
        CHECK(end != NULL);
        CHECK(memchr(at + 1, '<', (size_t)(end - at - 1)) == NULL);
        uint32_t quotes = 0;
        for (const char *i = at; i < end; i++)
            quotes += *i == '"';
        CHECK_EQ(quotes % 2, 0);
        depth += at[1] == '/' ? -1 : end[-1] == '/' ? 0 : 1;
        CHECK(depth >= 0);
    }
    CHECK_EQ(depth, 0);
}

/* A caller of another version has a smaller or larger struct. */
static void struct_check(size_t bytes)
{
    struct hakmem_stats all;
    CHECK_EQ(hakmem_stats_get(&all, sizeof all), 0);
    unsigned char *place = malloc(bytes + 1);
    memset(place, 0xa5, bytes + 1);
    CHECK_EQ(hakmem_stats_get((void *)place, bytes), bytes == 0 ? EINVAL : 0);
    CHECK_EQ(place[bytes], 0xa5);
    for (size_t i = sizeof all; i < bytes; i++)
        CHECK_EQ(place[i], 0);
    free(place);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t byte_count)
{
    struct input input = {bytes, bytes + byte_count};
    size_t room_bytes = input_below(&input, HAK_EMIT_TEXT_BYTES + 100);
    size_t struct_bytes = input_below(&input, 2 * sizeof(struct hakmem_stats));
    snapshot_fill(&input);
    text_check(room_bytes);
#define X(name, meaning) number_check(#name, snapshot.name);
    HAK_SNAPSHOT_TABLE(X)
#undef X
    xml_check();
    struct_check(struct_bytes);
    return 0;
}
