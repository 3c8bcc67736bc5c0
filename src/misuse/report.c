/* SPDX-License-Identifier: MIT */
#include "misuse/report.h"

#include "base/text.h"
#include "os/stderr.h"

#include <stdlib.h>

_Noreturn void hak_misuse(const char *what, const void *pointer, size_t bytes, const char *state)
{
    char line[HAK_MISUSE_STATE_BYTES + 128];
    struct text text = {.start = line, .bytes = sizeof line};
    hak_text_add(&text, "hakmem: ");
    hak_text_add(&text, what);
    hak_text_add(&text, ": pointer 0x");
    hak_text_add_number(&text, (uintptr_t)pointer, 16);
    if (bytes != 0) {
        hak_text_add(&text, ", block of ");
        hak_text_add_number(&text, bytes, 10);
        hak_text_add(&text, " bytes, ");
    } else {
        hak_text_add(&text, ", no block, ");
    }
    hak_text_add(&text, state);
    hak_os_stderr_line(&text);
    abort();
}

_Noreturn void hak_misuse_nothing(const char *what, const void *pointer)
{
    hak_misuse(what, pointer, 0, "nothing is allocated there: freed before, or never allocated");
}
