/* SPDX-License-Identifier: MIT */
/* tests/unit/os/rseq_test.c - when restartable sequences may be used. */
#include "os/rseq.h"

#include "check.h"
#include "os/confine.h"
#include "threads.h"

static uint32_t ids;

static bool is_there(void)
{
    return hak_os_rseq_start(1 << 20, &ids) == RSEQ_PROCESSOR;
}

TEST(a_thread_that_libc_registered_has_an_area_whose_number_is_in_range)
{
    if (!is_there())
        SKIP("libc or the kernel has no restartable sequences");
    struct rseq_area *area = hak_os_rseq_area();
    CHECK(area != NULL);
    CHECK_EQ(hak_os_rseq_area(), area);
    const uint32_t *id = (const uint32_t *)(const void *)((const char *)area + hak_rseq_id_offset);
    for (int i = 0; i < 1000; i++)
        CHECK(*(const volatile uint32_t *)id < ids);
}

static void *seen;
static void *look(void *argument)
{
    seen = hak_os_rseq_area();
    return argument;
}

TEST(each_thread_has_its_own)
{
    if (!is_there())
        SKIP("libc or the kernel has no restartable sequences");
    in_thread(look, NULL);
    CHECK(seen != NULL && seen != hak_os_rseq_area());
}

TEST(a_machine_with_too_many_processors_has_no_caches_by_processor)
{
    if (!is_there())
        SKIP("libc or the kernel has no restartable sequences");
    CHECK_EQ(hak_os_rseq_start(ids - 1, &ids), RSEQ_PROCESSORS);
}

TEST(a_fence_comes_again_and_again)
{
    if (!is_there())
        SKIP("libc or the kernel has no restartable sequences");
    for (int i = 0; i < 100; i++)
        CHECK(hak_os_rseq_fence());
}

TEST(a_process_that_confined_itself_is_asked_nothing)
{
    if (!is_there())
        SKIP("libc or the kernel has no restartable sequences");
    hak_os_confine();
    CHECK_EQ(hak_os_rseq_start(1 << 20, &ids), RSEQ_CONFINED);
    CHECK_EQ(hak_os_rseq_area(), NULL);
    CHECK(!hak_os_rseq_fence());
}

TEST(the_number_that_tells_caches_apart_has_a_name)
{
    CHECK_STR(hak_rseq_id_name(hak_rseq_id(RSEQ_UNREGISTERED)), "slot");
    CHECK_STR(hak_rseq_id_name(hak_rseq_id(RSEQ_PROCESSOR)), "mm_cid");
    hak_rseq_id_offset = offsetof(struct rseq_area, cpu_id);
    CHECK_STR(hak_rseq_id_name(hak_rseq_id(RSEQ_PROCESSOR)), "cpu_id");
    CHECK_EQ(hak_rseq_id_name(RSEQ_ID_COUNT)[0], '\0');
}

TEST(kernels_that_may_not_restart_sequences_on_arm64_are_known_by_name)
{
    static const char *const unproven[] = {"6.19.0", "6.19.14-arm64", "6.20.1", "7.0.0-30-generic",
                                           "7.1.5"};
    static const char *const proven[] = {"5.10.0-32-cloud-arm64",
                                         "6.1.0",
                                         "6.12.117+deb13",
                                         "6.18.44",
                                         "7.2.13+deb14-cloud-arm64",
                                         "7.10.1",
                                         "8.0",
                                         ""};
    for (size_t i = 0; i < sizeof unproven / sizeof *unproven; i++)
        CHECK(hak_rseq_is_unproven(unproven[i]));
    for (size_t i = 0; i < sizeof proven / sizeof *proven; i++)
        CHECK(!hak_rseq_is_unproven(proven[i]));
}

TEST(every_reason_has_words)
{
    for (uint32_t i = 0; i < RSEQ_REASON_COUNT; i++)
        CHECK(hak_rseq_meaning(i)[0] != '\0');
    CHECK_EQ(hak_rseq_meaning(RSEQ_REASON_COUNT)[0], '\0');
}
