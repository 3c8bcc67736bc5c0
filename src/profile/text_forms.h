/* SPDX-License-Identifier: MIT */
/* profile/text_forms.h - the heap profile as text: jemalloc's heap_v2, folded stacks, JSON.
 *
 * Owns        nothing.
 * Invariants  as in profile/output.h.
 * Threads     one at a time (profile/output.h).
 * Tests       tests/preload/pprof_preload.py
 */
#ifndef HAK_PROFILE_TEXT_FORMS_H
#define HAK_PROFILE_TEXT_FORMS_H

#include "profile/writer.h"

void hak_heap_v2_write(struct profile_writer *writer);
void hak_folded_write(struct profile_writer *writer);
void hak_json_write(struct profile_writer *writer);

#endif
