/* SPDX-License-Identifier: MIT */
/* tests/unit/slab/slab_test.c - blocks leave a slab and come back; misuse is named. */
#include "check.h"
#include "heap/supply.h"
#include "process/start.h"
#include "region/tag_map.h"
#include "slab/slab_give.h"
#include "slabs.h"

static struct slab_owner owner = {.heap_id = 5};
static struct stat_block stats;
static void *blocks[HAK_SLAB_BLOCKS_MAX];

/* A new slab whose blocks have `bytes`. */
static struct slab *slab_of(size_t bytes)
{
    CHECK(hak_process_start());
    struct slab *slab = make_slab(hak_class_of(bytes), &owner, &stats);
    CHECK(slab != NULL);
    CHECK_EQ(slab->block_bytes, bytes);
    return slab;
}

/* A slab on memory that was used before. */
static struct slab *dirty_slab_of(size_t bytes)
{
    struct slab *first = slab_of(bytes);
    uintptr_t start = first->start;
    uint32_t count = hak_slab_take(first, blocks, HAK_SLAB_BLOCKS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        memset(blocks[i], 0xab, bytes);
        hak_slab_give(first, blocks[i]);
    }
    hak_supply_retire(first);
    struct slab *slab = slab_of(bytes);
    CHECK_EQ(slab->start, start);
    return slab;
}

TEST(blocks_leave_a_slab_by_rising_address_until_it_is_full)
{
    struct slab *slab = slab_of(48);
    uint32_t first = hak_slab_take(slab, blocks, 3);
    CHECK_EQ(first, 3);
    uint32_t count = first + hak_slab_take(slab, blocks + first, HAK_SLAB_BLOCKS_MAX - first);
    CHECK_EQ(count, slab->block_count);
    CHECK(hak_slab_is_full(slab));
    for (uint32_t i = 0; i < count; i++)
        CHECK_EQ((uintptr_t)blocks[i], slab->start + i * 48);
    CHECK_EQ(hak_slab_take(slab, blocks, 1), 0);
    CHECK_EQ(hak_slab_take_zero(slab), NULL);
    CHECK(hak_slab_is_sound(slab));
}

TEST(given_blocks_are_taken_again_before_fresh_ones_lowest_first)
{
    struct slab *slab = slab_of(64);
    hak_slab_take(slab, blocks, 5);
    void *low = blocks[1], *high = blocks[3];
    hak_slab_give(slab, high);
    hak_slab_give(slab, low);
    CHECK_EQ(slab->used, 3);
    CHECK_EQ(hak_slab_take(slab, blocks, 3), 3);
    CHECK_EQ(blocks[0], low);
    CHECK_EQ(blocks[1], high);
    CHECK_EQ((uintptr_t)blocks[2], slab->start + 5 * 64);
    CHECK(hak_slab_is_sound(slab));
}

TEST(random_takes_and_gives_agree_with_an_array_of_flags)
{
    struct slab *slab = slab_of(16);
    static bool is_out[HAK_SLAB_BLOCKS_MAX];
    uint64_t random = 11;
    uint32_t out_count = 0;
    for (uint32_t i = 0; i < 20000; i++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        uint32_t index = (uint32_t)(random >> 33) % slab->block_count;
        if (is_out[index]) {
            hak_slab_give(slab, (void *)(slab->start + index * 16));
            is_out[index] = false;
            out_count--;
        } else {
            uint32_t count = hak_slab_take(slab, blocks, 1 + index % 5);
            for (uint32_t k = 0; k < count; k++) {
                uint32_t taken = hak_slab_index_of(slab, blocks[k], "test");
                CHECK(!is_out[taken]);
                is_out[taken] = true;
            }
            out_count += count;
        }
        CHECK_EQ(slab->used, out_count);
        if (i % 64 == 0)
            CHECK(hak_slab_is_sound(slab));
    }
}

TEST(a_zero_block_was_never_handed_out)
{
    struct slab *slab = slab_of(64);
    hak_slab_take(slab, blocks, 2);
    memset(blocks[0], 1, 64);
    hak_slab_give(slab, blocks[0]);
    unsigned char *zero = hak_slab_take_zero(slab);
    CHECK_EQ((uintptr_t)zero, slab->start + 2 * 64);
    CHECK_BYTES(zero, 64, 0);
    CHECK_EQ(slab->used, 2);
    CHECK(hak_slab_is_sound(slab));
}

TEST(a_slab_on_used_memory_has_no_zero_blocks)
{
    struct slab *slab = dirty_slab_of(64);
    CHECK_EQ(hak_slab_take_zero(slab), NULL);
    CHECK_EQ(slab->used, 0);
    CHECK_EQ(hak_slab_take(slab, blocks, 1), 1);
    CHECK(*(unsigned char *)blocks[0] == 0xab);
}

TEST(a_block_given_twice_is_a_double_free)
{
    struct slab *slab = slab_of(64);
    hak_slab_take(slab, blocks, 2);
    hak_slab_give(slab, blocks[0]);
    CHECK_REPORTS(hak_slab_give(slab, blocks[0]), "double free", "block of 64 bytes, already free");
}

