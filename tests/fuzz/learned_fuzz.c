/* SPDX-License-Identifier: MIT */
/* tests/fuzz/learned_fuzz.c - any bytes as a file of what was learned, as they are and with a right
 * checksum, and as a line of an answer: nothing outside them is read, and what is read is written
 * again as the same bytes. */
#include "fuzz.h"

#include "learn/effect_line.h"
#include "learn/learned_file.h"
#include "learn/learned_halve.h"

#include <stdio.h>

#define LAST_LINE_BYTES 15u /* crc32 01234567 and the end of the line */

static uint32_t checksum(const char *bytes, size_t count)
{
    uint32_t sum = UINT32_MAX;
    for (size_t i = 0; i < count; i++) {
        sum ^= (unsigned char)bytes[i];
        for (int bit = 0; bit < 8; bit++)
            sum = sum >> 1 ^ (sum & 1 ? 0xedb88320u : 0);
    }
    return ~sum;
}

static void read_it(const char *bytes, size_t count)
{
    static char written[HAK_LEARNED_BYTES_MOST];
    static struct learned learned;
    enum learned_verdict verdict = hak_learned_read(&learned, bytes, count);
    CHECK(hak_learned_verdict_text(verdict) != NULL);
    if (verdict != LEARNED_READ) {
        CHECK_EQ(learned.count, 0);
        return;
    }
    CHECK_EQ(hak_learned_write(&learned, written), count);
    CHECK(memcmp(written, bytes, count) == 0);
    for (uint32_t i = 0; i < learned.count; i++) {
        struct learned_program program = learned.programs[i];
        hak_learned_halve(&program);
        hak_learned_add(&program, &learned.programs[0]);
        hak_learned_put(&learned, &program);
    }
    size_t again = hak_learned_write(&learned, written);
    CHECK_EQ(hak_learned_read(&learned, written, again), LEARNED_READ);
}

/* What an answer about rules has beside the lines of files. */
static void read_effect(const char *bytes, size_t count)
{
    char written[HAK_EFFECT_LINE_BYTES];
    struct text text = {.start = written, .bytes = sizeof written};
    struct effect_line line;
    size_t used = hak_effect_line_read(&line, bytes, count);
    CHECK(used <= count);
    if (used == 0)
        return;
    hak_effect_line_write(&text, &line);
    CHECK_EQ(text.used, used);
    CHECK(memcmp(written, bytes, used) == 0);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t byte_count)
{
    /* A block of its own, so that a byte read beyond it is noticed. */
    char *sealed = malloc(byte_count + LAST_LINE_BYTES);
    char line[LAST_LINE_BYTES + 1];
    CHECK(sealed != NULL);
    memcpy(sealed, bytes, byte_count);
    read_it(sealed, byte_count);
    read_effect(sealed, byte_count);
    snprintf(line, sizeof line, "crc32 %08x\n", checksum(sealed, byte_count));
    memcpy(sealed + byte_count, line, LAST_LINE_BYTES);
    read_it(sealed, byte_count + LAST_LINE_BYTES);
    free(sealed);
    return 0;
}
