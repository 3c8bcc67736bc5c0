/* SPDX-License-Identifier: MIT */
/* tests/unit/api/hakmem_test.c - malloc's family by public names, statistics, trim, ownership. */
#include "hakmem/hakmem.h"
#include "heap/census.h"
#include "stats/snapshot.h"
#include "stats/snapshot_take.h"

#include "api/api.h"
#include "base/limits.h"
#include "base/text.h"
#include "check.h"
#include "conf/conf_table.h"
#include "heap/heaps.h"
#include "policy/policy_table.h"
#include "process/start.h"
#include "public.h"
#include "slab/size_class.h"
#include "slab/slab.h"
#include "span/span_heap.h"
#include "stats/emit.h"

#include <errno.h>

TEST(the_version_of_the_library_is_that_of_the_header_and_of_the_build)
{
    CHECK_EQ(hakmem_version(), HAKMEM_VERSION);
    int major, minor, patch;
    CHECK_EQ(sscanf(HAKMEM_VERSION_TEXT, "%d.%d.%d", &major, &minor, &patch), 3);
    CHECK_EQ(major * 10000 + minor * 100 + patch, HAKMEM_VERSION);
    CHECK_STR(HAKMEM_VERSION_TEXT, HAK_PROJECT_VERSION);
}

TEST(the_public_names_do_what_the_names_without_hakmem_do)
{
    unsigned char *block = hakmem_calloc(3, 100);
    CHECK(block != NULL && block[0] == 0 && block[299] == 0);
    CHECK(hakmem_usable_size(block) >= 300);
    block[0] = 7;
    CHECK((block = hakmem_realloc(block, 5000)) != NULL);
    CHECK((block = hakmem_reallocarray(block, 3, 70000)) != NULL);
    CHECK_EQ(block[0], 7);
    hakmem_free_sized(block, 210000);
    void *aligned = hakmem_aligned_alloc(4096, 10);
    CHECK(aligned != NULL && (uintptr_t)aligned % 4096 == 0);
    hakmem_free_aligned_sized(aligned, 4096, 10);
    struct snapshot now;
    hak_snapshot_take(&now, &(struct census){0});
    CHECK_EQ(now.live_bytes, 0);
    CHECK_EQ(hakmem_posix_memalign(&aligned, 64, 10), 0);
    CHECK_EQ((uintptr_t)aligned % 64, 0);
    hakmem_free(aligned);
    CHECK_EQ(hakmem_posix_memalign(&aligned, 3, 10), EINVAL);
    hakmem_free(NULL);
    CHECK_EQ(hakmem_usable_size(NULL), 0);
}

TEST(a_good_size_costs_nothing_more)
{
    for (size_t bytes = 0; bytes < 400000; bytes += bytes / 50 + 1) {
        size_t good = hakmem_good_size(bytes);
        CHECK(good >= bytes);
        CHECK_EQ(hakmem_good_size(good), good);
        void *block = hakmem_malloc(good);
        CHECK(hakmem_usable_size(block) >= good);
        CHECK(hakmem_usable_size(block) < good + 1024); /* large blocks start at varying lines */
        hakmem_free(block);
    }
    CHECK(hakmem_good_size(0) > 0);
    CHECK_EQ(hakmem_good_size(SIZE_MAX), 0);
    CHECK_EQ(hakmem_good_size(PTRDIFF_MAX), 0);
    size_t most = hakmem_good_size(PTRDIFF_MAX - HAK_GRANULE_BYTES);
    CHECK(most >= PTRDIFF_MAX - HAK_GRANULE_BYTES && most < PTRDIFF_MAX);
    CHECK_EQ(hakmem_good_size(most), most);
    CHECK_EQ(hakmem_good_size(most + 1), 0);
}

TEST(owned_are_starts_of_blocks_and_nothing_else)
{
    char *small = hakmem_malloc(100), *large = hakmem_malloc(300000);
    static char foreign[64];
    CHECK_EQ(hakmem_is_owned(small), 1);
    CHECK_EQ(hakmem_is_owned(large), 1);
    CHECK_EQ(hakmem_is_owned(small + 1), 0);
    CHECK_EQ(hakmem_is_owned(large + 1), 0);
    CHECK_EQ(hakmem_is_owned(large + 100000), 0);
    CHECK_EQ(hakmem_is_owned(foreign), 0);
    CHECK_EQ(hakmem_is_owned(NULL), 0);
    CHECK_EQ(hakmem_is_owned((void *)0x123456789abcdef0), 0);
    hakmem_free(large);
    CHECK_EQ(hakmem_is_owned(large), 0);
}

