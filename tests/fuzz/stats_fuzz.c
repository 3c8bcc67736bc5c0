/* SPDX-License-Identifier: MIT */
/* tests/fuzz/stats_fuzz.c - statistics of any numbers in each form: raw and OpenMetrics are lines
 * that hold every number, JSON and XML are balanced, and each piece is within its bound. */
#include "fuzz.h"
#include "hakmem/hakmem.h"
#include "stats/emit.h"

#include <inttypes.h>

#define FORM_BYTES (256 * HAK_KIB)

static struct snapshot snapshot;
static char whole[FORM_BYTES];
static size_t whole_bytes;

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
    *(unsigned char *)&snapshot.is_exact &= 1;
    snapshot.class_count = snapshot.class_count % (HAK_SNAPSHOT_CLASSES + 1);
    snapshot.cache_count = snapshot.cache_count % (HAK_SNAPSHOT_CACHES + 1);
    snapshot.heap_count = snapshot.heap_count % (HAK_SNAPSHOT_HEAPS + 1);
}

static void piece_take(void *target, const char *piece, size_t bytes)
{
    (void)target;
    CHECK(bytes <= 512);
    CHECK(whole_bytes + bytes < sizeof whole);
    memcpy(whole + whole_bytes, piece, bytes);
    whole_bytes += bytes;
}

static void emit(enum emit_form form)
{
    whole_bytes = 0;
    hak_emit(form, &snapshot, piece_take, NULL);
    whole[whole_bytes] = '\0';
    CHECK(strlen(whole) == whole_bytes && whole_bytes > 0 && whole[whole_bytes - 1] == '\n');
}

/* Each line reads back as the number that it was made of, or as -1 for never. */
static void number_check(const char *name, uint64_t number)
{
    char line[128];
    int bytes = number == HAK_LINE_NEVER_MS
                    ? snprintf(line, sizeof line, "%s: -1\n", name)
                    : snprintf(line, sizeof line, "%s: %" PRIu64 "\n", name, number);
    CHECK(memmem(whole, whole_bytes, line, (size_t)bytes) != NULL);
}

/* One object on one line: brackets close in order, quotes come in pairs. */
static void json_check(void)
{
    char open[16];
    size_t depth = 0;
    bool is_quoted = false;
    CHECK(strchr(whole, '\n') == whole + whole_bytes - 1);
    for (const char *at = whole; *at != '\0'; at++) {
        is_quoted ^= *at == '"';
        if (is_quoted)
            continue;
        if (*at == '{' || *at == '[') {
            CHECK(depth < sizeof open);
            open[depth++] = *at;
        } else if (*at == '}' || *at == ']') {
            CHECK(depth > 0 && open[depth - 1] == (*at == '}' ? '{' : '['));
            depth--;
        }
    }
    CHECK(depth == 0 && !is_quoted);
}

/* Digits, perhaps with a point, or -1 for a time that never comes. */
static bool is_value(const char *text, size_t length)
{
    return strspn(text, "0123456789.") == length || (length == 2 && memcmp(text, "-1", 2) == 0);
}

/* Each line is a comment or `name value`, the last one the end. */
static void openmetrics_check(void)
{
    CHECK(whole_bytes > 6 && strcmp(whole + whole_bytes - 6, "# EOF\n") == 0);
    for (const char *at = whole; *at != '\0'; at = strchr(at, '\n') + 1) {
        const char *end = strchr(at, '\n');
        const char *space = memrchr(at, ' ', (size_t)(end - at));
        CHECK(space != NULL);
        CHECK(*at == '#' || is_value(space + 1, (size_t)(end - space - 1)));
    }
}

/* Every element that is opened is closed, in order; attributes are quoted. */
static void xml_check(void)
{
    int depth = 0;
    for (const char *at = whole; (at = strchr(at, '<')) != NULL; at++) {
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
    size_t struct_bytes = input_below(&input, 2 * sizeof(struct hakmem_stats));
    snapshot_fill(&input);
    emit(EMIT_TEXT);
    emit(EMIT_RAW);
#define X(name, meaning) number_check(#name, snapshot.name);
    HAK_SNAPSHOT_TABLE(X)
#undef X
    emit(EMIT_JSON);
    json_check();
    emit(EMIT_XML);
    xml_check();
    emit(EMIT_OPENMETRICS);
    openmetrics_check();
    struct_check(struct_bytes);
    return 0;
}
