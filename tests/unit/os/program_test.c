/* SPDX-License-Identifier: MIT */
/* tests/unit/os/program_test.c - what lies in the program is told from what does not. */
#include "../../check.h"

#include "os/frames.h"
#include "os/program.h"

#include <sys/mman.h>
#include <sys/resource.h>

static int variable;
static const int constant = 5;

TEST(code_constants_and_variables_are_in_the_program_and_nothing_else_is)
{
    CHECK(hak_os_is_in_program((uintptr_t)&variable));
    CHECK(hak_os_is_in_program((uintptr_t)&constant));
    CHECK(hak_os_is_in_program((uintptr_t)(void *)hak_os_is_in_program));
    CHECK(hak_os_is_in_program(hak_os_program_entry()));
    int local;
    void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    CHECK(!hak_os_is_in_program((uintptr_t)&local));
    CHECK(!hak_os_is_in_program((uintptr_t)page));
    CHECK(!hak_os_is_in_program(8));
}

TEST(a_program_in_c_has_no_note_of_gos)
{
    CHECK(!hak_os_program_is_go());
}

TEST(unmapped_or_protected_memory_cannot_be_read)
{
    char *pages = mmap(NULL, 65536 * 2, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED);
    CHECK_EQ(mprotect(pages + 65536, 65536, PROT_NONE), 0);
    CHECK(hak_os_is_readable((uintptr_t)pages) && !hak_os_is_unreadable((uintptr_t)pages));
    CHECK(!hak_os_is_readable((uintptr_t)pages + 65536));
    CHECK(hak_os_is_unreadable((uintptr_t)pages + 65536));
    CHECK_EQ(munmap(pages, 65536 * 2), 0);
    CHECK(hak_os_is_unreadable((uintptr_t)pages));
}

static long sleeps(void)
{
    struct rusage usage;
    CHECK_EQ(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_nvcsw;
}

/* The kernel compares the word with some other: they may be the same. */
TEST(a_look_at_a_word_never_sleeps_whatever_it_holds)
{
    for (uint32_t i = 0; i < 3; i++) {
        static uint32_t word;
        word = i;
        long before = sleeps();
        for (int k = 0; k < 1000; k++)
            CHECK(hak_os_is_readable((uintptr_t)&word));
        CHECK(sleeps() - before < 100);
    }
}
