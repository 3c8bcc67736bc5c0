/* SPDX-License-Identifier: MIT */
/* tests/unit/heap/cpu_cache_test.c - restartable sequences, by themselves: what the kernel asks of
 * their machine code, and what another processor may do to the bins in the middle of one. If this
 * fails, one block is served twice, now and then, on a busy machine. */
#define _GNU_SOURCE
#include "heap/cpu_cache.h"

#include "check.h"
#include "hakmem/hakmem.h"
#include "heap/cache.h"
#include "os/os.h"
#include "threads.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define CLASS 4u
#define SCALED HAK_BIN_OF_CLASS(CLASS)
#define WORDS 1024u
#define FIRST 900u
#define ROUNDS 1000000u
#define ENOUGH_MS 10000u /* where processors are shared, each round may wait for its turn */

/* struct rseq_cs of <linux/rseq.h>. */
struct sequence {
    uint32_t version, flags;
    uint64_t start, length, abort;
};
extern const struct sequence *const __start___rseq_cs_ptr_array[] __attribute__((weak));
extern const struct sequence *const __stop___rseq_cs_ptr_array[] __attribute__((weak));

#if defined(__aarch64__)
#define SIGNATURE 0xd428bc00u
/* str xN, [xM, #8] */
static bool is_store_of_section(const uint8_t *code)
{
    uint32_t word;
    memcpy(&word, code, sizeof word);
    return (word & 0xfffffc00) == 0xf9000400;
}
#else
#define SIGNATURE 0x53053053u
/* movq %reg, 8(%reg) */
static bool is_store_of_section(const uint8_t *code)
{
    return (code[0] & 0xf8) == 0x48 && code[1] == 0x89 && code[2] >> 6 == 1 && code[3] == 8;
}
#endif

/* Interrupted between the store and the sequence, a thread would go on with no sequence named: the
 * kernel forgets one that the thread is not in. */
TEST(nothing_comes_between_the_naming_of_a_sequence_and_its_start)
{
    size_t count = (size_t)(__stop___rseq_cs_ptr_array - __start___rseq_cs_ptr_array);
    if (!hak_has_cpu_caches)
        SKIP("this build has no sequences");
    CHECK(hakmem_malloc(1) != NULL); /* the hot path is linked, too */
    CHECK(count > 5);
    for (size_t i = 0; i < count; i++) {
        const struct sequence *at = __start___rseq_cs_ptr_array[i];
        CHECK(is_store_of_section((const uint8_t *)at->start - 4));
        uint32_t signature;
        memcpy(&signature, (const uint8_t *)at->abort - 4, sizeof signature);
        CHECK_EQ(signature, SIGNATURE);
        CHECK(at->abort < at->start || at->abort >= at->start + at->length);
    }
}

static union {
    struct bins bins;
    void *words[WORDS];
} two[2];
static struct bins *first = &two[0].bins, *second = &two[1].bins;
static struct cache cache;
static char blocks[64];
static uint32_t here; /* the number of the processor that the main thread stays on */
static _Atomic uint32_t turn;

/* An area that no kernel knows: enough where nothing interrupts, and so on any machine and in any
 * emulator. */
static struct rseq_area area;
static void stand_on_an_area_of_ones_own(struct bin_slots slots)
{
    if (!hak_has_cpu_caches)
        SKIP("this build has no sequences");
    here = 7;
    area.cpu_id = here;
    hak_rseq_id_offset = offsetof(struct rseq_area, cpu_id);
    hak_here = &area;
    first->cache = second->cache = &cache;
    hak_bin_open(first, CLASS, slots);
    hak_bin_open(second, CLASS, slots);
    hak_word_publish(&hak_bins_of[here], first);
}

static void check_bin(uint32_t top, uint32_t countdown)
{
    CHECK_EQ(hak_bin_of(first, CLASS)->top, top);
    CHECK_EQ(hak_bin_of(first, CLASS)->countdown, countdown);
    CHECK_EQ(hak_bin_of(first, CLASS)->limit, FIRST - 3);
    CHECK_EQ(hak_bin_of(first, CLASS)->bottom, FIRST);
}

