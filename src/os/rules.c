/* SPDX-License-Identifier: MIT */
#include "os/rules.h"

#include "base/atomic.h"

#include <string.h>

/* .eh_frame_hdr as all linkers write it: version 1, a count of four bytes, pairs of two offsets. */
#define HEADER_WORD 0x3b031b01u
#define COUNT_AT 8u
#define TABLE_AT 12u
#define PAIR_BYTES 8u

/* Of entries, in units of four bytes, which they are made of. */
#define UNIT 4u
#define OWN_UNITS_MOST 24u
#define COMMON_UNITS_MOST 10u
#define UNITS_MOST (OWN_UNITS_MOST + COMMON_UNITS_MOST)

#define RULE_WORDS (sizeof(struct frame_rule) / sizeof(uint64_t))

struct place {
    _Atomic uint64_t sequence;
    _Atomic uintptr_t header;
    _Atomic uintptr_t address;
    _Atomic uint64_t pair; /* index, and the table's count */
    _Atomic uint64_t here; /* the pair itself */
    _Atomic uint64_t next; /* the pair behind it; 0: it is the last */
    _Atomic uint64_t rule[RULE_WORDS];
    _Atomic uint64_t units[UNITS_MOST / 2]; /* the function's entry, then the common one */
};

/* In the order in which they were taken: the first rules are in a page or two. */
static struct place places[HAK_RULES_MOST];
HAK_AT_HAND static _Atomic uint32_t place_count;
/* By the address: 0 nothing, TAKEN for the time of a claim, or 1 + the number of the place. */
static _Atomic uint16_t numbers[HAK_RULES_MOST];
#define TAKEN UINT16_MAX
hak_static_assert(HAK_RULES_MOST < TAKEN, "a number of a place is not TAKEN");

struct bytes_of_source {
    uint64_t pair, here, next;
    const unsigned char *own;
    const unsigned char *common;
    uint32_t own_units;
    uint32_t common_units;
};

static uint32_t read_unit(const unsigned char *at)
{
    uint32_t unit;
    memcpy(&unit, at, sizeof unit);
    return unit;
}

static uint64_t read_pair(const unsigned char *at)
{
    uint64_t pair;
    memcpy(&pair, at, sizeof pair);
    return pair;
}

/* Both are read; false: there is no such pair. */
HAK_INLINE bool find_pairs(const unsigned char *header, uint32_t index,
                           struct bytes_of_source *source)
{
    if (read_unit(header) != HEADER_WORD)
        return false;
    uint32_t count = read_unit(header + COUNT_AT);
    const unsigned char *at = header + TABLE_AT + (size_t)index * PAIR_BYTES;
    if (index >= count)
        return false;
    source->pair = (uint64_t)index << 32 | count;
    source->here = read_pair(at);
    source->next = index + 1 < count ? read_pair(at + PAIR_BYTES) : 0;
    return true;
}

/* The entries that the pair leads to; false: they are too long. */
HAK_INLINE bool find_entries(const unsigned char *header, struct bytes_of_source *source)
{
    const unsigned char *own = header + (int32_t)(source->here >> 32);
    uint32_t own_bytes = read_unit(own);
    const unsigned char *common = own + UNIT - read_unit(own + UNIT);
    uint32_t common_bytes = read_unit(common);
    if (own_bytes % UNIT != 0 || own_bytes / UNIT >= OWN_UNITS_MOST || own_bytes < UNIT ||
        common_bytes % UNIT != 0 || common_bytes / UNIT >= COMMON_UNITS_MOST)
        return false;
    source->own = own;
    source->own_units = own_bytes / UNIT + 1;
    source->common = common;
    source->common_units = common_bytes / UNIT + 1;
    return true;
}

/* Two units of an entry of `units`; behind the last one is 0. */
HAK_INLINE uint64_t two_units(const unsigned char *at, uint32_t units, uint32_t first)
{
    const unsigned char *from = at + (size_t)first * UNIT;
    return HAK_LIKELY(first + 1 < units) ? read_pair(from) : read_unit(from);
}

HAK_INLINE bool is_entry(const _Atomic uint64_t *kept, const unsigned char *at, uint32_t units)
{
    uint64_t differences = 0;
    /* acquire: partners are the releases in keep_entry; the last look at the sequence (`find`)
     * comes after */
    for (uint32_t i = 0; i < units; i += 2)
        differences |= hak_load_acquire(&kept[i / 2]) ^ two_units(at, units, i);
    return differences == 0;
}

/* The mapping is still the one from which the rule was derived. */
HAK_INLINE bool is_source(const struct place *place, const unsigned char *header)
{
    struct bytes_of_source now;
    /* acquire: partners are the releases in hak_rules_keep, as in `find` */
    uint64_t pair = hak_load_acquire(&place->pair);
    return find_pairs(header, (uint32_t)(pair >> 32), &now) && now.pair == pair &&
           now.here == hak_load_acquire(&place->here) &&
           now.next == hak_load_acquire(&place->next) && find_entries(header, &now) &&
           is_entry(place->units, now.own, now.own_units) &&
           is_entry(place->units + OWN_UNITS_MOST / 2, now.common, now.common_units);
}

