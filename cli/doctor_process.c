/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "command.h"
#include "doctor.h"
#include "os/rseq.h"
#include "process.h"
#include "serving.h"
#include "stats/summary.h"
#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void file_of(int process, const char *name, char *path, size_t path_bytes)
{
    snprintf(path, path_bytes, "/proc/%d/%s", process, name);
}

static void print_environment(const struct serving *serving)
{
    const char *end = serving->environment + serving->environment_bytes;
    for (const char *at = serving->environment; at < end; at += strlen(at) + 1)
        if (strncmp(at, "HAKMEM_", 7) == 0)
            find("note", "It was started with %.300s.", at);
}

static void examine_absence(const struct serving *serving)
{
    if (serving->program.defines_malloc)
        find("no", "The program defines malloc itself: hakmem cannot take its place.");
    else if (serving->other != NULL)
        find("no", "%s serves malloc; hakmem run PROGRAM puts hakmem in its place.",
             serving->other);
    else if (serving->has_libc)
        find("no", "The C library's malloc serves; hakmem run PROGRAM puts hakmem in its place.");
    else
        find("no", "The program is static and brings its own malloc; link it with hakmem.o.");
    if (strstr(serving->preloaded, "libhakmem") != NULL)
        find("fix",
             "LD_PRELOAD names hakmem, but it is not mapped: the program is static or privileged, "
             "or the file could not be loaded.");
}

/* Whether hakmem serves malloc, and if not, why not. */
static void examine_allocator(const struct serving *serving)
{
    const char *library = serving->library;
    print_environment(serving);
    switch (serving->kind) {
    case SERVING_LINKED:
        find("ok", "hakmem serves malloc: it is linked into the program.");
        return;
    case SERVING_NOTHING:
        examine_absence(serving);
        return;
    case SERVING_UNREADABLE:
        find("note", "%.300s is mapped; the program's file cannot be read.", library);
        return;
    case SERVING_UNCLEAR:
        find("note", "%.300s is mapped; whose malloc the program calls is unknown%s.", library,
             serving->is_lost
                 ? ", since it has overwritten its environment: HAKMEM_STATS_SHM=1 shows it"
                 : "");
        break;
    case SERVING_OWN_MALLOC:
        find("no", "hakmem is mapped but serves nothing: the program defines malloc itself.");
        break;
    case SERVING_SHADOWED:
        find("no", "hakmem is mapped but serves nothing: %.300s comes before it.", serving->server);
        break;
    case SERVING_PRELOADED:
        find("ok", "hakmem serves malloc: %.300s is mapped.", library);
        break;
    }
    if (serving->is_deleted)
        find("note", "That file has been replaced since: restart the process to use the new one.");
    if (serving->other != NULL && serving->kind == SERVING_PRELOADED)
        find("note", "%s is mapped, too, and comes after hakmem.", serving->other);
}

/* A size of /proc/PID/status or smaps_rollup, which are in kB; 0: it is not there. */
static uint64_t size_of(const char *text, const char *key)
{
    const char *found = strstr(text, key);
    return found == NULL ? 0 : strtoull(found + strlen(key), NULL, 10) << 10;
}

static void examine_memory(int process)
{
    char path[64], text[8192], resident[32], huge[32];
    file_of(process, "status", path, sizeof path);
    if (!kernel_text(path, text, sizeof text))
        return;
    uint64_t bytes = size_of(text, "\nVmRSS:");
    uint64_t locked = size_of(text, "\nVmLck:");
    uint64_t threads = size_of(text, "\nThreads:") >> 10;
    file_of(process, "smaps_rollup", path, sizeof path);
    uint64_t huge_bytes = 0;
    if (kernel_text(path, text, sizeof text))
        huge_bytes = size_of(text, "\nAnonHugePages:");
    find("note", "%s resident, %s of it in huge pages; %" PRIu64 " thread%s.",
         size_text(resident, bytes), size_text(huge, huge_bytes), threads, threads == 1 ? "" : "s");
    if (locked > 0)
        find("note", "%s are locked: they cannot be returned to the kernel.",
             size_text(resident, locked));
}

/* Reports from published statistics, if any: the owner of the caches, and advice. */
static void examine_published(int process)
{
    static struct target target;
    const char *why;
    if (!target_read(&target, process, &why)) {
        find("note", "If started with HAKMEM_STATS_SHM=1 it would show its statistics here.");
        return;
    }
    const struct snapshot *of = &target.page.snapshot;
    const char *advice = hak_summary_advice(of);
    find(of->rseq_reason == RSEQ_PROCESSOR ? "ok" : "note", "rseq: %s, %s.",
         of->rseq_reason == RSEQ_PROCESSOR ? "processor" : "thread",
         hak_rseq_meaning(of->rseq_reason));
    if (*advice != '\0')
        find("fix", "%s", advice);
}

static void examine_count(uint64_t count)
{
    uint64_t most;
    if (!kernel_number("/proc/sys/vm/max_map_count", &most) || most == 0)
        return;
    if (count > most / 4 * 3)
        find("fix",
             "%" PRIu64 " of %" PRIu64 " mappings are used: raise vm.max_map_count before "
             "mmap fails.",
             count, most);
    else
        find("ok", "%" PRIu64 " of %" PRIu64 " mappings are used.", count, most);
}

static void examine_limits(int process)
{
    char path[64], text[4096];
    file_of(process, "limits", path, sizeof path);
    if (!kernel_text(path, text, sizeof text))
        return;
    static const char *const names[] = {"Max address space", "Max data size"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *found = strstr(text, names[i]);
        uint64_t limit;
        char size[32];
        if (found != NULL && sscanf(found + strlen(names[i]), " %" SCNu64, &limit) == 1)
            find("note", "%s is %s: requests beyond it are ENOMEM.", names[i] + 4,
                 size_text(size, limit));
    }
}

int examine_process(int process)
{
    static struct serving serving;
    struct process found;
    char path[64];
    const char *name = found.name;
    if (!process_find(&found, process))
        return complain(EXIT_FAILED, "doctor: there is no process %d", process);
    process_leave(&found);
    if (!serving_read(&serving, process))
        return complain(EXIT_FAILED,
                        "doctor: the mappings of process %d (%.60s) cannot be read: "
                        "%s",
                        process, name, strerror(serving.error));
    if (serving.mapping_count == 0)
        return complain(EXIT_FAILED, "doctor: process %d (%.60s) is a kernel thread or has ended",
                        process, name);
    printf("process %d (%s)\n", process, name);
    examine_allocator(&serving);
    examine_memory(process);
    if (serving.library != NULL)
        examine_published(process);
    examine_count(serving.mapping_count);
    examine_limits(process);
    file_of(process, "cgroup", path, sizeof path);
    examine_cgroup(path);
    bool is_unserved = serving.kind == SERVING_NOTHING || serving.kind == SERVING_OWN_MALLOC ||
                       serving.kind == SERVING_SHADOWED;
    return is_unserved ? EXIT_FAILED : EXIT_DONE;
}
