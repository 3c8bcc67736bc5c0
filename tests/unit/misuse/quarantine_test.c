/* SPDX-License-Identifier: MIT */
#include "../../check.h"

#include "misuse/quarantine.h"

static struct quarantine quarantine;

TEST(the_first_to_enter_is_the_first_to_leave)
{
    CHECK(hak_quarantine_first(&quarantine) == NULL);
    static char blocks[3 * HAK_QUARANTINE_BLOCKS];
    size_t in = 0, out = 0;
    while (out < sizeof blocks) {
        for (; in < sizeof blocks && !hak_quarantine_is_full(&quarantine); in++)
            hak_quarantine_push(&quarantine, &blocks[in], in % 7);
        for (uint32_t i = 0; i < quarantine.count; i += 99)
            CHECK(hak_quarantine_at(&quarantine, i) == &blocks[out + i]);
        for (int i = 0; i < 100 && hak_quarantine_first(&quarantine) != NULL; i++, out++) {
            CHECK(hak_quarantine_first(&quarantine) == &blocks[out]);
            hak_quarantine_pop(&quarantine, out % 7);
        }
    }
    CHECK_EQ(quarantine.bytes, 0);
    CHECK_EQ(quarantine.count, 0);
}
