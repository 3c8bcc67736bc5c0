/* SPDX-License-Identifier: MIT */
#include "learned_source.h"

#include "os/own_file.h"

const char *learned_source_read(struct learned *learned, const char *path)
{
    static char text[HAK_LEARNED_BYTES_MOST];
    size_t bytes = 0;
    enum own_file file = hak_os_own_file_read(path, text, sizeof text, &bytes);
    if (file == OWN_FILE_LARGE)
        return hak_learned_verdict_text(LEARNED_TOO_LONG);
    if (file != OWN_FILE_READ)
        return hak_os_own_file_text(file);
    enum learned_verdict verdict = hak_learned_read(learned, text, bytes);
    return verdict == LEARNED_READ ? NULL : hak_learned_verdict_text(verdict);
}
