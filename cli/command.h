/* SPDX-License-Identifier: MIT */
/* cli/command.h - the subcommands of `hakmem`, one row and one file each.
 *
 * Owns        COMMAND_TABLE: X(name, arguments, meaning, details). A row has a function
 *             command_NAME in cli/NAME.c; the usage texts and the synopsis of docs/man/hakmem.1
 *             are made from the rows.
 * Invariants  exit status: 0 done, 1 could not be done, 2 wrong usage, 3 of `growth` for too much
 *             of it; `run` has that of the program, 126 or 127 as env(1). What is wrong is said in
 *             one line on standard error.
 * Threads     one.
 * Tests       tests/cli/
 */
#ifndef HAK_CLI_COMMAND_H
#define HAK_CLI_COMMAND_H

#include "base/compiler.h"

#include <stdarg.h>

#define COMMAND_TABLE(X)                                                                           \
    X(run, "[--mode MODE] [-o NAME=VALUE]... [--bounds] [--strict] PROGRAM [ARGUMENT]...",         \
      "run a program with hakmem as its malloc",                                                   \
      "  --mode MODE        one of hakmem's modes, such as fast or hardened\n"                     \
      "  -o NAME=VALUE      an option; hakmem options lists them\n"                                \
      "  --bounds           abort copies beyond the end of a block\n"                              \
      "  --strict           do not run a program that hakmem cannot serve\n")                      \
    X(options, "[--json] [NAME]...", "list the options with their values here and their meanings", \
      "  --json             as a list of objects\n"                                                \
      "  NAME               only this option: decay or HAKMEM_DECAY\n")                            \
    X(stats, "[--all] FILE", "show statistics that hakmem wrote to a file, in any form",           \
      "  --all              also zeros and settings\n"                                             \
      "  FILE               a file written by HAKMEM_STATS_FILE; -: standard input\n")             \
    X(top, "[PID] [--once | --json | --serve PORT] [--interval SECONDS] | --all --serve PORT",     \
      "watch where the memory of a running process is",                                            \
      "  PID                a process, which is asked to publish statistics; without\n"            \
      "                     it, the processes that map hakmem, to choose from\n"                   \
      "  --once             once, as plain text\n"                                                 \
      "  --json             once, as JSON (docs/stats.schema.json)\n"                              \
      "  --serve PORT       OpenMetrics at http://127.0.0.1:PORT/metrics; 0: any port\n"           \
      "  --all              with --serve: all processes of this user with\n"                       \
      "                     HAKMEM_STATS_SHM=1\n"                                                  \
      "  --interval SECONDS refresh interval, 0.25 to 64; 1 by default\n"                          \
      "  keys: q quit, c call sites or sizes, s sort order, up down j k scroll,\n"                 \
      "        / filter, p pause, + - slower and faster, h help\n")                                \
    X(ps, "[--ask] [--json]", "list the processes that map hakmem, and whether it serves them",    \
      "  --ask              ask processes that publish no statistics for their live\n"             \
      "                     memory\n"                                                              \
      "  --json             as a list of objects\n")                                               \
    X(ctl, "[--wait SECONDS] [--later] PID REQUEST [ARGUMENT]",                                    \
      "send a request to a running process of the same user",                                      \
      "  --wait SECONDS     time to wait for the answer; 5 by default\n"                           \
      "  --later            leave the request to a sleeping process, for later\n"                  \
      "  trim               return all free memory to the kernel\n"                                \
      "  dump [FILE]        write the statistics as JSON, by default to a new file\n"              \
      "                     hakmem.PID.json; -: to standard output\n"                              \
      "  dump --pprof [FILE]  the heap profile, for pprof, hakmem.PID.pprof\n"                     \
      "       --heap-v2     as jemalloc's text, hakmem.PID.heap\n"                                 \
      "       --folded      folded stacks, hakmem.PID.folded\n"                                    \
      "       --profile-json  as hakmem profile --json, hakmem.PID.profile.json\n"                 \
      "                     of a sleeping process, all are read from shared memory\n"              \
      "  set NAME=VALUE     change an option: decay, retain, limit, soft_limit,\n"                 \
      "                     free_policy, big_cache, prewarm, thread_cache, foreign,\n"             \
      "                     price, guard_rate, heap_profile_rate, heap_profile_samples\n"          \
      "  profile on|off     start or stop the heap profiler\n")                                    \
    X(doctor, "[PID]", "check which settings of this machine or process limit hakmem",             \
      "  PID                a process: whose malloc it calls, its memory and limits\n")            \
    X(migrate, "[NAME=VALUE]...", "translate another allocator's settings",                        \
      "  NAME=VALUE         such as MALLOC_CONF=dirty_decay_ms:1000 or\n"                          \
      "                     MIMALLOC_PURGE_DELAY=50; without one, the settings in the\n"           \
      "                     environment\n")                                                        \
    X(profile,                                                                                     \
      "[--folded] [--live | --allocated] [--json] [--leaks] [--all] [--pprof OUT] "                \
      "[--heap-v2 OUT] [--flame OUT] PROFILE | diff [--all] A B",                                  \
      "show which functions hold a program's memory",                                              \
      "  PROFILE            a process that runs with HAKMEM_HEAP_PROFILE=on, or a\n"               \
      "                     file: its shared file, pprof, jemalloc's heap_v2, folded\n"            \
      "                     stacks, JSON; -: standard input\n"                                     \
      "  --folded           one stack and its bytes per line, for flame graphs\n"                  \
      "  --live             with --folded: live bytes (the default)\n"                             \
      "  --allocated        with --folded: all allocated bytes\n"                                  \
      "  --json             everything, as JSON\n"                                                 \
      "  --leaks            old live memory, its age and its growth\n"                             \
      "  --all              all rows of the table\n"                                               \
      "  --pprof OUT        write a file for pprof; -: to standard output\n"                       \
      "  --heap-v2 OUT      write a file for jeprof\n"                                             \
      "  --flame OUT        write a page with a flame graph\n"                                     \
      "  diff A B           what grew from profile A to profile B\n")                              \
    X(growth, "[--all] [--most SIZE] PID SECONDS", "watch a process and show what grew",           \
      "  PID                a process that runs with HAKMEM_HEAP_PROFILE=on\n"                     \
      "  SECONDS            duration: 30 or 30s\n"                                                 \
      "  --all              all rows of the table\n"                                               \
      "  --most SIZE        exit status 3 if the total growth exceeds it, such as 16M\n")          \
    X(autopsy, "[PROFILE]", "show what a killed process held",                                     \
      "  PROFILE            the PID or the name of a process that ran with\n"                      \
      "                     HAKMEM_BLACKBOX=on, or the file that it left; without it,\n"           \
      "                     all files of ended processes, also in containers\n")                   \
    X(learned, "[--json] show | diff | merge | lint FILE...",                                      \
      "show, compare, merge or check files of option profile",                                     \
      "  show FILE...       what each program learned: runs, peak memory use in the\n"             \
      "                     first second, and how long free memory is kept\n"                      \
      "  diff A B           the programs whose entries differ\n"                                   \
      "  merge FILE...      combine them, and write the result to standard output\n"               \
      "  lint FILE...       check whether a program of this user would read them\n"                \
      "  --json             as objects\n")                                                         \
    X(elo, "[--json] [PID | FILE]", "show which tuning values a program tries, and which won",     \
      "  PID                a process that runs with matches in HAKMEM_LEARN, as in\n"             \
      "                     modes learning and research; without it, all such\n"                   \
      "                     processes\n"                                                           \
      "  FILE               a file of option profile: the results of earlier runs\n"               \
      "  --json             the same as an object\n")                                              \
    X(rules, "[--json] [--program NAME] [SOURCE [ACTION [ARGUMENT]...]]",                          \
      "show and change which call sites allocate long-lived blocks",                               \
      "  SOURCE             a process that runs with learn=sites, or a file of option\n"           \
      "                     profile; without it, all such processes\n"                             \
      "  list               the rules, their evidence, and what those in force change\n"           \
      "                     (the default)\n"                                                       \
      "  pin SITE           its blocks get slabs of their own, regardless of learning\n"           \
      "  forbid SITE        its blocks stay among the others, regardless of learning\n"            \
      "  free SITE          undoes pin or forbid\n"                                                \
      "  export             write the rules to standard output, one per line\n"                    \
      "  import FILE        read such rules into the process or the file\n"                        \
      "  SITE               FILE+0xOFFSET BYTES, as list shows it, and FILE+0xOFFSET\n"            \
      "                     of the caller if the site is a wrapper, and of that\n"                 \
      "                     one's caller if that is a wrapper, too\n"                              \
      "  --program NAME     a program of the file, if it has several: list shows all,\n"           \
      "                     other actions and --json need one\n"                                   \
      "  --json             as a list of objects\n")                                               \
    X(classes, "[--json] [--count N] [--program NAME] PID | FILE",                                 \
      "show what other size classes would save for a program",                                     \
      "  PID                a process that runs with learn=sites or heap_profile=on\n"             \
      "  FILE               a file of option profile: the memory of such runs\n"                   \
      "  --count N          print the best table of at most N classes; by default, as\n"           \
      "                     many as there are now\n"                                               \
      "  --program NAME     a program of the file, if several have such memory\n"                  \
      "  --json             as an object\n")

