/* SPDX-License-Identifier: MIT */
#include "os/claim.h"

#include "base/limits.h"
#include "os/os.h"
#include "os/random.h"

/* So many places are tried by their ends. */
#define TRIES 4

/* The kernel puts mappings below the stack, one under the other, and programs and what brk gives
 * them at two thirds of the address space or at its very beginning. Each zone is twice as long as
 * its contents. */
static size_t zone_bytes(void)
{
    return (uintptr_t)__builtin_frame_address(0) / 8;
}

static uintptr_t place_in(enum os_zone zone)
{
    uintptr_t offset = hak_os_random() % (zone_bytes() / 2);
    return ((size_t)zone * zone_bytes() + offset) / HAK_GRANULE_BYTES * HAK_GRANULE_BYTES;
}

static void *last_page(const struct os_claim *claim)
{
    return claim->start + claim->bytes - hak_os_page_bytes();
}

/* A trial of the whole would be refused where address space is limited: both ends must do. */
static bool claim_ends(struct os_claim *claim, char *start)
{
    if (claim->bytes > zone_bytes() / 2 ||
        hak_os_map_denied(start, claim->front_bytes) != OS_MAPPED)
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
        if (claim_ends(claim, (char *)place_in(zone)))
            return true;
    /* Emulators and sanitizers have places of their own. */
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
