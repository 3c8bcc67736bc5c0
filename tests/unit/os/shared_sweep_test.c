/* SPDX-License-Identifier: MIT */
/* tests/unit/os/shared_sweep_test.c - what is removed is what a process of ours left, and nothing
 * that merely has such a name. */
#include "folder.h"
#include "os/shared.h"

#include <errno.h>

static char prefix[80];

static void new_folder(void)
{
    strcpy(prefix, folder_path("left."));
}

static bool is_there(const char *name)
{
    struct stat about;
    return lstat(folder_path(name), &about) == 0;
}

static bool is_left(const struct shared_file *file, const void *context)
{
    CHECK_EQ(context, folder);
    return file->number != 77 && memcmp(file->head, "left", 4) == 0;
}

static uint32_t sweep(void)
{
    return hak_os_shared_sweep(prefix, 4, is_left, folder);
}

TEST(a_file_worth_keeping_replaces_the_one_kept_before)
{
    new_folder();
    folder_put("left.1", "left");
    folder_put("left.1.last", "live, and older");
    folder_put("left.2", "live");
    errno = 77;
    hak_os_shared_set_aside(prefix, 1, 4, is_left, folder);
    hak_os_shared_set_aside(prefix, 2, 4, is_left, folder);
    hak_os_shared_set_aside(prefix, 3, 4, is_left, folder);
    CHECK_EQ(errno, 77);
    CHECK(!is_there("left.1") && is_there("left.1.last"));
    CHECK(is_there("left.2") && !is_there("left.2.last") && !is_there("left.3.last"));
    folder_put("left.5", "left");
    CHECK_EQ(symlink("left.5", folder_path("left.4")), 0);
    hak_os_shared_set_aside(prefix, 4, 4, is_left, folder);
    CHECK(is_there("left.4") && is_there("left.5") && !is_there("left.4.last"));
    folder_put("left.6.lastly", "left");
    CHECK_EQ(sweep(), 2); /* 1.last and 5 */
    CHECK(!is_there("left.1.last") && is_there("left.2") && is_there("left.6.lastly"));
}

TEST(files_of_ended_processes_are_removed_and_others_stay)
{
    new_folder();
    folder_put("left.1", "left");
    folder_put("left.4194304", "left and more");
    folder_put("left.77", "left");
    folder_put("left.3", "live");
    errno = 77;
    CHECK_EQ(sweep(), 2);
    CHECK_EQ(errno, 77);
    CHECK(!is_there("left.1") && !is_there("left.4194304"));
    CHECK(is_there("left.77") && is_there("left.3"));
    CHECK_EQ(sweep(), 0);
}

TEST(malformed_names_are_left_alone)
{
    static const char *const names[] = {"left.",   "left.0",          "left.01", "left.1x",
                                        "left.x1", "left.-1",         "left. 1", "left",
                                        "other.1", "left.12345678901"};
    new_folder();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        folder_put(names[i], "left");
    CHECK_EQ(sweep(), 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        CHECK(is_there(names[i]));
}

TEST(links_special_files_and_incomplete_files_are_left_alone)
{
    char target[128];
    new_folder();
    folder_put("target", "left");
    strcpy(target, folder_path("target"));
    CHECK(symlink(target, folder_path("left.1")) == 0);
    CHECK(mkfifo(folder_path("left.2"), 0600) == 0);
    CHECK(mkdir(folder_path("left.3"), 0700) == 0);
    folder_put("left.4", "lef");
    alarm(20);
    CHECK_EQ(sweep(), 0);
    CHECK(is_there("target") && is_there("left.1") && is_there("left.2") && is_there("left.3"));
    CHECK(is_there("left.4"));
}

TEST(empty_files_go_if_their_process_is_absent_and_nobody_writes_to_them)
{
    char own[32];
    new_folder();
    snprintf(own, sizeof own, "left.%d", (int)getpid());
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
    char absent[32];
    snprintf(absent, sizeof absent, "left.%d", (int)pid);
    folder_put(own, "");
    folder_put(absent, "");
    folder_put("other.1", "");
    int fd = open(folder_path(absent), O_WRONLY);
    CHECK_EQ(sweep(), 0);
    close(fd);
    CHECK_EQ(sweep(), 1);
    CHECK(!is_there(absent) && is_there(own) && is_there("other.1"));
}

static uint32_t removed_within = 77;

static bool sweep_again(const struct shared_file *file, const void *context)
{
    CHECK(file->number != 0);
    removed_within = hak_os_shared_sweep(prefix, 4, is_left, context);
    return true;
}

TEST(a_sweep_during_another_one_does_nothing)
{
    new_folder();
    folder_put("left.1", "left");
    CHECK_EQ(hak_os_shared_sweep(prefix, 4, sweep_again, folder), 1);
    CHECK_EQ(removed_within, 0);
    CHECK(!is_there("left.1"));
    folder_put("left.1", "left");
    CHECK_EQ(sweep(), 1);
}

TEST(files_of_others_are_left_alone)
{
    if (geteuid() != 0)
        SKIP("only root may make files of others");
    new_folder();
    folder_put("left.1", "left");
    CHECK(chown(folder_path("left.1"), 65534, 65534) == 0);
    CHECK_EQ(sweep(), 0);
    CHECK(is_there("left.1"));
}

TEST(a_folder_full_of_files_is_examined_in_part)
{
    char name[32];
    new_folder();
    for (int i = 1; i <= 1000; i++) {
        snprintf(name, sizeof name, "left.%d", i);
        folder_put(name, "left");
    }
    uint32_t removed = sweep();
    CHECK(removed >= 100 && removed < 1000);
    while (sweep() > 1)
        continue;
    CHECK(is_there("left.77") && !is_there("left.1000"));
}

TEST(a_folder_that_cannot_be_read_is_empty)
{
    CHECK_EQ(hak_os_shared_sweep("/none/such/left.", 4, is_left, folder), 0);
}

/* Of process 9 in another space of numbers, where it can be alive or dead. */
static bool is_unused(const struct shared_file *file, const void *context)
{
    CHECK_EQ(context, folder);
    return hak_os_shared_is_left(file, hak_os_pid_space() + 1, 1);
}

TEST(what_a_process_of_another_space_of_numbers_maps_to_write_stays_while_it_does)
{
    struct shared_made made = {0};
    int ends[2];
    char byte;
    new_folder();
    CHECK_EQ(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        char *start = hak_os_shared_create(folder_path("left.9"), 4096, &made);
        write(ends[1], "x", 1);
        close(ends[1]);
        pause();
        _exit(start == NULL);
    }
    CHECK_EQ(read(ends[0], &byte, 1), 1);
    errno = 77;
    CHECK_EQ(hak_os_shared_sweep(prefix, 4, is_unused, folder), 0);
    CHECK(is_there("left.9"));
    kill(pid, SIGKILL);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
    int reader = open(folder_path("left.9"), O_RDONLY);
    errno = 77;
    CHECK_EQ(hak_os_shared_sweep(prefix, 4, is_unused, folder), 1);
    CHECK_EQ(errno, 77);
    CHECK(!is_there("left.9"));
    close(reader);
}
