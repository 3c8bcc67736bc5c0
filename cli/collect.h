/* SPDX-License-Identifier: MIT */
/* cli/collect.h - the numbers of all processes of this user in one OpenMetrics document.
 *
 * Owns        the document: each family once, with a sample of each process, which the labels `pid`
 *             and `program` tell apart.
 * Invariants  the publishing processes are read from /dev/shm each time; a process that ends
 *             meanwhile, or whose numbers cannot be read, is left out.
 * Threads     one.
 * Tests       tests/preload/top_preload.py
 */
#ifndef HAK_CLI_COLLECT_H
#define HAK_CLI_COLLECT_H

#include "base/compiler.h"

struct document {
    char *start;
    size_t bytes;
    size_t room;
    bool is_short; /* memory did not suffice for all of it */
};

void document_add(struct document *document, const char *piece, size_t bytes);

/* Fills an empty document. */
void collect_all(struct document *document);

#endif
