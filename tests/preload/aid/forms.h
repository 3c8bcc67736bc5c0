/* SPDX-License-Identifier: MIT */
/* tests/preload/aid/forms.h - the statistics of this process in every form. */
#ifndef TESTS_PRELOAD_AID_FORMS_H
#define TESTS_PRELOAD_AID_FORMS_H

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A function of hakmem's that the program is not linked with. */
static inline void *find(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    if (found == NULL)
        exit(3);
    return found;
}

static inline int print(int fd, const char *form)
{
    int (*function)(int, const char *);
    *(void **)&function = find("hakmem_stats_print");
    return function(fd, form);
}

/* FOLDER/WHEN.{text,raw,json,xml,openmetrics} */
static inline void put(const char *folder, const char *when)
{
    static const char *const forms[] = {"text", "raw", "json", "xml", "openmetrics"};
    for (int i = 0; i < 5; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s.%s", folder, when, forms[i]);
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (fd < 0 || print(fd, forms[i]) != 0)
            exit(2);
        close(fd);
    }
}

#endif
