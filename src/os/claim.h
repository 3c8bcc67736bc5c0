/* SPDX-License-Identifier: MIT */
/* os/claim.h - address ranges claimed for later mapping, without being mapped now.
 *
 * Owns        nothing; what is mapped of a claim belongs to its owner.
 * Invariants  an open claim has its front and its last page mapped, without access. Nothing between
 *             them is mapped, so that it counts against no limit (RLIMIT_AS, locked memory); nor
 *             are others kept out, but they map there only if they request these very addresses:
 *             hak_os_map detects that. Each zone is an eighth of the address space, far from where
 *             the kernel maps by itself, and claims of different zones never overlap: until all are
 *             made they are either whole reservations or lie within their zones. Under an emulator
 *             the stack may lie too low to tell how large the address space is: zones are then
 *             those of a usual one, above all that small claims have.
 * Threads     one, at start, and the holder of the lock of what is claimed.
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

/* Finds an address range for `bytes` and `front_bytes` of the claim, at random in the zone, or
 * chosen by the kernel where that fails; false: there is none. */
bool hak_os_claim(struct os_claim *claim, enum os_zone zone);

/* Leaves the front and the last page mapped. */
void hak_os_claim_open(const struct os_claim *claim);

/* Gives up a claim that is not open. */
void hak_os_claim_drop(const struct os_claim *claim);

#endif