static _Atomic uint16_t *number_of(uintptr_t address)
{
    return &numbers[(address * 0x9e3779b97f4a7c15ull >> 32) % HAK_RULES_MOST];
}

/* NULL: no rule was kept yet that has the address's number. */
static struct place *place_of(uintptr_t address)
{
    if (hak_load_relaxed(&place_count) == 0) /* a look would touch the page once more */
        return NULL;
    /* relaxed: an empty place is as good as none, and its sequence orders what is in it */
    uint32_t number = hak_load_relaxed(number_of(address));
    return number == 0 || number == TAKEN ? NULL : &places[number - 1];
}

/* The same, with a place where there was none; NULL: another thread claims it. */
static struct place *claim(uintptr_t address)
{
    uint16_t none = 0;
    /* relaxed: the number alone counts; the place's sequence orders what is in it */
    if (!hak_cas_relaxed(number_of(address), &none, TAKEN))
        return place_of(address);
    uint32_t place = hak_fetch_add_relaxed(&place_count, 1);
    hak_store_relaxed(number_of(address), (uint16_t)(place + 1));
    return &places[place];
}

HAK_INLINE bool find(const unsigned char *header, uintptr_t address, bool is_lasting,
                     struct frame_rule *rule)
{
    struct place *place = place_of(address);
    uint64_t words[RULE_WORDS];
    /* acquire: partner is the release in hak_rules_keep; so are those of the other words, which
     * keep the last look at the sequence behind them */
    uint64_t sequence = place == NULL ? 1 : hak_load_acquire(&place->sequence);
    if (sequence % 2 != 0 || hak_load_acquire(&place->address) != address ||
        hak_load_acquire(&place->header) != (uintptr_t)header ||
        !(is_lasting || is_source(place, header)))
        return false;
    for (uint32_t i = 0; i < RULE_WORDS; i++)
        words[i] = hak_load_acquire(&place->rule[i]);
    memcpy(rule, words, sizeof words);
    return hak_load_relaxed(&place->sequence) == sequence;
}

bool hak_rules_find(const unsigned char *header, uintptr_t address, struct frame_rule *rule)
{
    return find(header, address, false, rule);
}

bool hak_rules_find_lasting(const unsigned char *header, uintptr_t address, struct frame_rule *rule)
{
    return find(header, address, true, rule);
}

static void keep_entry(_Atomic uint64_t *kept, const unsigned char *at, uint32_t units)
{
    /* release: no word is seen before the odd sequence; partner is the acquire in is_entry */
    for (uint32_t i = 0; i < units; i += 2)
        hak_store_release(&kept[i / 2], two_units(at, units, i));
}

void hak_rules_keep(const struct rule_source *source, const struct frame_rule *rule)
{
    struct bytes_of_source bytes;
    if (!find_pairs(source->header, source->pair, &bytes) || !find_entries(source->header, &bytes))
        return;
    struct place *place = claim(source->address);
    uint64_t words[RULE_WORDS], sequence = place == NULL ? 1 : hak_load_relaxed(&place->sequence);
    /* acquire: partner is the release of the sequence by the last one that kept a rule here */
    if (sequence % 2 != 0 || !hak_cas_acquire(&place->sequence, &sequence, sequence + 1))
        return;
    /* release: no word is seen before the odd sequence; partners are the acquires in `find` and
     * is_source */
    hak_store_release(&place->header, (uintptr_t)source->header);
    hak_store_release(&place->address, source->address);
    hak_store_release(&place->pair, bytes.pair);
    hak_store_release(&place->here, bytes.here);
    hak_store_release(&place->next, bytes.next);
    memcpy(words, rule, sizeof words);
    for (uint32_t i = 0; i < RULE_WORDS; i++)
        hak_store_release(&place->rule[i], words[i]);
    keep_entry(place->units, bytes.own, bytes.own_units);
    keep_entry(place->units + OWN_UNITS_MOST / 2, bytes.common, bytes.common_units);
    /* release: partner is the acquire in `find` */
    hak_store_release(&place->sequence, sequence + 2);
}

bool hak_rules_apply(struct dwarf_frame *frame, const struct frame_rule *rule)
{
    uintptr_t values[HAK_RULE_REGISTERS];
    if (rule->is_outermost)
        return false;
    uintptr_t cfa =
        frame->registers[rule->frame_register] + (uintptr_t)(intptr_t)rule->frame_offset;
    for (uint32_t i = 0; i < rule->count; i++)
        if (!frame->read(cfa + (uintptr_t)rule->words[i] * sizeof(uintptr_t), &values[i]))
            return false;
    for (uint32_t i = 0; i < rule->count; i++)
        frame->registers[rule->registers[i]] = values[i];
    frame->registers[HAK_DWARF_STACK_POINTER] = cfa;
    frame->address = frame->registers[rule->return_register];
    frame->is_interrupted = false;
    return true;
}
