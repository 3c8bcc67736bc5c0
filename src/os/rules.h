/* SPDX-License-Identifier: MIT */
/* os/rules.h - rules of .eh_frame that were worked out before: where the caller's registers are.
 *
 * Owns        a table of HAK_RULES_MOST rules, one place for each address. Its memory is zero pages
 *             of the program until a stack is read, and places are taken in turn: a walk touches as
 *             few pages as it has frames, not one for each.
 * Invariants  only simple rules are kept: a register and an offset are the frame's address, and
 *             other registers are beside it or unchanged.
 * Argument    A rule is never stale, though another file may be loaded at the same addresses. It
 *             follows from the address and three things in the file: the count of .eh_frame_hdr's
 *             sorted table and the pairs around the address, the function's entry, and the common
 *             entry. The table keeps a copy of all three, and each look compares the copy with the
 *             bytes that are mapped now. Equal bytes at equal addresses are decoded to the same
 *             rule, whatever file they come from. What is read is named by the header that
 *             _dl_find_object returned for this look and by offsets in it, never by a kept pointer:
 *             a pair only below the count that the header has now, an entry only after its pair
 *             was found equal. So the look reads no more than a full search would. The file that
 *             hakmem's code is in needs no comparison: the table is in it, and gone with it.
 *             A place has a sequence number, odd while it is written. A writer that finds it odd,
 *             or loses the race to make it odd, leaves the place alone. A reader takes each word
 *             with acquire and then looks at the number again: what is torn counts as not found. A
 *             place whose writer never ends (in a copy of the process) is lost, and no more.
 * Threads     any, signal handlers too; nothing waits.
 * Tests       tests/unit/os/rules_test.c, tests/unit/os/unwind_test.c
 */
#ifndef HAK_OS_RULES_H
#define HAK_OS_RULES_H

#include "os/dwarf.h"

#define HAK_RULES_MOST 1024u

#if defined(__x86_64__)
#define HAK_RULE_REGISTERS 7u
#else
#define HAK_RULE_REGISTERS 13u
#endif
/* Registers are so many words from the frame's address. */
struct frame_rule {
    int32_t frame_offset;
    uint8_t frame_register;
    uint8_t return_register;
    uint8_t count;
    bool is_outermost; /* there is no caller */
    int16_t words[HAK_RULE_REGISTERS];
    uint8_t registers[HAK_RULE_REGISTERS];
    uint8_t filled[HAK_RULE_REGISTERS == 7 ? 3 : 1];
};
hak_static_assert(sizeof(struct frame_rule) % sizeof(uint64_t) == 0, "a rule is whole words");

/* What a rule was computed from. */
struct rule_source {
    const unsigned char *header;
    uintptr_t address;
    uint32_t pair; /* its index in the sorted table */
};

/* The rule that is kept for the address, by the .eh_frame_hdr of its code. */
bool hak_rules_find(const unsigned char *header, uintptr_t address, struct frame_rule *rule);

/* The same without the comparison, of the file that this table is in. */
bool hak_rules_find_lasting(const unsigned char *header, uintptr_t address,
                            struct frame_rule *rule);

/* Keeps it, unless what it comes from is too long. */
void hak_rules_keep(const struct rule_source *source, const struct frame_rule *rule);

/* Makes the frame its caller's; false: it has none, or the stack cannot be read. */
bool hak_rules_apply(struct dwarf_frame *frame, const struct frame_rule *rule);

#endif