enum {
    EXIT_DONE,
    EXIT_FAILED,
    EXIT_USAGE,
    EXIT_GREW,
    EXIT_NOT_EXECUTABLE = 126,
    EXIT_NOT_FOUND = 127
};

/* arguments[0] is the name of the subcommand; argument_count counts it, too. Returns the exit
 * status. */
typedef int command_fn(int argument_count, char **arguments);

#define X(name, arguments, meaning, details) command_fn command_##name;
COMMAND_TABLE(X)
#undef X

/* Prints to `line`; what may come from elsewhere, names of files and programs, stays one line:
 * control characters become '?'. */
void print_line(char *line, size_t bytes, const char *format, va_list arguments);

/* Prints a string of JSON to standard output; control characters become '?'. */
void put_json_string(const char *string);

/* Prints "hakmem: " and one line on standard error; returns `status`. */
int complain(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Says that no option has the name, and which is the nearest; returns EXIT_USAGE. */
int complain_option(const char *name, size_t name_bytes);

/* Says how the subcommand is used, as something is missing; returns EXIT_USAGE. */
int complain_usage(const char *command);

/* Names a word that the subcommand does not take; returns EXIT_USAGE. */
int complain_word(const char *command, const char *word);

/* Ends this program as the signal does that it only noted. */
void end_by_signal(int number);

/* Reads the options as a program does that is started from here. */
void settings_read(void);

/* Why something was refused, for the caller to say. */
struct reason {
    char text[512];
};

/* Writes the reason; returns false. */
bool refuse(struct reason *reason, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A name as a message shows it: '' for an empty one. */
const char *shown_name(const char *name);

/* Writes `bytes` with a unit, 12.3 MiB, to `text` of at least 32 bytes; returns it. */
char *size_text(char *text, uint64_t bytes);

#endif
