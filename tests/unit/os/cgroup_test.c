/* SPDX-License-Identifier: MIT */
/* tests/unit/os/cgroup_test.c - control groups in trees of files made up here. */
#include "os/cgroup.h"

#include "base/limits.h"
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

static char root[64];

static void make_folders(const char *path)
{
    char at[512];
    for (size_t i = 1; path[i] != '\0'; i++)
        if (path[i] == '/') {
            snprintf(at, sizeof at, "%s%.*s", root, (int)i, path);
            mkdir(at, 0755);
        }
}

/* A file of the tree with this text. */
static void put(const char *path, const char *text)
{
    char at[512];
    if (root[0] == '\0') {
        snprintf(root, sizeof root, "/tmp/cgroup.XXXXXX");
        CHECK(mkdtemp(root) != NULL);
    }
    make_folders(path);
    snprintf(at, sizeof at, "%s%s", root, path);
    int fd = open(at, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    CHECK(fd >= 0);
    CHECK_EQ(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static struct cgroup look(void)
{
    struct cgroup cgroup;
    char command[256];
    errno = 77;
    hak_cgroup_read(&cgroup, root[0] == '\0' ? "/nowhere" : root);
    CHECK_EQ(errno, 77);
    if (root[0] != '\0') {
        snprintf(command, sizeof command, "chmod -R u+rw %s; rm -r %s", root, root);
        CHECK_EQ(system(command), 0);
    }
    root[0] = '\0';
    return cgroup;
}

static void check_no_limits(struct cgroup cgroup)
{
    CHECK_EQ(cgroup.high_bytes, SIZE_MAX);
    CHECK_EQ(cgroup.max_bytes, SIZE_MAX);
    CHECK_EQ(cgroup.cpus, 0);
}

TEST(without_any_file_there_is_no_limit)
{
    struct cgroup cgroup = look();
    check_no_limits(cgroup);
    CHECK_STR(cgroup.pressure_path, "");
}

TEST(the_limits_of_the_group_are_read)
{
    put("/proc/self/cgroup", "0::/app\n");
    put("/sys/fs/cgroup/app/memory.high", "104857600\n");
    put("/sys/fs/cgroup/app/memory.max", "209715200\n");
    put("/sys/fs/cgroup/app/cpu.max", "150000 100000\n");
    struct cgroup cgroup = look();
    CHECK_EQ(cgroup.high_bytes, 100 * HAK_MIB);
    CHECK_EQ(cgroup.max_bytes, 200 * HAK_MIB);
    CHECK_EQ(cgroup.cpus, 2);
}

TEST(the_tightest_of_all_groups_above_holds)
{
    put("/proc/self/cgroup", "12:cpu:/x\n1:name=systemd:/y\n0::/a/b/c\n");
    put("/sys/fs/cgroup/a/b/c/memory.max", "max\n");
    put("/sys/fs/cgroup/a/b/memory.max", "300000000\n");
    put("/sys/fs/cgroup/a/memory.max", "200000000\n");
    put("/sys/fs/cgroup/a/memory.high", "max\n");
    put("/sys/fs/cgroup/cpu.max", "50000 100000\n");
    put("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    struct cgroup cgroup = look();
    CHECK_EQ(cgroup.high_bytes, SIZE_MAX);
    CHECK_EQ(cgroup.max_bytes, 200000000);
    CHECK_EQ(cgroup.cpus, 1);
}

TEST(a_group_that_the_mount_does_not_show_is_passed_over)
{
    put("/proc/self/cgroup", "0::/system.slice/docker-1234.scope\n");
    put("/sys/fs/cgroup/memory.max", "1000000\n");
    CHECK_EQ(look().max_bytes, 1000000);
    put("/proc/self/cgroup", "0::/../../elsewhere\n");
    put("/sys/fs/cgroup/memory.max", "2000000\n");
    CHECK_EQ(look().max_bytes, 2000000);
}

TEST(the_root_group_and_the_hybrid_mount_are_found)
{
    put("/proc/self/cgroup", "0::/\n");
    put("/sys/fs/cgroup/memory.high", "4096\n");
    CHECK_EQ(look().high_bytes, 4096);
    put("/proc/self/cgroup", "2:memory:/a\n0::/a\n");
    put("/sys/fs/cgroup/unified/a/memory.high", "8192\n");
    CHECK_EQ(look().high_bytes, 8192);
}

TEST(what_is_no_number_is_no_limit)
{
    static const char *const texts[] = {"max",   "",     "\n",      "-1\n",      "garbage\n",
                                        "12x\n", "0x10", " 4096\n", "max 4096\n"};
    static const char *const quotas[] = {"max 100000\n", "100000\n",   "",
                                         "x y\n",        "100000 0\n", "0 100000\n",
                                         "-1 100000\n",  "1 x\n",      "1 1 1\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        put("/proc/self/cgroup", "0::/g\n");
        put("/sys/fs/cgroup/g/memory.high", texts[i]);
        put("/sys/fs/cgroup/g/memory.max", texts[i]);
        put("/sys/fs/cgroup/g/cpu.max", quotas[i]);
        check_no_limits(look());
    }
}

TEST(numbers_beyond_all_memory_are_no_limit)
{
    put("/proc/self/cgroup", "0::/g\n");
    put("/sys/fs/cgroup/g/memory.max", "99999999999999999999999999999999999999999\n");
    put("/sys/fs/cgroup/g/memory.high", "18446744073709551615\n");
    put("/sys/fs/cgroup/g/cpu.max", "99999999999999999999999999999 1\n");
    check_no_limits(look());
}

TEST(a_list_of_groups_that_is_cut_or_strange_is_none)
{
    static char lines[6000];
    put("/sys/fs/cgroup/memory.max", "4096\n");
    put("/proc/self/cgroup", "0::/no end of line");
    check_no_limits(look());
    memset(lines, 'x', sizeof lines - 1);
    put("/sys/fs/cgroup/memory.max", "4096\n");
    put("/proc/self/cgroup", lines);
    check_no_limits(look());
    put("/sys/fs/cgroup/memory.max", "4096\n");
    put("/proc/self/cgroup", "1:memory:/only/the/old/kind\n");
    check_no_limits(look());
}

TEST(a_path_that_is_too_long_is_passed_over)
{
    char line[1024] = "0::/";
    memset(line + 4, 'd', 900);
    strcpy(line + 904, "\n");
    put("/proc/self/cgroup", line);
    put("/sys/fs/cgroup/memory.max", "4096\n");
    check_no_limits(look());
}

TEST(the_pressure_is_the_group_s_or_the_machine_s)
{
    char expected[128];
    put("/proc/self/cgroup", "0::/a/b\n");
    put("/proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n");
    snprintf(expected, sizeof expected, "%s/proc/pressure/memory", root);
    CHECK_STR(look().pressure_path, expected);
    put("/proc/self/cgroup", "0::/a/b\n");
    put("/sys/fs/cgroup/a/memory.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n");
    snprintf(expected, sizeof expected, "%s/sys/fs/cgroup/a/memory.pressure", root);
    CHECK_STR(look().pressure_path, expected);
}

static bool stall_in(const char *text, uint64_t *stall_us)
{
    put("/pressure", text);
    char path[128];
    snprintf(path, sizeof path, "%s/pressure", root);
    bool is_read = hak_cgroup_stall_us(path, stall_us);
    look();
    return is_read;
}

TEST(the_time_that_tasks_waited_is_the_total_of_the_first_line)
{
    uint64_t stall_us = 0;
    CHECK(stall_in("some avg10=1.00 avg60=0.20 avg300=0.00 total=123456\n"
                   "full avg10=0.00 avg60=0.00 avg300=0.00 total=99\n",
                   &stall_us));
    CHECK_EQ(stall_us, 123456);
    CHECK(!stall_in("some avg10=1.00\nfull total=99\n", &stall_us));
    CHECK(!stall_in("full avg10=0.00 total=99\n", &stall_us));
    CHECK(!stall_in("some total=\n", &stall_us));
    CHECK(!stall_in("", &stall_us));
    CHECK(!hak_cgroup_stall_us("/nowhere/at/all", &stall_us));
}
