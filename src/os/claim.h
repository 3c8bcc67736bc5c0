/* SPDX-License-Identifier: MIT */
/* os/claim.h - addresses that are hakmem's to map later, without being mapped now.
 *
 * Owns        nothing; what is mapped of a claim belongs to whoever made it.
 * Invariants  an open claim has its front and its last page mapped, without access. Between them
 *             nothing is, so that it counts against no limit (RLIMIT_AS, locked memory); nor is
 *             anything kept from others, who only come there if they ask for these very addresses:
 *             hak_os_map tells.
 *             Each zone is an eighth of the address space, far from the places that the kernel
 *             gives out, and claims of different zones never overlap: until all are made they are
 *             either whole reservations or lie within their zones.
 * Threads     one, at the start, and whoever holds the lock of what is claimed.
 * Tests       tests/unit/os/claim_test.c
 */
#ifndef HAK_OS_CLAIM_H
#define HAK_OS_CLAIM_H

#include "base/compiler.h"

enum os_zone { ZONE_BLOCKS = 1, ZONE_RECORDS, ZONE_MORE_RECORDS };

struct os_claim {
    char *start;
    size_t bytes;
    size_t front_bytes; /* mapped without access, at least a page */
    bool is_whole;      /* all of it is reserved until it is opened */
};

/* Finds a place for `bytes` and `front_bytes` of the claim, at random in the zone, or of the
 * kernel's choice where it does not give that; false: there is none. */
bool hak_os_claim(struct os_claim *claim, enum os_zone zone);

/* Leaves the front and the last page mapped. */
void hak_os_claim_open(const struct os_claim *claim);

/* Gives up a claim that is not open. */
void hak_os_claim_drop(const struct os_claim *claim);

#endif
