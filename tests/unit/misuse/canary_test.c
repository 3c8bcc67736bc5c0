/* SPDX-License-Identifier: MIT */
#define MEMBERS "canary+zero"
#include "../../attack/hardened.h"
#include "misuse/canary.h"

TEST(a_canary_misses_no_byte_that_changes)
{
    static char block[128];
    for (size_t bytes = 0; bytes <= 120; bytes += 5) {
        hak_canary_write(block, bytes, sizeof block);
        CHECK(hak_canary_is_whole(block, bytes, sizeof block));
        for (size_t at = bytes; at < sizeof block && at < bytes + HAK_CANARY_BYTES_MOST; at++) {
            block[at] ^= 1;
            CHECK(!hak_canary_is_whole(block, bytes, sizeof block));
            block[at] ^= 1;
        }
    }
}

TEST(a_byte_that_is_not_0_is_found_wherever_it_is)
{
    static char bytes[300];
    for (size_t count = 0; count <= sizeof bytes; count += 7) {
        CHECK(hak_canary_is_zero(bytes, count));
        for (size_t at = 0; at < count; at++) {
            bytes[at] = 1;
            CHECK(!hak_canary_is_zero(bytes, count));
            bytes[at] = 0;
        }
    }
}

TEST(the_canary_of_a_live_block_is_looked_at_by_others)
{
    for (size_t bytes = 24; bytes < 5000; bytes += bytes / 2) {
        char *block = take_some(bytes);
        size_t capacity = hak_slab_at(block)->block_bytes;
        for (size_t at = bytes; at < capacity && at < bytes + HAK_CANARY_BYTES_MOST; at++) {
            CHECK(hak_canary_is_whole_now(block, capacity));
            block[at] ^= 1;
            CHECK(!hak_canary_is_whole_now(block, capacity));
            block[at] ^= 1;
        }
        block[bytes - 1] ^= 1; /* the program's own */
        CHECK(hak_canary_is_whole_now(block, capacity));
        hak_free(block);
        CHECK(hak_canary_is_whole_now(block, capacity)); /* it has none */
    }
}

TEST(the_end_of_a_live_block_is_known)
{
    char *block = take_some(40);
    CHECK(hak_canary_end_is_whole(block, 48, CANARY_FRESH_UNKNOWN));
    block[47] ^= 1;
    CHECK(!hak_canary_end_is_whole(block, 48, CANARY_FRESH_UNKNOWN));
    block[47] ^= 1;
    block[39] ^= 1; /* the program's own */
    CHECK(hak_canary_end_is_whole(block, 48, CANARY_FRESH_UNKNOWN));
}
