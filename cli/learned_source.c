/* SPDX-License-Identifier: MIT */
#include "learned_source.h"

#include "command.h"
#include "os/own_file.h"

#include <stdio.h>
#include <string.h>

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

/* As many as the line holds. */
static const char *names_of(const struct learned *learned, char *names, size_t bytes)
{
    size_t used = 0;
    for (uint32_t i = 0; i < learned->count && used < bytes; i++)
        used += (size_t)snprintf(names + used, bytes - used, "%s%s", i == 0 ? "" : ", ",
                                 learned->programs[i].name);
    if (used >= bytes)
        memcpy(names + bytes - sizeof "...", "...", sizeof "...");
    return names;
}

const struct learned_program *learned_source_program(const struct learned *learned,
                                                     const char *command, const char *path,
                                                     const char *name)
{
    char names[512];
    if (name == NULL && learned->count > 1) {
        complain(EXIT_FAILED, "%s: %.300s has several programs, name one with --program: %s",
                 command, path, names_of(learned, names, sizeof names));
        return NULL;
    }
    if (name == NULL)
        name = learned->count == 0 ? "at all" : learned->programs[0].name;
    const struct learned_program *program = hak_learned_find(learned, name);
    if (program == NULL)
        complain(EXIT_FAILED, "%s: %s has no program %s", command, path, name);
    return program;
}
