/* SPDX-License-Identifier: MIT */
/* cli/profiles/formats.h - files of heap profiles: their readers and writers.
 *
 * Owns        nothing.
 * Invariants  a reader takes any bytes: it fills an empty profile and returns true, or returns
 *             false with the reason in `wrong`. Nothing outside the bytes is read; memory is
 *             bounded by a multiple of their number, a compressed file's size by a constant.
 * Threads     one.
 * Tests       tests/cli/profile_cli.sh, tests/fuzz/profile_fuzz.c
 */
#ifndef HAK_CLI_PROFILES_FORMATS_H
#define HAK_CLI_PROFILES_FORMATS_H

#include "profiles/model.h"

#include <stdio.h>

/* A file of pprof's, compressed by gzip or not. */
bool pprof_read(struct profile *profile, const void *bytes, size_t byte_count);

/* Writes one, compressed. False: *profile has the reason. */
bool pprof_write(struct profile *profile, FILE *to);

/* jemalloc's text heap_v2, whose numbers are those of the sampled blocks. */
bool heap_v2_read(struct profile *profile, const char *text, size_t bytes);
bool is_heap_v2(const char *text, size_t bytes);

/* Folded stacks, and what json_write or the library wrote. Code that is told by file and offset
 * alone lies in modules at places of their own. */
bool folded_read(struct profile *profile, const char *text, size_t bytes);
bool is_folded(const char *text, size_t bytes);
bool json_read(struct profile *profile, const char *text, size_t bytes);

/* Writes one with a period of 1, which says that its numbers are estimates of all blocks. */
void heap_v2_write(const struct profile *profile, FILE *to);

/* Tells the formats apart by their first bytes. */
bool profile_read(struct profile *profile, const char *bytes, size_t byte_count);

/* Which values one of the lists below is about: a value of enum value. */
void folded_write(const struct profile *profile, enum value value, FILE *to);
void json_write(const struct profile *profile, FILE *to);

/* One page of HTML with all of the profile in it. */
void flame_write(const struct profile *profile, FILE *to);

/* A text between quotes; what is not UTF-8 becomes U+FFFD. It can stand in an HTML page, too. */
void json_text(const char *text, FILE *to);

#endif
