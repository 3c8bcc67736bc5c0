/* SPDX-License-Identifier: MIT */
/* cli/serving.h - whose malloc a running process calls.
 *
 * Owns        struct serving: what the kernel and the files say of one process.
 * Invariants  what cannot be read is said to be unknown, never guessed.
 * Threads     one.
 * Tests       tests/cli/doctor_cli.sh, tests/preload/ctl_preload.py
 */
#ifndef HAK_CLI_SERVING_H
#define HAK_CLI_SERVING_H

#include "program.h"

enum { SERVING_FILES_MOST = 1024 };

enum serving_kind {
    SERVING_LINKED,     /* hakmem is linked into the program */
    SERVING_PRELOADED,  /* libhakmem.so serves */
    SERVING_OWN_MALLOC, /* libhakmem.so is mapped; the program defines malloc itself */
    SERVING_SHADOWED,   /* it is mapped; `server` comes before it */
    SERVING_UNCLEAR,    /* it is mapped; whose malloc the program calls cannot be told */
    SERVING_UNREADABLE, /* it is mapped; the program's file cannot be read */
    SERVING_NOTHING,    /* hakmem is not there */
};

struct serving {
    char *files[SERVING_FILES_MOST]; /* that are mapped, each once */
    int file_count;
    const char *library; /* libhakmem.so among them; NULL: it is not mapped */
    const char *other;   /* another allocator; NULL: none is known */
    bool is_deleted;     /* the library's file was replaced */
    bool has_libc;
    int error; /* why the mappings cannot be read */
    uint64_t mapping_count;
    char environment[1 << 16]; /* that it started with, strings one after the other */
    size_t environment_bytes;
    const char *preloaded; /* what was to be preloaded; "": nothing, or the environment is lost */
    bool is_lost; /* the program has overwritten its environment, as those do that show a title */
    struct program program;
    const char *server; /* the file whose malloc it calls, where libhakmem.so is mapped */
    enum serving_kind kind;
};

/* Reads it; false: the mappings cannot be read. */
bool serving_read(struct serving *serving, int process);

/* Frees what it holds. */
void serving_forget(struct serving *serving);

/* Why a process will not answer any request, in one line; NULL: no reason is known. */
const char *serving_obstacle(int process);

#endif
