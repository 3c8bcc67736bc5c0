/* SPDX-License-Identifier: MIT */
#define MEMBERS "canary"
#include "../../attack/hardened.h"
#include "misuse/harden.h"

TEST(every_set_has_exact_states)
{
    CHECK(hak_harden_has(HARDEN_EXACT));
    CHECK(hak_harden_has(HARDEN_CANARY));
    CHECK(!hak_harden_has(HARDEN_ZERO));
    CHECK_ABORTS((hak_free(others[0] = hak_malloc(8)), hak_free(others[0])),
                 "hakmem: double free: pointer 0x");
}

TEST(canaries_differ_and_begin_with_0)
{
    static char blocks[64];
    for (int i = 1; i < 64; i++) {
        CHECK_EQ(hak_canary_of(&blocks[i]) & 0xff, 0);
        CHECK(hak_canary_of(&blocks[i]) != hak_canary_of(&blocks[0]));
    }
}

TEST(random_numbers_do_not_repeat_soon)
{
    uint64_t first = hak_random();
    for (int i = 0; i < 100000; i++)
        if (hak_random() == first)
            CHECK(!"repeated");
    CHECK(first != 0);
}
