/* SPDX-License-Identifier: MIT */
/* control/sizes.h - the sizes of the blocks that the process holds, for requests from outside.
 *
 * Owns        nothing: the one place where a request reaches them.
 * Invariants  the answer is one line of text without its end.
 * Threads     one at a time, outside every heap and lock, signals blocked.
 * Tests       tests/preload/classes_preload.py
 */
#ifndef HAK_CONTROL_SIZES_H
#define HAK_CONTROL_SIZES_H

#include "base/text.h"
#include "os/request_file.h"

/* Writes what the samples say behind the request (learn/size_spread.h). */
bool hak_control_sizes_list(const struct os_kept_fd *file, struct text *answer);

#endif
