/* SPDX-License-Identifier: MIT */
#include "doctor.h"

#include "command.h"
#include "conf/conf.h"
#include "os/rseq.h"
#include "words.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#define THP "/sys/kernel/mm/transparent_hugepage/"
/* The kernel's default; fewer mappings are a setting. */
#define MAPPINGS_USUAL 65530
/* The addresses that hakmem's window has. */
#define WINDOW_GIB 1024

void find(const char *weight, const char *format, ...)
{
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    print_line(line, sizeof line, format, arguments);
    va_end(arguments);
    printf("%-5s %s\n", weight, line);
}

bool kernel_text(const char *path, char *text, size_t text_bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t bytes = fd < 0 ? -1 : read(fd, text, text_bytes - 1);
    if (fd >= 0)
        close(fd);
    if (bytes < 0)
        return false;
    if (bytes > 0 && text[bytes - 1] == '\n')
        bytes--;
    text[bytes] = '\0';
    return true;
}

bool kernel_number(const char *path, uint64_t *number)
{
    char text[64];
    if (!kernel_text(path, text, sizeof text) || text[0] < '0' || text[0] > '9')
        return false;
    char *end;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return *end == '\0' && errno == 0;
}

static void examine_kernel(void)
{
    struct utsname name;
    int major, minor;
    if (uname(&name) != 0 || sscanf(name.release, "%d.%d", &major, &minor) != 2)
        return;
    if (major > 5 || (major == 5 && minor >= 7))
        find("ok", "Linux %s has all features that hakmem uses.", name.release);
    else
        find("note",
             "Linux %s: from 5.7 on realloc of large blocks moves pages instead of copying them.",
             name.release);
}

/* Where a program that is started from here will have its caches, and why; as the library itself
 * finds out (heap/cache_list.c). */
static enum rseq_reason find_reason(void)
{
    uint32_t ids;
    if (hak_conf_number(caches) == CACHES_THREAD)
        return RSEQ_CHOSEN;
    if (hak_conf_number(harden) != 0 || hak_conf_wants_fence() ||
        hak_conf_number(stats) == STATS_EXACT)
        return RSEQ_WATCHED;
    return hak_os_rseq_start(UINT32_MAX, &ids);
}

static void examine_caches(void)
{
    enum rseq_reason reason = find_reason();
    if (reason != RSEQ_PROCESSOR)
        find("note", "rseq: thread, each thread keeps its own free blocks: %s.",
             hak_rseq_meaning(reason));
    else
        find("ok", "rseq: processor, %s by %s.", hak_rseq_meaning(reason),
             hak_rseq_id_name(hak_rseq_id(reason)));
}

static void examine_overcommit(void)
{
    uint64_t mode;
    if (!kernel_number("/proc/sys/vm/overcommit_memory", &mode))
        return;
    if (mode == 2)
        find("note",
             "vm.overcommit_memory is 2: memory counts against CommitLimit when it is made usable, "
             "in steps of up to 64 MiB; leave room there, or programs get ENOMEM early.");
    else
        find("ok", "vm.overcommit_memory is %" PRIu64 ": untouched memory costs nothing.", mode);
}

static void examine_mappings(void)
{
    uint64_t most;
    if (!kernel_number("/proc/sys/vm/max_map_count", &most))
        return;
    if (most < MAPPINGS_USUAL)
        find("fix",
             "vm.max_map_count is %" PRIu64 ": realloc of large blocks copies instead of moving "
             "pages sooner, and large programs fail; sysctl vm.max_map_count=%d is usual.",
             most, MAPPINGS_USUAL);
    else
        find("ok", "vm.max_map_count is %" PRIu64 ".", most);
}

/* The word in brackets of a file of the kernel that lists choices. */
static bool chosen_word(const char *path, char *word, size_t word_bytes)
{
    char text[256];
    if (!kernel_text(path, text, sizeof text))
        return false;
    char *open = strchr(text, '[');
    char *close = open == NULL ? NULL : strchr(open, ']');
    if (close == NULL)
        return false;
    *close = '\0';
    snprintf(word, word_bytes, "%s", open + 1);
    return true;
}

static void examine_huge_pages(void)
{
    char word[64];
    uint64_t none;
    if (!chosen_word(THP "enabled", word, sizeof word)) {
        find("note", "This kernel has no transparent huge pages; hakmem runs without them.");
        return;
    }
    if (strcmp(word, "never") == 0)
        find("note", "Transparent huge pages are off: large heaps miss the TLB more often; "
                     "echo madvise > " THP "enabled lets hakmem request them where they pay.");
    else
        find("ok", "Transparent huge pages are '%s'; option thp controls how hakmem uses them.",
             word);
    if (strcmp(word, "always") == 0 && kernel_number(THP "khugepaged/max_ptes_none", &none) &&
        none > 64)
        find("note",
             "khugepaged fills huge pages that are nearly empty (max_ptes_none is %" PRIu64
             "): memory that hakmem returned may become resident again; 0, or 'madvise', prevents "
             "that.",
             none);
}

