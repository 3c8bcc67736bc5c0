/* SPDX-License-Identifier: MIT */
/* tests/install/aid/own_conf.c - a program with settings of its own. */
#include <hakmem/hakmem.h>
#include <stdio.h>
#include <stdlib.h>

const char *hakmem_conf = "decay:4s,retain:5M";

int main(void)
{
    char decay[256] = "none";
    free(malloc(100));
#ifdef HAKMEM_WEAK
    if (hakmem_option_get == NULL)
        return puts(decay) < 0;
#endif
    if (hakmem_option_get("decay", decay, sizeof decay) != 0)
        return 1;
    return puts(decay) < 0;
}
