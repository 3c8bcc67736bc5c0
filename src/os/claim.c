/* SPDX-License-Identifier: MIT */
#include "os/claim.h"

#include "base/limits.h"
#include "os/os.h"
#include "os/random.h"

/* So many places are tried by their ends. */
#define TRIES 4

/* Of most 64-bit kernels, for user space. */
#define USUAL_SPACE ((uintptr_t)1 << 47)

/* Enough for what is claimed, and as much again. The kernel puts mappings below the stack, one
 * under the other, and programs and what brk gives them at two thirds of the address space or at
 * its very beginning. An emulator puts the stack low, and much of what lies above it is free. */
static size_t zone_bytes(size_t claimed_bytes)
{
    uintptr_t stack = (uintptr_t)__builtin_frame_address(0);
    return (stack / 16 >= claimed_bytes ? stack : USUAL_SPACE) / 8;
}

static char *place_in(enum os_zone zone, size_t claimed_bytes)
{
    size_t bytes = zone_bytes(claimed_bytes);
    uintptr_t at = (size_t)zone * bytes + hak_os_random() % (bytes / 2);
    return (char *)(at / HAK_GRANULE_BYTES * HAK_GRANULE_BYTES);
}

static void *last_page(const struct os_claim *claim)
{
    return claim->start + claim->bytes - hak_os_page_bytes();
}

/* A trial of the whole would be refused where address space is limited: both ends must do. */
static bool claim_ends(struct os_claim *claim, char *start)
{
    if (hak_os_map_denied(start, claim->front_bytes) != OS_MAPPED)
        return false;
    claim->start = start;
    claim->is_whole = false;
    if (hak_os_map_denied(last_page(claim), hak_os_page_bytes()) == OS_MAPPED)
        return true;
    hak_os_release(start, claim->front_bytes);
    return false;
}

bool hak_os_claim(struct os_claim *claim, enum os_zone zone)
{
    for (int i = 0; i < TRIES; i++)
        if (claim_ends(claim, place_in(zone, claim->bytes)))
            return true;
    /* Sanitizers, and some emulators, have places of their own. */
    claim->start = hak_os_reserve(claim->bytes);
    claim->is_whole = claim->start != NULL;
    return claim->is_whole;
}

void hak_os_claim_open(const struct os_claim *claim)
{
    char *middle = claim->start + claim->front_bytes;
    if (claim->is_whole)
        hak_os_release(middle, (size_t)((char *)last_page(claim) - middle));
}

void hak_os_claim_drop(const struct os_claim *claim)
{
    if (claim->is_whole) {
        hak_os_release(claim->start, claim->bytes);
        return;
    }
    hak_os_release(claim->start, claim->front_bytes);
    hak_os_release(last_page(claim), hak_os_page_bytes());
}