static void examine_limit(int resource, const char *flag, const char *what)
{
    struct rlimit limit;
    char size[32];
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return;
    find("note", "ulimit %s is %s: %s", flag, size_text(size, limit.rlim_cur), what);
}

static void examine_limits(void)
{
    struct rlimit space;
    examine_limit(RLIMIT_AS, "-v",
                  "hakmem returns address space with the memory, and requests beyond the limit are "
                  "ENOMEM.");
    examine_limit(RLIMIT_DATA, "-d",
                  "it counts all private memory, and requests beyond it are ENOMEM.");
    if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur == RLIM_INFINITY)
        find("ok", "Address space is not limited: hakmem can use %d GiB of it.", WINDOW_GIB);
}

/* Reads one number of the cgroup at `path`; false: it has none, or no limit. */
static bool cgroup_number(const char *root, const char *path, const char *file, uint64_t *number)
{
    char name[1024];
    snprintf(name, sizeof name, "%s%s/%s", root, path, file);
    return kernel_number(name, number) && *number < (uint64_t)1 << 62;
}

void examine_cgroup(const char *cgroup_path)
{
    char text[4096], limit_text[32], used_text[32];
    if (!kernel_text(cgroup_path, text, sizeof text))
        return;
    const char *root = "/sys/fs/cgroup", *limit_file = "memory.max", *used_file = "memory.current";
    char *path = strstr(text, "0::");
    char *old = strstr(text, ":memory:");
    if (old != NULL) {
        root = "/sys/fs/cgroup/memory";
        limit_file = "memory.limit_in_bytes";
        used_file = "memory.usage_in_bytes";
        path = old + strlen(":memory:") - strlen("0::");
    }
    if (path == NULL)
        return;
    path += strlen("0::");
    path[strcspn(path, "\n")] = '\0';
    if (strcmp(path, "/") == 0)
        path = "";
    uint64_t limit, used = 0;
    if (!cgroup_number(root, path, limit_file, &limit)) {
        find("ok", "The cgroup '%s' has no memory limit of its own.", *path == '\0' ? "/" : path);
        return;
    }
    cgroup_number(root, path, used_file, &used);
    find(used > limit / 10 * 9 ? "fix" : "note",
         "The cgroup '%s' has a limit of %s and uses %s: %s.", *path == '\0' ? "/" : path,
         size_text(limit_text, limit), size_text(used_text, used),
         used > limit / 10 * 9 ? "raise the limit, or set HAKMEM_PRICE=compact"
                               : "beyond that the kernel kills the process");
}

/* What of the environment reaches programs that are started from here. */
static void examine_environment(void)
{
    static const char *const others[] = {"MALLOC_ARENA_MAX", "MALLOC_CONF", "GLIBC_TUNABLES",
                                         "TCMALLOC_RELEASE_RATE", "MIMALLOC_VERBOSE"};
    const char *preloaded = getenv("LD_PRELOAD");
    if (preloaded != NULL && *preloaded != '\0')
        find("note", "LD_PRELOAD is set here: %.300s", preloaded);
    if (access("/etc/ld.so.preload", F_OK) == 0)
        find("note", "/etc/ld.so.preload exists: its libraries are loaded into every program.");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (getenv(others[i]) != NULL)
            find("note", "%s is set: hakmem does not read it.", others[i]);
    int set = 0;
    for (int i = 0; i < CONF_COUNT; i++)
        set += hak_conf.source[i] >= CONF_FILE;
    if (set > 0)
        find("note", "%d option%s set here; hakmem options shows %s.", set,
             set == 1 ? " is" : "s are", set == 1 ? "it" : "them");
}

int command_doctor(int argument_count, char **arguments)
{
    if (argument_count > 2)
        return complain_word("doctor", arguments[2]);
    if (argument_count == 2) {
        int process = process_number_from(arguments[1]);
        if (process == 0)
            return complain(EXIT_USAGE, "doctor: '%.60s' is not a process id", arguments[1]);
        return examine_process(process);
    }
    settings_read();
    examine_kernel();
    examine_caches();
    examine_overcommit();
    examine_mappings();
    examine_huge_pages();
    examine_limits();
    examine_cgroup("/proc/self/cgroup");
    examine_environment();
    return EXIT_DONE;
}
