/* SPDX-License-Identifier: MIT */
/* profile/output.h - the heap profile as a file, in one of several forms.
 *
 *   pprof    profile.proto, not compressed (profile/pprof.h)
 *   heap_v2  jemalloc's text, with a period of 1: its numbers are estimates of all blocks
 *   folded   FILE+0xOFFSET;FILE+0xOFFSET BYTES a line, outermost first: live bytes
 *   json     the object that `hakmem profile --json` prints
 *
 * Owns        the names of the forms.
 * Invariants  code is told by files and addresses, without the names of functions, which the
 *             command finds. Nothing is allocated; memory is bounded.
 * Threads     one writes at a time; others wait for a second at most. Copies begin anew.
 * Tests       tests/preload/pprof_preload.py, tests/preload/profile.c
 */
#ifndef HAK_PROFILE_OUTPUT_H
#define HAK_PROFILE_OUTPUT_H

#include "profile/writer.h"

/* X(name, what follows the name of a file). */
#define HAK_PROFILE_FORM_TABLE(X)                                                                  \
    X(pprof, ".pprof")                                                                             \
    X(heap_v2, ".heap")                                                                            \
    X(folded, ".folded")                                                                           \
    X(json, ".profile.json")

enum profile_form {
#define X(name, suffix) PROFILE_FORM_##name,
    HAK_PROFILE_FORM_TABLE(X)
#undef X
        PROFILE_FORM_COUNT
};

struct profile_form_names {
    const char *name;
    const char *suffix;
};
extern const struct profile_form_names hak_profile_forms[PROFILE_FORM_COUNT];

/* PROFILE_FORM_COUNT: there is none of that name. */
enum profile_form hak_profile_form_of(const char *name);

/* Returns 0, EBUSY: another thread has been writing for a second, or the error of the write. */
int hak_profile_output(const struct profile_target *to, enum profile_form form);

/* Whether anything was ever sampled. */
bool hak_profile_output_has_any(void);

/* Names of files that do not begin with / are meant from here on. Once, at start. */
void hak_profile_output_start(void);

/* At the end of the process: writes a new file hakmem.PID and the form's suffix, or STATS_FILE and
 * the suffix where that option names a file; with .2 before the suffix and so on where there is
 * one. None if nothing was sampled, or if it cannot be written whole, which one line says. */
void hak_profile_output_file(enum profile_form form);

#endif
