/* SPDX-License-Identifier: MIT */
/* tests/unit/os/own_file_test.c - a file is read only if nobody else may have written it, and
 * replaced whole or not at all. If this fails, others set numbers of the user's programs, or a full
 * disk loses what was learned. */
#include "os/own_file.h"

#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/own_file_test.XXXXXX";
static char path[PATH_MAX], buffer[64];
static size_t used;

static void begin(void)
{
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/file", folder);
}

static void end(void)
{
    unlink(path);
    CHECK_EQ(rmdir(folder), 0); /* nothing else was left */
}

static enum own_file read_it(void)
{
    errno = 77;
    enum own_file verdict = hak_os_own_file_read(path, buffer, sizeof buffer, &used);
    CHECK_EQ(errno, 77);
    return verdict;
}

TEST(written_contents_are_read)
{
    struct stat about;
    begin();
    CHECK_EQ(read_it(), OWN_FILE_ABSENT);
    CHECK_EQ(hak_os_own_file_replace(path, "first", 5), 0);
    CHECK_EQ(hak_os_own_file_replace(path, "second", 6), 0);
    CHECK_EQ(read_it(), OWN_FILE_READ);
    CHECK_EQ(used, 6);
    CHECK(memcmp(buffer, "second", 6) == 0);
    CHECK(stat(path, &about) == 0 && (about.st_mode & 07777) == 0600);
    end();
}

TEST(files_that_others_may_write_are_refused)
{
    begin();
    CHECK_EQ(hak_os_own_file_replace(path, "text", 4), 0);
    chmod(path, 0620);
    CHECK_EQ(read_it(), OWN_FILE_OPEN);
    chmod(path, 0602);
    CHECK_EQ(read_it(), OWN_FILE_OPEN);
    chmod(path, 0644);
    CHECK_EQ(read_it(), OWN_FILE_READ);
    if (geteuid() == 0) {
        CHECK_EQ(chown(path, 1, 1), 0);
        CHECK_EQ(read_it(), OWN_FILE_FOREIGN);
    }
    end();
}

TEST(links_special_files_and_large_files_are_refused)
{
    begin();
    CHECK_EQ(symlink("/etc/passwd", path), 0);
    CHECK_EQ(read_it(), OWN_FILE_LINK);
    unlink(path);
    CHECK_EQ(mkfifo(path, 0600), 0);
    CHECK_EQ(read_it(), OWN_FILE_IRREGULAR);
    unlink(path);
    CHECK_EQ(mkdir(path, 0700), 0);
    CHECK_EQ(read_it(), OWN_FILE_IRREGULAR);
    rmdir(path);
    char large[sizeof buffer + 1] = "";
    CHECK_EQ(hak_os_own_file_replace(path, large, sizeof large), 0);
    CHECK_EQ(read_it(), OWN_FILE_LARGE);
    CHECK_EQ(hak_os_own_file_replace(path, large, sizeof large - 1), 0);
    CHECK_EQ(read_it(), OWN_FILE_READ);
    end();
}

TEST(a_write_that_fails_leaves_the_old_contents)
{
    begin();
    CHECK_EQ(hak_os_own_file_replace(path, "first", 5), 0);
    struct rlimit limit = {3, RLIM_INFINITY};
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    errno = 77;
    CHECK_EQ(hak_os_own_file_replace(path, "second", 6), EFBIG);
    CHECK_EQ(errno, 77);
    limit.rlim_cur = RLIM_INFINITY;
    setrlimit(RLIMIT_FSIZE, &limit);
    CHECK_EQ(read_it(), OWN_FILE_READ);
    CHECK(used == 5 && memcmp(buffer, "first", 5) == 0);
    end();
    CHECK_EQ(hak_os_own_file_replace(path, "text", 4), ENOENT);
}

/* The child replaces the file, and is killed as it enters or leaves its system call of that number.
 * False: it was done before. */
static bool is_killed_at(int stop, pid_t *child)
{
    int status;
    *child = fork();
    if (*child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(1);
        raise(SIGSTOP);
        hak_os_own_file_replace(path, "second", 6);
        _exit(0);
    }
    for (int i = 0; i <= stop; i++) {
        CHECK_EQ(waitpid(*child, &status, 0), *child);
        if (WIFEXITED(status))
            return false;
        if (i < stop)
            CHECK_EQ(ptrace(PTRACE_SYSCALL, *child, NULL, NULL), 0);
    }
    kill(*child, SIGKILL);
    CHECK_EQ(waitpid(*child, &status, 0), *child);
    CHECK(WIFSIGNALED(status));
    return true;
}

/* Removes the file whose name goes on with that and something else; false: there is none. */
static bool remove_new(const char *suffix)
{
    glob_t found;
    char pattern[PATH_MAX + 64];
    snprintf(pattern, sizeof pattern, "%s%s?*", path, suffix);
    bool is_there = glob(pattern, 0, NULL, &found) == 0;
    if (is_there)
        CHECK(found.gl_pathc == 1 && unlink(found.gl_pathv[0]) == 0);
    globfree(&found);
    return is_there;
}

TEST(a_process_killed_at_any_step_leaves_the_old_file_or_the_new_one)
{
    char left[64];
    pid_t child;
    int old_count = 0, new_count = 0;
    if (is_emulated())
        SKIP("qemu-user traces no processes");
    begin();
    for (int stop = 0;; stop++) {
        CHECK_EQ(hak_os_own_file_replace(path, "first", 5), 0);
        bool is_killed = is_killed_at(stop, &child);
        CHECK_EQ(read_it(), OWN_FILE_READ);
        bool is_new = used == 6 && memcmp(buffer, "second", 6) == 0;
        CHECK(is_new || (used == 5 && memcmp(buffer, "first", 5) == 0));
        CHECK(is_killed || is_new);
        snprintf(left, sizeof left, ".new.%d.", (int)child);
        bool is_left = remove_new(left);
        CHECK(!is_left || !is_new);
        old_count += !is_new;
        new_count += is_new;
        if (!is_killed)
            break;
    }
    CHECK(old_count > 6); /* open, write, close and rename: before each and after three */
    CHECK(new_count > 1);
    end();
}

/* In another container that has the folder, for example. */
TEST(a_process_with_the_same_number_is_no_obstacle_and_loses_nothing)
{
    char other[PATH_MAX + 32];
    begin();
    snprintf(other, sizeof other, "%s.new.%d", path, (int)getpid());
    close(open(other, O_CREAT | O_WRONLY, 0400));
    CHECK_EQ(hak_os_own_file_replace(path, "text", 4), 0);
    CHECK_EQ(read_it(), OWN_FILE_READ);
    CHECK_EQ(used, 4);
    CHECK_EQ(unlink(other), 0);
    end();
}

TEST(standard_descriptors_stay_the_programs)
{
    begin();
    close(STDIN_FILENO);
    CHECK_EQ(hak_os_own_file_replace(path, "text", 4), 0);
    CHECK_EQ(read_it(), OWN_FILE_READ);
    CHECK_EQ(open("/dev/null", O_RDONLY), STDIN_FILENO);
    end();
}

TEST(a_path_is_made_whole)
{
    char full[16];
    CHECK_EQ(chdir("/tmp"), 0);
    CHECK(hak_os_full_path("file", full, sizeof full));
    CHECK_STR(full, "/tmp/file");
    CHECK(hak_os_full_path("/etc/file", full, sizeof full));
    CHECK_STR(full, "/etc/file");
    CHECK(!hak_os_full_path("/a/path/too/long", full, sizeof full));
    CHECK(!hak_os_full_path("1234567890a", full, sizeof full));
}
