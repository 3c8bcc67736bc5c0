/* SPDX-License-Identifier: MIT */
/* tests/unit/os/os_file_test.c - a small file, and all that may stand in its place. */
#include "folder.h"
#include "os/os_file.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>

static char path[64];
static char buffer[100];
static size_t used_bytes;

static const char *place(void)
{
    return strcpy(path, folder_path("file"));
}

static enum os_file reads(const char *name)
{
    errno = 77;
    enum os_file verdict = hak_os_file_read(name, buffer, sizeof buffer, &used_bytes);
    CHECK_EQ(errno, 77);
    return verdict;
}

static void fill(const char *name, size_t bytes)
{
    static char letters[200];
    memset(letters, 'x', sizeof letters);
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0 && write(fd, letters, bytes) == (ssize_t)bytes);
    close(fd);
}

TEST(a_file_that_fits_is_read_whole)
{
    const char *name = place();
    for (size_t bytes = 0; bytes <= sizeof buffer; bytes += 50) {
        fill(name, bytes);
        CHECK_EQ(reads(name), OS_FILE_READ);
        CHECK_EQ(used_bytes, bytes);
    }
    CHECK_EQ(buffer[99], 'x');
}

TEST(a_file_that_does_not_fit_is_large)
{
    const char *name = place();
    fill(name, sizeof buffer + 1);
    CHECK_EQ(reads(name), OS_FILE_LARGE);
    CHECK_EQ(reads("/dev/zero"), OS_FILE_LARGE);
}

TEST(a_file_that_does_not_exist_is_absent)
{
    CHECK_EQ(reads("/no/such/file"), OS_FILE_ABSENT);
    CHECK_EQ(reads("/dev/null/file"), OS_FILE_ABSENT);
    CHECK_EQ(reads(""), OS_FILE_ABSENT);
}

TEST(a_pipe_is_not_waited_for)
{
    const char *name = place();
    CHECK(mkfifo(name, 0600) == 0);
    alarm(20);
    CHECK_EQ(reads(name), OS_FILE_IRREGULAR);
    int fd = open(name, O_RDWR); /* another one, which writes nothing */
    CHECK_EQ(reads(name), OS_FILE_IRREGULAR);
    close(fd);
}

TEST(a_folder_or_a_socket_is_no_file)
{
    const char *name = place();
    CHECK(mkdir(name, 0700) == 0);
    CHECK_EQ(reads(name), OS_FILE_IRREGULAR);
    CHECK(rmdir(name) == 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", name);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(bind(fd, (struct sockaddr *)&address, sizeof address) == 0);
    CHECK_EQ(reads(name), OS_FILE_IRREGULAR);
    close(fd);
}

TEST(a_circle_of_links_is_refused)
{
    const char *name = place();
    CHECK(symlink(name, name) == 0);
    CHECK_EQ(reads(name), OS_FILE_REFUSED);
}

TEST(a_file_of_another_user_is_refused)
{
    const char *name = place();
    fill(name, 5);
    CHECK(chmod(name, 0) == 0);
    bool is_root = geteuid() == 0;
    if (is_root && (chmod(folder, 0755) != 0 || seteuid(65534) != 0))
        SKIP("root may read everything here");
    CHECK_EQ(reads(name), OS_FILE_REFUSED);
    CHECK(!is_root || seteuid(0) == 0); /* to clean up */
}

TEST(no_descriptor_stays_open)
{
    const char *name = place();
    fill(name, 5);
    int before = dup(0);
    close(before);
    CHECK_EQ(reads(name), OS_FILE_READ);
    CHECK_EQ(reads("/"), OS_FILE_IRREGULAR);
    CHECK_EQ(reads("/dev/zero"), OS_FILE_LARGE);
    int after = dup(0);
    CHECK_EQ(after, before);
    close(after);
}
