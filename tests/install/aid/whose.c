/* SPDX-License-Identifier: MIT */
/* tests/install/aid/whose.c - says whose malloc this program has: the name of the file. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void)
{
    Dl_info library;
    void *served_by = dlsym(RTLD_DEFAULT, "malloc");
    char *volatile block = malloc(100);
    if (block == NULL || served_by == NULL || dladdr(served_by, &library) == 0)
        return 1;
    free(block);
    const char *slash = strrchr(library.dli_fname, '/');
    puts(slash != NULL ? slash + 1 : library.dli_fname);
    return 0;
}