TEST(a_trim_gives_back_what_is_free_but_for_the_pad)
{
    void *block = hakmem_malloc(8 * HAK_MIB);
    memset(block, 1, 8 * HAK_MIB);
    hakmem_free(block);
    CHECK_EQ(hakmem_trim(16 * HAK_MIB), 0);
    CHECK(hak_span_warm_bytes() >= 8 * HAK_MIB);
    CHECK(hakmem_trim(0) >= 8 * HAK_MIB);
    CHECK_EQ(hak_span_warm_bytes(), 0);
    CHECK_EQ(hakmem_trim(0), 0);
}

TEST(an_idle_thread_keeps_nothing_cached)
{
    static void *blocks[1000];
    hakmem_thread_idle(); /* before the first allocation, too */
    for (int i = 0; i < 1000; i++)
        CHECK((blocks[i] = hakmem_malloc(64)) != NULL);
    for (int i = 0; i < 1000; i++)
        hakmem_free(blocks[i]);
    CHECK(hak_slab_record_count() > 0);
    hakmem_thread_idle();
    hak_heap_retire_spares(hak_heap_near(), UINT32_MAX); /* the heap's, which is everybody's */
    CHECK_EQ(hak_slab_record_count(), 0);
    CHECK_EQ(stats_now().cached_bytes, 0);
    CHECK(hakmem_malloc(64) != NULL);
}

TEST(statistics_are_filled_as_far_as_the_caller_knows_them)
{
    struct hakmem_stats stats, part;
    memset(&part, 0xff, sizeof part);
    void *block = hakmem_malloc(300000);
    CHECK_EQ(hakmem_stats_get(&stats, sizeof stats), 0);
    CHECK(stats.large_live_bytes >= 300000);
    CHECK(stats.window_committed_bytes >= stats.large_live_bytes);
    CHECK(stats.metadata_bytes > 0 && stats.kernel_call_count > 0);
    CHECK_EQ(stats.cache_count, 1);
    CHECK_EQ(hakmem_stats_get(&part, sizeof part.window_committed_bytes), 0);
    CHECK_EQ(part.window_committed_bytes, stats.window_committed_bytes);
    CHECK_EQ(part.metadata_bytes, UINT64_MAX);
    struct {
        struct hakmem_stats known;
        uint64_t later;
    } more = {.later = 5};
    CHECK_EQ(hakmem_stats_get(&more.known, sizeof more), 0);
    CHECK_EQ(more.later, 0);
    CHECK_EQ(hakmem_stats_get(&part, 0), EINVAL);
    hakmem_free(block);
}

static uint64_t number_of(const char *text, const char *name)
{
    size_t length = strlen(name);
    for (const char *line = text; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, length) == 0 && line[length] == ':')
            return strtoull(line + length + 1, NULL, 10);
    }
    CHECK_FAILED("no line %s", name);
}

static void add_to_text(void *text, const char *piece, size_t bytes)
{
    hak_text_add_bytes(text, piece, bytes);
}

TEST(statistics_are_the_numbers_of_the_raw_form)
{
    static char lines[65536];
    struct text text = {.start = lines, .bytes = sizeof lines - 1};
    struct snapshot now;
    struct hakmem_stats stats;
    for (int i = 0; i < 500; i++)
        CHECK(hakmem_malloc((size_t)i * 601) != NULL);
    hakmem_free(hakmem_malloc(1000));
    CHECK_EQ(hakmem_stats_get(&stats, sizeof stats), 0);
    hak_snapshot_take(&now, &(struct census){0});
    hak_emit_raw(&now, add_to_text, &text);
#define SAME(field, name) CHECK_EQ(stats.field, number_of(lines, name))
    SAME(window_committed_bytes, "window_committed_bytes");
    SAME(metadata_bytes, "metadata_bytes");
    SAME(table_bytes, "table_bytes");
    SAME(live_bytes, "live_bytes");
    SAME(small_live_bytes, "small_live_bytes");
    SAME(large_live_bytes, "large_live_bytes");
    SAME(small_live_block_count, "small_live_blocks");
    SAME(large_live_block_count, "large_live_blocks");
    SAME(cached_bytes, "cached_bytes");
    SAME(remote_free_bytes, "homeward_bytes");
    SAME(block_free_bytes, "slab_free_bytes");
    SAME(slab_free_resident_bytes, "slab_warm_bytes");
    SAME(slab_free_clean_bytes, "slab_clean_bytes");
    SAME(span_free_resident_bytes, "span_warm_bytes");
    SAME(span_free_clean_bytes, "span_clean_bytes");
    SAME(returned_bytes, "purged_bytes");
    SAME(superslab_count, "superslabs");
    SAME(slab_count, "slabs");
    SAME(cache_count, "active_caches");
    SAME(private_heap_count, "private_heaps");
    SAME(foreign_free_count, "foreign_frees");
    SAME(out_of_memory_count, "out_of_memory");
    SAME(busy_heap_count, "closed_heaps");
    CHECK(stats.live_bytes > 0 && (stats.cached_bytes > 0 || HAK_TINY));
    CHECK_EQ(stats.window_committed_bytes,
             stats.small_live_bytes + stats.large_live_bytes + stats.cached_bytes +
                 stats.remote_free_bytes + stats.block_free_bytes + stats.slab_free_resident_bytes +
                 stats.slab_free_clean_bytes + stats.span_free_resident_bytes +
                 stats.span_free_clean_bytes + stats.unusable_bytes);
}

