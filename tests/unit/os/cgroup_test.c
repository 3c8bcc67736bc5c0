/* SPDX-License-Identifier: MIT */
/* tests/unit/os/cgroup_test.c - control groups in trees of files made up here. */
#include "os/cgroup.h"

#include "base/limits.h"
#include "folder.h"

#include <errno.h>

static struct cgroup look(void)
{
    struct cgroup cgroup;
    errno = 77;
    hak_cgroup_read(&cgroup, folder[0] == '\0' ? "/nowhere" : folder);
    CHECK_EQ(errno, 77);
    folder_remove();
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
    folder_put("proc/self/cgroup", "0::/app\n");
    folder_put("sys/fs/cgroup/app/memory.high", "104857600\n");
    folder_put("sys/fs/cgroup/app/memory.max", "209715200\n");
    folder_put("sys/fs/cgroup/app/cpu.max", "150000 100000\n");
    struct cgroup cgroup = look();
    CHECK_EQ(cgroup.high_bytes, 100 * HAK_MIB);
    CHECK_EQ(cgroup.max_bytes, 200 * HAK_MIB);
    CHECK_EQ(cgroup.cpus, 2);
}

TEST(the_tightest_of_all_groups_above_holds)
{
    folder_put("proc/self/cgroup", "12:cpu:/x\n1:name=systemd:/y\n0::/a/b/c\n");
    folder_put("sys/fs/cgroup/a/b/c/memory.max", "max\n");
    folder_put("sys/fs/cgroup/a/b/memory.max", "300000000\n");
    folder_put("sys/fs/cgroup/a/memory.max", "200000000\n");
    folder_put("sys/fs/cgroup/a/memory.high", "max\n");
    folder_put("sys/fs/cgroup/cpu.max", "50000 100000\n");
    folder_put("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    struct cgroup cgroup = look();
    CHECK_EQ(cgroup.high_bytes, SIZE_MAX);
    CHECK_EQ(cgroup.max_bytes, 200000000);
    CHECK_EQ(cgroup.cpus, 1);
}

TEST(a_group_that_the_mount_does_not_show_is_passed_over)
{
    folder_put("proc/self/cgroup", "0::/system.slice/docker-1234.scope\n");
    folder_put("sys/fs/cgroup/memory.max", "1000000\n");
    CHECK_EQ(look().max_bytes, 1000000);
    folder_put("proc/self/cgroup", "0::/../../elsewhere\n");
    folder_put("sys/fs/cgroup/memory.max", "2000000\n");
    CHECK_EQ(look().max_bytes, 2000000);
}

TEST(the_root_group_and_the_hybrid_mount_are_found)
{
    folder_put("proc/self/cgroup", "0::/\n");
    folder_put("sys/fs/cgroup/memory.high", "4096\n");
    CHECK_EQ(look().high_bytes, 4096);
    folder_put("proc/self/cgroup", "2:memory:/a\n0::/a\n");
    folder_put("sys/fs/cgroup/unified/a/memory.high", "8192\n");
    CHECK_EQ(look().high_bytes, 8192);
}

TEST(a_value_that_is_no_number_is_no_limit)
{
    static const char *const texts[] = {"max",   "",     "\n",      "-1\n",      "garbage\n",
                                        "12x\n", "0x10", " 4096\n", "max 4096\n"};
    static const char *const quotas[] = {"max 100000\n", "100000\n",   "",
                                         "x y\n",        "100000 0\n", "0 100000\n",
                                         "-1 100000\n",  "1 x\n",      "1 1 1\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        folder_put("proc/self/cgroup", "0::/g\n");
        folder_put("sys/fs/cgroup/g/memory.high", texts[i]);
        folder_put("sys/fs/cgroup/g/memory.max", texts[i]);
        folder_put("sys/fs/cgroup/g/cpu.max", quotas[i]);
        check_no_limits(look());
    }
}

TEST(numbers_beyond_all_memory_are_no_limit)
{
    folder_put("proc/self/cgroup", "0::/g\n");
    folder_put("sys/fs/cgroup/g/memory.max", "99999999999999999999999999999999999999999\n");
    folder_put("sys/fs/cgroup/g/memory.high", "18446744073709551615\n");
    folder_put("sys/fs/cgroup/g/cpu.max", "99999999999999999999999999999 1\n");
    check_no_limits(look());
}

TEST(a_list_of_groups_that_is_cut_or_strange_is_none)
{
    static char lines[6000];
    folder_put("sys/fs/cgroup/memory.max", "4096\n");
    folder_put("proc/self/cgroup", "0::/no end of line");
    check_no_limits(look());
    memset(lines, 'x', sizeof lines - 1);
    folder_put("sys/fs/cgroup/memory.max", "4096\n");
    folder_put("proc/self/cgroup", lines);
    check_no_limits(look());
    folder_put("sys/fs/cgroup/memory.max", "4096\n");
    folder_put("proc/self/cgroup", "1:memory:/only/the/old/kind\n");
    check_no_limits(look());
}

TEST(a_path_that_is_too_long_is_passed_over)
{
    char line[1024] = "0::/";
    memset(line + 4, 'd', 900);
    strcpy(line + 904, "\n");
    folder_put("proc/self/cgroup", line);
    folder_put("sys/fs/cgroup/memory.max", "4096\n");
    check_no_limits(look());
}

TEST(the_pressure_is_the_group_s_or_the_machine_s)
{
    char expected[128];
    folder_put("proc/self/cgroup", "0::/a/b\n");
    folder_put("proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n");
    strcpy(expected, folder_path("proc/pressure/memory"));
    CHECK_STR(look().pressure_path, expected);
    folder_put("proc/self/cgroup", "0::/a/b\n");
    folder_put("sys/fs/cgroup/a/memory.pressure",
               "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n");
    strcpy(expected, folder_path("sys/fs/cgroup/a/memory.pressure"));
    CHECK_STR(look().pressure_path, expected);
}

static bool stall_in(const char *text, uint64_t *stall_us)
{
    folder_put("pressure", text);
    bool is_read = hak_cgroup_stall_us(folder_path("pressure"), stall_us);
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

static size_t room(void)
{
    errno = 77;
    size_t bytes = hak_cgroup_room_bytes(folder[0] == '\0' ? "/nowhere" : folder);
    CHECK_EQ(errno, 77);
    folder_remove();
    return bytes;
}

static void put_meminfo(const char *available)
{
    char text[256];
    snprintf(text, sizeof text,
             "MemTotal:       24632452 kB\nMemFree:        12345678 kB\n%sBuffers: 1 kB\n",
             available);
    folder_put("proc/meminfo", text);
}

TEST(the_room_is_what_the_machine_has_available)
{
    put_meminfo("MemAvailable:    1000000 kB\n");
    CHECK_EQ(room(), 1000000 * HAK_KIB);
    put_meminfo("MemAvailable:          0 kB\n");
    CHECK_EQ(room(), 0);
}

TEST(room_that_is_not_told_is_very_much)
{
    CHECK(room() > HAK_TIB * 1024);
    put_meminfo("");
    CHECK(room() > HAK_TIB * 1024);
    put_meminfo("MemAvailable: some kB\n");
    CHECK(room() > HAK_TIB * 1024);
    put_meminfo("MemAvailable: 99999999999999999999999999999 kB\n");
    CHECK(room() > HAK_TIB * 1024);
}

TEST(the_room_is_what_is_left_in_the_fullest_group)
{
    put_meminfo("MemAvailable:    1000000 kB\n");
    folder_put("proc/self/cgroup", "0::/a/b\n");
    folder_put("sys/fs/cgroup/a/b/memory.max", "300000000\n");
    folder_put("sys/fs/cgroup/a/b/memory.current", "50000000\n");
    folder_put("sys/fs/cgroup/a/memory.high", "400000000\n");
    folder_put("sys/fs/cgroup/a/memory.max", "900000000\n");
    folder_put("sys/fs/cgroup/a/memory.current", "380000000\n");
    CHECK_EQ(room(), 20000000);
}

TEST(files_that_the_kernel_can_drop_leave_room_in_a_group)
{
    folder_put("proc/self/cgroup", "0::/a\n");
    folder_put("sys/fs/cgroup/a/memory.max", "300000000\n");
    folder_put("sys/fs/cgroup/a/memory.current", "299000000\n");
    folder_put("sys/fs/cgroup/a/memory.stat", "anon 150000000\nfile 120000000\ninactive_anon 1\n"
                                              "inactive_file 70000000\nactive_file 30000000\n");
    CHECK_EQ(room(), 101000000);
    folder_put("proc/self/cgroup", "0::/a\n"); /* nothing is told of its use */
    folder_put("sys/fs/cgroup/a/memory.max", "300000000\n");
    CHECK_EQ(room(), 300000000);
}
