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
      "  --mode MODE        one of the modes of hakmem(3), say fast or hardened\n"                 \
      "  -o NAME=VALUE      an option; hakmem options lists them\n"                                \
      "  --bounds           stop copies beyond the end of a block (libhakmem-bounds.so)\n"         \
      "  --strict           do not run a program that would run without hakmem\n")                 \
    X(options, "[--json] [NAME]...", "list the options, their values here and what they mean",     \
      "  --json             as a list of objects\n"                                                \
      "  NAME               only this one: decay or HAKMEM_DECAY\n")                               \
    X(stats, "[--all] FILE", "show statistics that hakmem wrote to a file, in any form",           \
      "  --all              also what is zero, and settings\n"                                     \
      "  FILE               a file that HAKMEM_STATS_FILE named; -: standard input\n")             \
    X(top, "[PID | --all] [--once | --json | --serve PORT] [--interval SECONDS]",                  \
      "watch where the memory of a running process is",                                            \
      "  PID                a process, which is asked to show its numbers; without it, those "     \
      "that\n"                                                                                     \
      "                     map hakmem are listed to choose from\n"                                \
      "  --once             once, as plain text\n"                                                 \
      "  --json             once, as JSON (docs/stats.schema.json)\n"                              \
      "  --serve PORT       OpenMetrics at http://127.0.0.1:PORT/metrics; 0: any free port\n"      \
      "  --all              with --serve: all that this user started with HAKMEM_STATS_SHM=1\n"    \
      "  --interval SECONDS between two looks, 0.25 to 64; 1 if not given\n"                       \
      "  keys: q quit, c call sites and sizes, s another order, up down j k scroll,\n"             \
      "        / filter, p pause, + - slower and faster, h help\n")                                \
    X(ps, "[--ask] [--json]", "list the processes that map hakmem, and whether it serves them",    \
      "  --ask              ask those that publish no numbers for what is live in them\n"          \
      "  --json             as a list of objects\n")                                               \
    X(ctl, "[--wait SECONDS] [--later] PID REQUEST [ARGUMENT]",                                    \
      "ask a running process of the same user for something",                                      \
      "  --wait SECONDS     for the answer; 5 if not given\n"                                      \
      "  --later            leave it to a process that sleeps, for when it works again\n"          \
      "  trim               give everything free back to the kernel\n"                             \
      "  dump [FILE]        write the statistics, as JSON; a new file hakmem.PID.json if not "     \
      "named, -: here\n"                                                                           \
      "  dump --pprof [FILE]  the heap profile, for pprof; a new file hakmem.PID.pprof;\n"         \
      "       --heap-v2     as jemalloc's text, hakmem.PID.heap; of a process that sleeps, all\n"  \
      "       --folded      folded stacks, hakmem.PID.folded;    are read from shared memory\n"    \
      "       --profile-json  as of hakmem profile --json, hakmem.PID.profile.json\n"              \
      "  set NAME=VALUE     change an option: decay, retain, limit, soft_limit, free_policy,\n"    \
      "                     big_cache, prewarm, thread_cache, foreign, price, guard_rate,\n"       \
      "                     heap_profile_rate, heap_profile_samples\n"                             \
      "  profile on|off     start or stop the heap profiler\n")                                    \
    X(doctor, "[PID]", "check what on this machine, or of a process, holds hakmem back",           \
      "  PID                a process: whose malloc it calls, its memory and limits\n")            \
    X(migrate, "[NAME=VALUE]...", "translate another allocator's settings",                        \
      "  NAME=VALUE         say MALLOC_CONF=dirty_decay_ms:1000 or MIMALLOC_PURGE_DELAY=50;\n"     \
      "                     without one, those of the environment\n")                              \
    X(profile,                                                                                     \
      "[--folded] [--live | --allocated] [--json] [--leaks] [--all] [--pprof OUT] "                \
      "[--heap-v2 OUT] [--flame OUT] PROFILE",                                                     \
      "show which functions hold a program's memory",                                              \
      "  PROFILE            a process that runs with HAKMEM_HEAP_PROFILE=on, or a file: its\n"     \
      "                     board, pprof's, jemalloc's heap_v2, folded stacks, JSON\n"             \
      "  --folded           a stack and its bytes a line, for flame graphs\n"                      \
      "  --live             with --folded: what lives, if not given\n"                             \
      "  --allocated        with --folded: all that was allocated\n"                               \
      "  --json             everything, as JSON\n"                                                 \
      "  --leaks            what lives since long, its age and its growth\n"                       \
      "  --all              all rows of a table\n"                                                 \
      "  --pprof OUT        write a file for pprof\n"                                              \
      "  --heap-v2 OUT      write a file for jeprof\n"                                             \
      "  --flame OUT        write a page with a flame graph\n"                                     \
      "  hakmem profile diff A B   what grew from profile A to profile B\n")                       \
    X(growth, "[--all] [--most SIZE] PID SECONDS",                                                 \
      "watch a process, and show what grew meanwhile",                                             \
      "  PID                a process that runs with HAKMEM_HEAP_PROFILE=on\n"                     \
      "  SECONDS            how long: 30 or 30s\n"                                                 \
      "  --all              all rows of the table\n"                                               \
      "  --most SIZE        exit status 3 if more than this grew in all, say 16M\n")               \
    X(autopsy, "PROFILE", "show what a process that was killed held last",                         \
      "  PROFILE            the number of a process that ran with HAKMEM_BLACKBOX=on, or the\n"    \
      "                     file that it left\n")                                                  \
    X(learned, "[--json] show | diff | merge | lint FILE...",                                      \
      "show, compare, add up or check files of option profile",                                    \
      "  show FILE...       what each program learned: runs, the most that was in use in the\n"    \
      "                     first second, the superslabs that were filled then, and how long\n"    \
      "                     free memory is kept\n"                                                 \
      "  diff A B           the programs of which A and B say something else\n"                    \
      "  merge FILE...      add them up, and write a file of that to standard output\n"            \
      "  lint FILE...       whether a program of this user would read them\n"                      \
      "  --json             as objects\n")                                                         \
    X(elo, "[--json] [PID | FILE]",                                                                \
      "show what values of a program's numbers are tried, and what won",                           \
      "  PID                a process that runs with the word matches in HAKMEM_LEARN, as modes\n" \
      "                     learning and research do; without it, all that do\n"                   \
      "  FILE               a file of option profile: what is known from earlier runs\n"           \
      "  --json             the same as an object\n")                                              \
    X(rules, "[--json] [--program NAME] [SOURCE [ACTION [ARGUMENT]...]]",                          \
      "show and change which call sites keep what they allocate",                                  \
      "  SOURCE             a process that runs with learn=sites, or a file of option profile;\n"  \
      "                     without it, all such processes\n"                                      \
      "  list               the rules and their evidence; without an action\n"                     \
      "  pin SITE           its blocks lie apart from now on, whatever is learned\n"               \
      "  forbid SITE        its blocks lie among the others, whatever is learned\n"                \
      "  free SITE          takes pin or forbid back\n"                                            \
      "  export             write the rules to standard output, a line each\n"                     \
      "  import FILE        bring such rules to the process, or into the file\n"                   \
      "  SITE               FILE+0xOFFSET BYTES, as list shows it, and FILE+0xOFFSET of the\n"     \
      "                     caller if the site is a wrapper\n"                                     \
      "  --program NAME     which program of the file; the one that ended last if not given\n"     \
      "  --json             as a list of objects\n")                                               \
    X(classes, "[--json] [--count N] [--program NAME] PID | FILE",                                 \
      "show what other size classes would save for a program",                                     \
      "  PID                a process that runs with learn=sites or heap_profile=on\n"             \
      "  FILE               a file of option profile: what such runs held\n"                       \
      "  --count N          print the best table of at most so many classes; as many as there "    \
      "are\n"                                                                                      \
      "                     if not given\n"                                                        \
      "  --program NAME     which program of the file; the one that ended last if not given\n"     \
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

/* The same with how the subcommand is used, and EXIT_USAGE. */
int complain_usage(const char *command);

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