TEST(a_block_goes_in_and_comes_out_and_counts)
{
    stand_on_an_area_of_ones_own((struct bin_slots){FIRST, FIRST, FIRST - 3});
    hak_bin_of(first, CLASS)->countdown = 1;
    CHECK_EQ(hak_cpu_cache_pop(SCALED).block, NULL);
    for (uint32_t i = 0; i < 3; i++)
        CHECK(hak_cpu_cache_push(SCALED, &blocks[i]));
    CHECK(!hak_cpu_cache_push(SCALED, &blocks[3]));
    check_bin(FIRST - 3, 1);
    struct popped popped = hak_cpu_cache_pop(SCALED);
    CHECK(popped.block == &blocks[2] && popped.noted == NULL);
    check_bin(FIRST - 2, 0);
    CHECK(!hak_cpu_cache_push(SCALED, &blocks[1])); /* it is on top */
    check_bin(FIRST - 2, 0);
    popped = hak_cpu_cache_pop(SCALED); /* the countdown passes 0 */
    CHECK(popped.block == &blocks[1] && popped.noted == first);
    check_bin(FIRST - 1, 0xffff);
}

TEST(batches_go_in_from_the_last_and_come_out_as_far_as_there_are_any)
{
    void *batch[5], *got[5] = {NULL};
    for (unsigned i = 0; i < 5; i++)
        batch[i] = &blocks[i];
    stand_on_an_area_of_ones_own((struct bin_slots){FIRST, FIRST, FIRST - 3});
    CHECK_EQ(hak_cpu_cache_push_some(SCALED, batch, 5), 3);
    CHECK_EQ(hak_cpu_cache_push_some(SCALED, batch, 5), 0);
    check_bin(FIRST - 3, 0);
    CHECK_EQ(hak_cpu_cache_pop_some(SCALED, got, 2), 2);
    CHECK(got[0] == &blocks[2] && got[1] == &blocks[3]);
    CHECK_EQ(hak_cpu_cache_pop_some(SCALED, got, 5), 1);
    CHECK_EQ(got[0], &blocks[4]);
    CHECK_EQ(hak_cpu_cache_pop_some(SCALED, got, 5), 0);
    check_bin(FIRST, 0);
}

TEST(a_countdown_is_lowered_and_never_raised_and_not_on_other_bins_or_closed_ones)
{
    stand_on_an_area_of_ones_own((struct bin_slots){FIRST, FIRST - 2, FIRST - 3});
    hak_bin_of(first, CLASS)->countdown = 0xffff;
    CHECK_EQ(hak_cpu_cache_lower(SCALED, second, 5), 0);
    check_bin(FIRST - 2, 0xffff);
    CHECK_EQ(hak_cpu_cache_lower(SCALED, first, 40000), 0x10000);
    check_bin(FIRST - 2, 40000);
    CHECK_EQ(hak_cpu_cache_lower(SCALED, first, 40000), 40001);
    CHECK_EQ(hak_cpu_cache_lower(SCALED, first, 50000), 40001);
    check_bin(FIRST - 2, 40000);
    CHECK_EQ(hak_cpu_cache_lower(SCALED, first, 0), 40001);
    check_bin(FIRST - 2, 0);
    CHECK_EQ(hak_cpu_cache_lower(SCALED, first, 0), 1);

    hak_bin_of(first, CLASS)->countdown = 9;
    CHECK_EQ(hak_cpu_cache_close(SCALED, second), 0);
    CHECK_EQ(hak_cpu_cache_close(SCALED, first), FIRST - 2);
    CHECK_EQ(hak_cpu_cache_close(SCALED, first), 0);
    CHECK_EQ(hak_cpu_cache_lower(SCALED, first, 5), 0);
    CHECK_EQ(hak_bin_of(first, CLASS)->countdown, 9);
    CHECK_EQ(hak_bin_of(first, CLASS)->top, 0);
    CHECK_EQ(hak_bin_of(first, CLASS)->bottom, FIRST - 2);
    CHECK(!hak_cpu_cache_push(SCALED, blocks) && hak_cpu_cache_pop(SCALED).block == NULL);
}

static void pin(size_t index)
{
    cpu_set_t all, one;
    CPU_ZERO(&one);
    CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    for (size_t i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &all) && index-- == 0)
            CPU_SET(i, &one);
    CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
}

