/* SPDX-License-Identifier: MIT */
/* tests/install/consumer/quiet.c - a program that calls no malloc itself, only through libc. */
#include <stdio.h>

int main(void)
{
    return fclose(fopen("/dev/null", "r"));
}
