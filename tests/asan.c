/* SPDX-License-Identifier: MIT */
/* tests/asan.c - what the tests want of AddressSanitizer, in builds with it: what CHECK_FAULTS
 * expects of a fault is what the kernel does. */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
    return "handle_segv=0";
}