/* The main thread's area is libc's, told apart by the processor's number, which stays. */
static void start(void *(*body)(void *), pthread_t *other)
{
    uint32_t ids;
    cpu_set_t all;
    if (!hak_has_cpu_caches || hak_os_rseq_start(HAK_PROCESSORS_MOST, &ids) != RSEQ_PROCESSOR)
        SKIP("no restartable sequences here");
    CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    if (CPU_COUNT(&all) < 2)
        SKIP("one processor");
    *other = start_thread(body, NULL);
    pin(0);
    hak_rseq_id_offset = offsetof(struct rseq_area, cpu_id);
    hak_here = hak_os_rseq_area();
    CHECK(hak_here != NULL);
    here = hak_here_id();
    first->cache = second->cache = &cache;
    hak_bin_open(first, CLASS, (struct bin_slots){FIRST, FIRST, FIRST - 200});
    hak_bin_open(second, CLASS, (struct bin_slots){FIRST, FIRST, FIRST - 200});
    hak_word_publish(&hak_bins_of[here], first);
}

static void end(pthread_t other)
{
    hak_store_release(&turn, ~0u);
    join_thread(other);
    hak_here = &hak_here_never;
    hak_word_publish(&hak_bins_of[here], (struct bins *)&hak_bins_closed);
}

static void *swap_without_end(void *argument)
{
    pin(1);
    for (unsigned i = 0; hak_load_acquire(&turn) != ~0u; i++)
        if (here != 0 || hak_bins_of[0] != NULL)
            hak_word_publish(&hak_bins_of[here], i % 2 == 0 ? second : first);
    return argument;
}

/* Blocks in both bins, all of them ours. */
static uint32_t count_blocks(void)
{
    uint32_t count = 0;
    for (unsigned i = 0; i < 2; i++) {
        uint32_t top = hak_bin_of(&two[i].bins, CLASS)->top;
        CHECK(top <= FIRST && top >= FIRST - 200);
        for (uint32_t at = top; at < FIRST; at++, count++)
            CHECK((char *)two[i].words[at] >= blocks && (char *)two[i].words[at] < blocks + 64);
    }
    return count;
}

TEST(bins_that_are_swapped_in_the_middle_of_a_batch_get_all_of_it_or_nothing)
{
    pthread_t other;
    uint32_t held = 0;
    void *batch[8], *got[8];
    for (unsigned i = 0; i < 8; i++)
        batch[i] = &blocks[i];
    start(swap_without_end, &other);
    for (unsigned i = 0; i < ROUNDS; i++) {
        held += hak_cpu_cache_push_some(SCALED, batch, 1 + i % 8);
        memset(got, 0, sizeof got);
        uint32_t taken = hak_cpu_cache_pop_some(SCALED, got, 8);
        for (uint32_t at = 0; at < taken; at++)
            CHECK((char *)got[at] >= blocks && (char *)got[at] < blocks + 64);
        held -= taken;
    }
    end(other);
    CHECK_EQ(count_blocks(), held);
}

/* Others may need the processor to go on, as on a busy machine. */
static void wait_a_little(uint32_t *waits)
{
    if (++*waits % 1024 == 0)
        sched_yield();
}

static void *open_when_asked(void *argument)
{
    pin(1);
    for (uint32_t seen = 0, now, waits = 0; (now = hak_load_acquire(&turn)) != ~0u;)
        if (now != seen) {
            for (volatile uint32_t i = 0; i < now % 64; i++)
                continue;
            hak_bin_open(first, CLASS, (struct bin_slots){FIRST, FIRST, FIRST - 200});
            seen = now;
        } else {
            wait_a_little(&waits);
        }
    return argument;
}

/* The thread that closed the bin may be on another processor by then. */
TEST(a_bin_that_is_opened_in_the_middle_of_a_push_is_full_or_open)
{
    pthread_t other;
    uint32_t waits = 0;
    start(open_when_asked, &other);
    uint64_t end_ms = hak_os_clock_ms() + ENOUGH_MS;
    for (uint32_t i = 1; i <= ROUNDS && (i % 64 != 0 || hak_os_clock_ms() < end_ms); i++) {
        CHECK_EQ(hak_cpu_cache_close(SCALED, first), FIRST);
        hak_store_release(&turn, i);
        while (!hak_cpu_cache_push(SCALED, &blocks[i % 64]))
            wait_a_little(&waits);
        CHECK_EQ(hak_bin_of(first, CLASS)->top, FIRST - 1);
        CHECK_EQ(two[0].words[FIRST - 1], &blocks[i % 64]);
        CHECK_EQ(hak_cpu_cache_pop(SCALED).block, &blocks[i % 64]);
    }
    end(other);
}