TEST(every_option_either_changes_or_says_that_it_is_too_late)
{
#define X(name, kind, start, least, most, choices, meaning) #name,
    static const char *const names[] = {HAK_CONF_TABLE(X)};
#undef X
    unsigned late_count = 0;
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        char value[256], after[256];
        CHECK_EQ(hakmem_option_get(names[i], value, sizeof value), 0);
        int result = hakmem_option_set(names[i], "no value of any option");
        CHECK(result == EINVAL || result == EBUSY);
        late_count += result == EBUSY;
        CHECK_EQ(hakmem_option_get(names[i], after, sizeof after), 0);
        CHECK_STR(after, value);
    }
    CHECK(late_count > 0);
}

TEST(options_that_may_change_while_the_program_runs_do)
{
    char value[256];
    CHECK_EQ(hakmem_option_set("decay", "2s"), 0);
    CHECK_EQ(hak_policy_read(decay_ms), 2000);
    CHECK_EQ(hakmem_option_get("decay", value, sizeof value), 0);
    CHECK_STR(value, "2000");
    CHECK_EQ(hakmem_option_set("decay", "-1"), 0);
    CHECK_EQ(hakmem_option_get("decay", value, sizeof value), 0);
    CHECK_STR(value, "-1");
    CHECK_EQ(hakmem_option_set("retain", "64M"), 0);
    CHECK_EQ(hak_policy_read(retain_bytes), 64 * HAK_MIB);
    CHECK_EQ(hakmem_option_set("thread_cache", "64K"), 0);
    CHECK_EQ(hak_policy_read(thread_cache_bytes), 64 * HAK_KIB);
    CHECK_EQ(hakmem_option_set("foreign", "abort"), 0);
    CHECK_EQ(hakmem_option_get("foreign", value, sizeof value), 0);
    CHECK_STR(value, "abort");
}

TEST(options_that_cannot_change_or_do_not_exist_are_refused_and_nothing_is_said)
{
    char value[256];
    CHECK_EQ(hakmem_option_set("stats", "text"), EBUSY);
    CHECK_EQ(hakmem_option_set("no_such_option", "1"), EINVAL);
    CHECK_EQ(hakmem_option_set("decay", "soon"), EINVAL);
    CHECK_EQ(hakmem_option_set("thread_cache", "1"), EINVAL);
    CHECK_EQ(hakmem_option_get("no_such_option", value, sizeof value), EINVAL);
    CHECK_EQ(hakmem_option_get("foreign", value, 3), ERANGE);
    CHECK_EQ(hakmem_option_get("foreign", value, 0), ERANGE);
    CHECK_EQ(hakmem_option_get("thread_cache", value, sizeof value), 0);
    CHECK_STR(value, "8388608");
}

/* hakmem/hakmem.h: "Blocks are aligned to 16, those of requests of up to 8 bytes to 8." */
TEST(every_function_aligns_blocks_as_the_header_says)
{
    hakmem_heap *heap = hakmem_heap_new();
    uintptr_t bits_of_8 = 0;
    CHECK(heap != NULL);
    for (size_t bytes = 0; bytes < 300000; bytes += 1 + bytes / 64) {
        void *blocks[] = {hakmem_malloc(bytes),
                          hakmem_calloc(1, bytes),
                          hakmem_realloc(NULL, bytes),
                          hakmem_realloc(hakmem_malloc(bytes + 100), bytes + (bytes == 0)),
                          hakmem_heap_malloc(heap, bytes),
                          hakmem_heap_calloc(heap, 1, bytes),
                          hakmem_heap_realloc(heap, NULL, bytes),
                          hak_new(bytes),
                          hak_new_array(bytes)};
        for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
            CHECK_EQ((uintptr_t)blocks[i] % (bytes <= 8 ? 8 : 16), 0);
            bits_of_8 |= bytes == 8 ? (uintptr_t)blocks[i] : 0;
        }
        for (size_t i = 0; i < 7; i++)
            hakmem_free(blocks[i]);
        hak_delete(blocks[7]);
        hak_delete_array(blocks[8]);
    }
    CHECK(bits_of_8 % 16 != 0); /* no more than it says */
    hakmem_heap_destroy(heap);
}
