/* SPDX-License-Identifier: MIT */
/* tests/unit/os/module_test.c - addresses of code are told by file and offset. */
#include "../../check.h"

#include "os/confine.h"
#include "os/module.h"
#include "os/thread_label.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

extern const char __ehdr_start __attribute__((visibility("hidden")));

static char buffer[4096];

static const char *told(const uintptr_t *addresses, uint32_t count)
{
    struct text text = {.start = buffer, .bytes = sizeof buffer - 1};
    hak_os_module_add(&text, addresses, count);
    buffer[text.used] = '\0';
    return buffer;
}

static uintptr_t address_of(int function(const char *))
{
    return (uintptr_t)(void *)function;
}

TEST(an_address_of_the_program_is_shown_as_file_and_offset)
{
    char path[2000], expected[2400];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    CHECK(length > 0 && length < 200);
    path[length] = '\0';
    uintptr_t here = (uintptr_t)(void *)told;
    uintptr_t base = (uintptr_t)&__ehdr_start; /* of programs that lie anywhere */
    snprintf(expected, sizeof expected, "%s+0x%lx", path, (unsigned long)(here - base));
    CHECK_EQ(strcmp(told(&here, 1), expected), 0);
}

TEST(libraries_are_distinguished_and_0_ends_the_list)
{
    const uintptr_t addresses[] = {address_of(puts), (uintptr_t)(void *)told, 0, 5};
    const char *text = told(addresses, 4);
    CHECK(strstr(text, "+0x") != NULL && strstr(text, " < ") != NULL);
    CHECK(strstr(text, "os_module_test+0x") != NULL);
    CHECK(strstr(text, " < 0x5") == NULL);
}

TEST(addresses_in_no_file_are_shown_as_numbers)
{
    void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    const uintptr_t addresses[] = {(uintptr_t)page, 0x10};
    char expected[100];
    snprintf(expected, sizeof expected, "0x%lx < 0x10", (unsigned long)addresses[0]);
    CHECK_EQ(strcmp(told(addresses, 2), expected), 0);
}

TEST(the_path_of_a_file_is_told_if_it_is_mapped_and_fits)
{
    char exe[2000], path[2000];
    ssize_t length = readlink("/proc/self/exe", exe, sizeof exe - 1);
    CHECK(length > 0 && length < 200);
    exe[length] = '\0';
    CHECK(hak_os_module_path((uintptr_t)(void *)told, path, sizeof path));
    CHECK_EQ(strcmp(path, exe), 0);
    CHECK(hak_os_module_path((uintptr_t)(void *)told, path, (size_t)length + 1));
    CHECK(!hak_os_module_path((uintptr_t)(void *)told, path, (size_t)length));
    CHECK(!hak_os_module_path((uintptr_t)path, path, sizeof path));
}

TEST(a_confined_program_gets_numbers_and_threads_without_names)
{
    hak_os_confine();
    uintptr_t here = 0x1234;
    CHECK_EQ(strcmp(told(&here, 1), "0x1234"), 0);
    here = (uintptr_t)(void *)told;
    CHECK(strchr(told(&here, 1), '+') == NULL);
    CHECK_EQ(hak_os_thread_label().id, 0);
}

TEST(a_thread_is_shown_by_its_number_and_name)
{
    char expected[100];
    CHECK_EQ(prctl(PR_SET_NAME, "so\nnamed"), 0);
    struct thread_label label = hak_os_thread_label();
    struct text text = {.start = buffer, .bytes = sizeof buffer - 1};
    hak_os_thread_label_add(&text, &label);
    buffer[text.used] = '\0';
    snprintf(expected, sizeof expected, " by thread %ld (so?named)", syscall(SYS_gettid));
    CHECK_EQ(strcmp(buffer, expected), 0);
}

TEST(an_unknown_thread_is_not_shown)
{
    struct thread_label label = {0};
    struct text text = {.start = buffer, .bytes = sizeof buffer - 1};
    hak_os_thread_label_add(&text, &label);
    CHECK_EQ(text.used, 0);
}
