/* SPDX-License-Identifier: MIT */
#include "../../check.h"

#include "conf/conf.h"
#include "misuse/fence_choice.h"
#include "os/module.h"

static bool choose(const char *value)
{
    CHECK(hak_conf_set("fence", 5, value, strlen(value), CONF_VARIABLE));
    return hak_fence_choice_start();
}

TEST(nothing_is_named_unless_it_is_asked_for)
{
    CHECK(!hak_fence_choice_start());
    CHECK(!choose("none"));
    CHECK(!choose(""));
}

TEST(all_names_every_block)
{
    CHECK(choose("all"));
    CHECK(hak_fence_names_bytes(0) && hak_fence_names_bytes(SIZE_MAX));
    CHECK(hak_fence_names_calls(&(struct guarded_trace){{0}, {0}}));
}

TEST(a_size_names_blocks_of_that_size)
{
    CHECK(choose("48"));
    CHECK(!hak_fence_names_bytes(47) && hak_fence_names_bytes(48) && !hak_fence_names_bytes(49));
}

TEST(a_range_names_its_ends_too)
{
    CHECK(choose("100..4K"));
    CHECK(!hak_fence_names_bytes(99) && hak_fence_names_bytes(100));
    CHECK(hak_fence_names_bytes(4096) && !hak_fence_names_bytes(4097));
}

static void be_strict(const char *value)
{
    hak_conf_be_strict(true);
    hak_conf_set("fence", 5, value, strlen(value), CONF_VARIABLE);
}

TEST(what_is_none_of_these_is_reported_and_names_nothing)
{
    static const char *const wrong[] = {"some", "-1",   "10..", "..10",  "10..9",  "+0x10",
                                        "a+",   "a+0x", "a+12", "a+0xg", "10...20"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char line[100];
        snprintf(line, sizeof line,
                 "hakmem: HAKMEM_fence: bad value '%s', accepted: none, all, a size, SIZE..SIZE",
                 wrong[i]);
        CHECK(!hak_conf_set("fence", 5, wrong[i], strlen(wrong[i]), CONF_VARIABLE));
        CHECK(!hak_fence_choice_start());
        CHECK_ABORTS(be_strict(wrong[i]), line);
    }
}

/* The call as reports print it, from the file's last part on. */
static void call_of(uintptr_t address, char *place, size_t bytes)
{
    char words[400];
    struct text text = {.start = words, .bytes = sizeof words - 1};
    const uintptr_t addresses[] = {address - 1, 0};
    hak_os_module_add(&text, addresses, 1);
    words[text.used] = '\0';
    CHECK(strrchr(words, '/') != NULL);
    CHECK(strlen(strrchr(words, '/')) < bytes);
    memcpy(place, strrchr(words, '/') + 1, strlen(strrchr(words, '/')));
}

TEST(a_call_is_named_by_file_and_offset)
{
    char place[300];
    uintptr_t here = (uintptr_t)choose + 5, there = (uintptr_t)be_strict + 5;
    call_of(here, place, sizeof place);
    CHECK(choose(place));
    CHECK(hak_fence_names_bytes(0) && hak_fence_names_bytes(1000000));
    for (int i = 0; i < 2; i++) { /* looked up, and remembered */
        CHECK(hak_fence_names_calls(&(struct guarded_trace){{here}, {0}}));
        CHECK(hak_fence_names_calls(&(struct guarded_trace){{there, here}, {0}}));
        CHECK(!hak_fence_names_calls(&(struct guarded_trace){{there}, {0}}));
        CHECK(!hak_fence_names_calls(&(struct guarded_trace){{0}, {0}}));
    }
}

TEST(a_part_of_a_files_name_is_not_it)
{
    char place[300];
    uintptr_t here = (uintptr_t)choose + 5;
    call_of(here, place, sizeof place);
    CHECK(choose(place + 1));
    CHECK(!hak_fence_names_calls(&(struct guarded_trace){{here}, {0}}));
}
