/* SPDX-License-Identifier: MIT */
/* tests/unit/os/shared_test.c - a file for others to read is new, private and no link. */
#include "os/shared.h"

#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

static char path[64], other[64];

static void name_files(void)
{
    snprintf(path, sizeof path, "/dev/shm/hakmem-test.%d", (int)getpid());
    snprintf(other, sizeof other, "/tmp/hakmem-test.%d", (int)getpid());
}

TEST(the_file_is_zero_and_for_its_owner_only)
{
    struct stat about;
    struct shared_made made = {0};
    name_files();
    umask(0777);
    errno = 77;
    char *start = hak_os_shared_create(path, 10000, &made);
    CHECK(start != NULL);
    CHECK_EQ(errno, 77);
    CHECK(stat(path, &about) == 0);
    CHECK_EQ(about.st_mode & 0777, 0600);
    CHECK_EQ(about.st_size, 10000);
    CHECK_BYTES(start, 10000, 0);
    start[9999] = 1;
    hak_os_shared_remove(path, &made);
    CHECK(stat(path, &about) != 0);
    start[0] = 1;
}

TEST(a_link_of_that_name_is_replaced_and_not_followed)
{
    struct stat about;
    struct shared_made made = {0};
    name_files();
    close(open(other, O_CREAT | O_WRONLY, 0600));
    CHECK(symlink(other, path) == 0);
    CHECK(hak_os_shared_create(path, 4096, &made) != NULL);
    CHECK(lstat(path, &about) == 0 && S_ISREG(about.st_mode));
    CHECK(stat(other, &about) == 0);
    CHECK_EQ(about.st_size, 0);
    hak_os_shared_remove(path, &made);
    unlink(other);
}

TEST(a_file_that_cannot_be_created_is_reported)
{
    struct shared_made made = {0};
    CHECK(hak_os_shared_create("/dev/shm", 4096, &made) == NULL);
    CHECK(made.error != 0);
    CHECK(hak_os_shared_create("/none/such", 4096, &made) == NULL);
    CHECK_EQ(made.error, ENOENT);
    name_files();
    CHECK(hak_os_shared_create(path, (size_t)1 << 60, &made) == NULL);
    CHECK(made.error == ENOSPC || made.error == EFBIG);
    CHECK(access(path, F_OK) != 0);
}

TEST(a_file_beyond_the_limit_of_sizes_is_refused_without_a_signal)
{
    struct stat about;
    struct shared_made made = {0};
    name_files();
    signal(SIGXFSZ, SIG_DFL);
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &(struct rlimit){8191, RLIM_INFINITY}), 0);
    errno = 77;
    CHECK(hak_os_shared_create(path, 8192, &made) == NULL);
    CHECK_EQ(made.error, EFBIG);
    CHECK(hak_os_shared_create_growing(path, 8192, 4096, &made) == NULL);
    CHECK_EQ(errno, 77);
    CHECK(stat(path, &about) != 0);
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &(struct rlimit){8192, RLIM_INFINITY}), 0);
    CHECK(hak_os_shared_create(path, 8192, &made) != NULL);
    hak_os_shared_remove(path, &made);
}

static uint64_t inode_of_path(void)
{
    struct stat about;
    return stat(path, &about) == 0 ? about.st_ino : 0;
}

/* A process that has the name, and says that it is of this space of numbers; once it has it. */
static pid_t start_other(uint64_t pid_space)
{
    int ends[2];
    char byte;
    CHECK_EQ(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct shared_made made = {.space_at = 16};
        uint64_t *start = hak_os_shared_create(path, 4096, &made);
        if (start == NULL)
            _exit(1);
        start[2] = pid_space;
        write(ends[1], "x", 1);
        close(ends[1]);
        pause();
        _exit(0);
    }
    close(ends[1]);
    CHECK_EQ(read(ends[0], &byte, 1), 1);
    return pid;
}

static void end_other(pid_t pid)
{
    kill(pid, SIGKILL);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
}

TEST(the_file_of_a_process_of_another_space_is_replaced_once_it_has_ended)
{
    struct shared_made made = {.space_at = 16};
    name_files();
    pid_t pid = start_other(hak_os_pid_space() + 1);
    uint64_t inode = inode_of_path();
    errno = 77;
    CHECK(hak_os_shared_create(path, 4096, &made) == NULL);
    CHECK_EQ(errno, 77);
    CHECK_EQ(made.error, EEXIST);
    CHECK_EQ(inode_of_path(), inode);
    end_other(pid);
    int reader = open(path, O_RDONLY); /* keeps the inode from being used again */
    CHECK(hak_os_shared_create(path, 4096, &made) != NULL);
    CHECK(inode_of_path() == made.inode && made.inode != inode);
    close(reader);
    hak_os_shared_remove(path, &made);
}

TEST(the_file_of_an_earlier_program_of_this_number_is_replaced_while_its_child_maps_it)
{
    struct shared_made made = {.space_at = 16};
    name_files();
    pid_t pid = start_other(hak_os_pid_space());
    CHECK(hak_os_shared_create(path, 4096, &made) != NULL);
    CHECK_EQ(inode_of_path(), made.inode);
    end_other(pid);
    hak_os_shared_remove(path, &made);
}

TEST(a_file_that_has_taken_the_name_of_a_removed_one_stays)
{
    struct shared_made made = {0}, later = {0};
    name_files();
    uint64_t *start = hak_os_shared_create(path, 4096, &made);
    CHECK(start != NULL);
    *start = hak_os_pid_space();
    CHECK(hak_os_shared_create(path, 4096, &later) != NULL);
    errno = 77;
    hak_os_shared_remove(path, &made);
    CHECK_EQ(errno, 77);
    CHECK_EQ(inode_of_path(), later.inode);
    hak_os_shared_remove(path, &later);
    CHECK_EQ(inode_of_path(), 0);
}

TEST(the_start_of_a_process_is_what_proc_says)
{
    char line[1024] = "";
    int fd = open("/proc/self/stat", O_RDONLY);
    CHECK(read(fd, line, sizeof line - 1) > 0);
    char *at = strrchr(line, ')') + 2;
    for (int field = 3; field < 22; field++)
        at = strchr(at, ' ') + 1;
    CHECK_EQ(hak_os_start_ticks(0), strtoull(at, NULL, 10));
    CHECK(hak_os_start_ticks(0) > 0);
}

TEST(a_process_is_known_by_its_number_and_its_start)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    errno = 77;
    siginfo_t about;
    CHECK_EQ(waitid(P_PID, (id_t)pid, &about, WEXITED | WNOWAIT), 0);
    CHECK(hak_os_is_process((uint32_t)pid)); /* nobody can have its number yet */
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
    CHECK(!hak_os_is_process((uint32_t)pid));
    CHECK(hak_os_is_process(1));
    CHECK_EQ(hak_os_start_ticks((uint32_t)getpid()), hak_os_start_ticks(0));
    CHECK_EQ(hak_os_start_ticks((uint32_t)pid), 0);
    CHECK(hak_os_pid_space() != 0);
    CHECK_EQ(errno, 77);
}