TEST(the_report_of_a_double_free_names_the_block)
{
    struct slab *slab = slab_of(64);
    char said[64];
    hak_slab_take(slab, blocks, 4);
    snprintf(said, sizeof said, "pointer %p, block of 64 bytes", blocks[3]);
    hak_slab_give(slab, blocks[3]);
    CHECK_ABORTS(hak_slab_give(slab, blocks[3]), said);
}

TEST(blocks_of_one_bitmap_word_are_returned_together)
{
    struct slab *slab = slab_of(64);
    uint32_t count = hak_slab_take(slab, blocks, 8);
    CHECK(count >= 4);
    hak_slab_give_word(slab, 0, 0xd, 3);
    CHECK_EQ(slab->used, count - 3);
    CHECK(hak_slab_is_sound(slab));
    CHECK_ABORTS(hak_slab_give_word(slab, 0, 0x6, 2), "double free");
    CHECK_ABORTS(hak_slab_give_word(slab, 0, 1ull << count, 1), "never allocated");
    hak_slab_give_word(slab, 0, 0x2, 1);
    CHECK_EQ(slab->used, count - 4);
    CHECK(hak_slab_is_sound(slab));
}

TEST(a_block_that_was_never_taken_cannot_be_given)
{
    struct slab *slab = slab_of(64);
    hak_slab_take(slab, blocks, 2);
    CHECK_REPORTS(hak_slab_give(slab, (char *)blocks[1] + 64), "invalid free", "never allocated");
}

TEST(the_inside_of_a_block_cannot_be_given)
{
    struct slab *slab = slab_of(48);
    hak_slab_take(slab, blocks, 2);
    CHECK_ABORTS(hak_slab_give(slab, (char *)blocks[0] + 16), "not the start of a block");
    CHECK_ABORTS(hak_slab_index_of(slab, (char *)blocks[0] + 1, "said"),
                 "hakmem: said: pointer 0x");
}

TEST(the_tail_behind_the_last_block_belongs_to_no_block)
{
    struct slab *slab = slab_of(80);
    hak_slab_take(slab, blocks, HAK_SLAB_BLOCKS_MAX);
    CHECK(slab->block_count * 80u + 80u > HAK_GRANULE_BYTES || HAK_TINY);
    void *tail = (void *)(slab->start + slab->block_count * 80u);
    CHECK_ABORTS(hak_slab_give(slab, tail), "behind the last block");
}

TEST(a_destroyed_slab_leaves_the_owner_map_and_its_record_to_the_next)
{
    struct slab *slab = slab_of(1024);
    uint32_t granule = hak_granule_of((void *)slab->start);
    uint32_t generation = slab->generation;
    CHECK_EQ(hak_slab_record_count(), 1);
    CHECK_EQ(hak_owner_read(granule), slab);
    CHECK_EQ(hak_load_relaxed(&slab->owner), &owner);
    hak_supply_retire(slab);
    CHECK_EQ(hak_slab_record_count(), 0);
    CHECK_EQ(hak_owner_read(granule), NULL);
    struct slab *next = hak_slab_create(hak_class_of(1024), granule, true, &owner);
    CHECK_EQ(next, slab);
    CHECK_EQ(next->generation, generation + 1);
    CHECK_EQ(next->used, 0);
    CHECK_EQ(next->bump, 0);
    CHECK(hak_slab_is_sound(next));
}

TEST(a_slab_of_several_granules_owns_them_all)
{
    struct slab *slab = slab_of(131072);
    uint32_t granule = hak_granule_of((void *)slab->start);
    CHECK(slab->granule_count > 1);
    for (uint32_t i = 0; i < slab->granule_count; i++)
        CHECK_EQ(hak_owner_read(granule + i), slab);
    hak_slab_destroy(slab);
    for (uint32_t i = 0; i < slab->granule_count; i++)
        CHECK_EQ(hak_owner_read(granule + i), NULL);
}

TEST(the_octile_says_how_full_a_slab_is)
{
    struct slab *slab = slab_of(32);
    uint32_t last = 0;
    CHECK_EQ(hak_slab_fullness_bucket(slab), 0);
    while (slab->used < slab->block_count) {
        uint32_t fullness_bucket = hak_slab_fullness_bucket(slab);
        CHECK(fullness_bucket >= last && fullness_bucket < HAK_FULLNESS_BUCKETS);
        last = fullness_bucket;
        hak_slab_take(slab, blocks, 1);
    }
    CHECK_EQ(last, (slab->block_count - 1) * HAK_FULLNESS_BUCKETS / (slab->block_count + 1));
    CHECK(last + 2 >= HAK_FULLNESS_BUCKETS);
}

TEST(an_audit_sees_a_count_a_summary_and_a_bit_that_lie)
{
    struct slab *slab = slab_of(64);
    hak_slab_take(slab, blocks, 4);
    hak_slab_give(slab, blocks[1]);
    CHECK(hak_slab_is_sound(slab));
    slab->used++;
    CHECK(!hak_slab_is_sound(slab));
    slab->used--;
    slab->summary[0] ^= 1;
    CHECK(!hak_slab_is_sound(slab));
    slab->summary[0] ^= 1;
    hak_store_relaxed(&slab->words[0], hak_load_relaxed(&slab->words[0]) | 1u << 6);
    CHECK(!hak_slab_is_sound(slab));
}
