/* SPDX-License-Identifier: MIT */
#include "os/thread_label.h"

#include "os/confine.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NAME_BYTES 16u

struct thread_label hak_os_thread_label(void)
{
    struct thread_label label = {0};
    char name[NAME_BYTES] = "";
    int saved = errno;
    if (hak_os_ask_begin()) {
        label.id = (uintptr_t)syscall(SYS_gettid);
        syscall(SYS_prctl, PR_GET_NAME, name, 0, 0, 0);
        hak_os_ask_end();
    }
    memcpy(label.name, name, NAME_BYTES);
    errno = saved;
    return label;
}

void hak_os_thread_label_add(struct text *text, const struct thread_label *label)
{
    char name[NAME_BYTES];
    if (label->id == 0)
        return;
    hak_text_add(text, " by thread ");
    hak_text_add_number(text, label->id, 10);
    memcpy(name, label->name, NAME_BYTES);
    name[NAME_BYTES - 1] = '\0';
    for (char *at = name; *at != '\0'; at++)
        if (*at < ' ' || *at > '~')
            *at = '?';
    if (name[0] == '\0')
        return;
    hak_text_add(text, " (");
    hak_text_add(text, name);
    hak_text_add(text, ")");
}
