/* SPDX-License-Identifier: MIT */
#include "observe/emit.h"

static void add_line(struct text *text, const char *name, uint64_t value)
{
    hak_text_add(text, name);
    hak_text_add(text, ": ");
    hak_text_add_number(text, value, 10);
    hak_text_add(text, "\n");
}

void hak_emit_text(const struct snapshot *snapshot, struct text *text)
{
#define X(name, meaning) add_line(text, #name, snapshot->name);
    HAK_SNAPSHOT_TABLE(X)
    HAK_STAT_GLOBAL_TABLE(X)
#undef X
#define X(name, meaning) add_line(text, #name, snapshot->sums[HAK_STAT_##name]);
    HAK_STAT_TABLE(X)
#undef X
}
