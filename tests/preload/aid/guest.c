/* SPDX-License-Identifier: MIT */
/* tests/preload/aid/guest.c - a library for storms.c that allocates. Built several times, with
 * frames of different sizes: what is loaded at the same place has other unwind tables. */
#include <stdlib.h>

void guest_run(void (*use)(void *block), unsigned rounds);

void guest_run(void (*use)(void *block), unsigned rounds)
{
    volatile char room[GUEST_ROOM];
    for (unsigned i = 0; i < rounds; i++) {
        room[i % GUEST_ROOM] = 1;
        use(malloc(1000 + i + (size_t)room[i % GUEST_ROOM]));
    }
}
