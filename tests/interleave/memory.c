/* SPDX-License-Identifier: MIT */
/* tests/interleave/memory.c - C11's memory model as a machine of views.
 *
 * A place has its stores in their modification order, each with the view of its author if it was a
 * release. A load reads any store that is not older than what its thread has seen; a store goes
 * anywhere behind that; a read-modify-write goes right behind the store that it reads, and nothing
 * comes between the two any more. What is not modelled: loads that read stores which come later in
 * every order of the threads (load buffering). Plain accesses are not chosen for: two of them, or
 * one and an atomic one, that no order separates are a data race and fail. Memory itself holds the
 * last store of each place.
 *
 * Only places that several threads use and one writes are modelled, and are points where another
 * thread may go on. They are found while executions run; whenever one is, the search begins anew.
 */
#include "machine.h"

#include <stdio.h>
#include <string.h>

#define CELLS 16384u
#define RECORDS_MOST 24u
#define PARTS_MOST 8u
#define STORES_MOST 64u
#define MESSAGES_MOST 4096u
#define TOUCHES_MOST 1000000u
#define KEY_GAP (1u << 20)

enum { RELAXED, CONSUME, ACQUIRE, RELEASE, ACQ_REL, SEQ_CST };

struct message {
    uint64_t value;
    uint32_t key;     /* its place in the modification order */
    bool is_followed; /* by a read-modify-write that read it */
    struct view view;
};

struct place {
    uintptr_t address;
    uint32_t bytes;
    uint32_t execution;
    uint32_t floor;    /* the oldest store that may be read at all */
    bool is_rewritten; /* by a plain store, which is only in memory */
    uint32_t count;
    struct message *stores[STORES_MOST];
};

/* An access that others may race with. */
struct record {
    const void *pc;
    uint32_t clock;
    uint8_t thread, mask;
    bool is_write, is_atomic;
};

/* An atomic object in a word. */
struct part {
    uint8_t offset, bytes, threads;
    bool is_written;
    uint32_t execution;
    uint32_t place; /* + 1; 0: not shared, as far as is known */
};

/* Eight bytes. */
struct cell {
    uintptr_t address; /* 0: unused */
    uint32_t execution;
    bool is_saved, is_mixed;
    uint64_t saved;
    uint32_t record_count, part_count;
    struct record records[RECORDS_MOST];
    struct part parts[PARTS_MOST];
};

static struct cell cells[CELLS];
static struct cell *touched[CELLS];
static uint32_t touched_count, touch_count, execution;
static struct place places[PLACES_MOST];
static uint32_t place_count;
static struct message messages[MESSAGES_MOST];
static uint32_t message_count;

/* Of each thread: what it knows, what it will know after an acquire fence, what it had published by
 * its last release fence. And what the fences and operations that are sequentially consistent
 * agree on. */
static struct view now[THREADS_MOST], seen[THREADS_MOST], fenced[THREADS_MOST], agreed;

static void raise_keys(struct view *view, const struct view *by)
{
    for (uint32_t i = 0; i < place_count; i++)
        if (view->key[i] < by->key[i])
            view->key[i] = by->key[i];
}

static void join(struct view *view, const struct view *by)
{
    for (uint32_t i = 0; i < THREADS_MOST; i++)
        if (view->clock[i] < by->clock[i])
            view->clock[i] = by->clock[i];
    raise_keys(view, by);
}

void memory_forget(void)
{
    memset(cells, 0, sizeof cells);
    place_count = 0;
}

void memory_begin(void)
{
    execution++;
    touched_count = touch_count = message_count = 0;
    memset(now, 0, sizeof now);
    memset(seen, 0, sizeof seen);
    memset(fenced, 0, sizeof fenced);
    memset(&agreed, 0, sizeof agreed);
    now[0].clock[0] = 1;
}

void memory_spawn(uint32_t thread)
{
    now[thread] = now[0];
    now[thread].clock[thread] = 1;
}

void memory_join(uint32_t thread)
{
    join(&now[0], &now[thread]);
}

void memory_order(uint32_t earlier, uint32_t later)
{
    join(&now[later], &now[earlier]);
    now[earlier].clock[earlier]++;
}

void memory_restore(void)
{
    for (uint32_t i = 0; i < touched_count; i++)
        if (touched[i]->is_saved)
            memcpy((void *)touched[i]->address, &touched[i]->saved, 8);
    touched_count = 0;
}

static struct cell *cell_at(uintptr_t address)
{
    uintptr_t word = address & ~(uintptr_t)7;
    uint32_t at = (uint32_t)((word >> 3) * 0x9e3779b97f4a7c15ull >> 40) % CELLS;
    for (uint32_t tries = 0; tries < CELLS; tries++, at = (at + 1) % CELLS) {
        struct cell *cell = &cells[at];
        if (cell->address == 0)
            cell->address = word;
        if (cell->address != word)
            continue;
        if (cell->execution != execution) {
            cell->execution = execution;
            cell->is_saved = false;
            cell->record_count = 0;
            touched[touched_count++] = cell;
        }
        return cell;
    }
    interleave_fail("the checker: too much memory is touched");
}

static void save(struct cell *cell)
{
    if (!cell->is_saved)
        memcpy(&cell->saved, (void *)cell->address, 8);
    cell->is_saved = true;
}

_Noreturn static void report_race(const struct record *one, const struct record *other)
{
    static char text[200];
    snprintf(text, sizeof text, "data race: %s%s by thread %u and %s%s by thread %u",
             one->is_atomic ? "atomic " : "", one->is_write ? "write" : "read", one->thread,
             other->is_atomic ? "atomic " : "", other->is_write ? "write" : "read", other->thread);
    fail_at(text, one->pc, other->pc);
}

static uint8_t mask_of(uintptr_t address, uint32_t bytes)
{
    return (uint8_t)(((1u << bytes) - 1) << (address & 7));
}

static void record(struct cell *cell, uint8_t mask, bool is_write, bool is_atomic, const void *pc)
{
    struct record mine = {pc, now[self].clock[self], (uint8_t)self, mask, is_write, is_atomic};
    if (!is_concurrent)
        return;
    for (uint32_t i = 0; i < cell->record_count; i++) {
        struct record *other = &cell->records[i];
        if ((other->mask & mask) != 0 && other->thread != self && (other->is_write || is_write) &&
            !(other->is_atomic && is_atomic) && other->clock > now[self].clock[other->thread])
            report_race(other, &mine);
    }
    for (uint32_t i = 0; i < cell->record_count; i++) {
        struct record *other = &cell->records[i];
        if (other->thread == self && other->mask == mask && other->is_write == is_write &&
            other->is_atomic == is_atomic) {
            *other = mine;
            return;
        }
    }
    if (cell->record_count == RECORDS_MOST)
        interleave_fail("the checker: too many kinds of access to one word");
    cell->records[cell->record_count++] = mine;
}

static void touch_word(uintptr_t address, uint32_t bytes, bool is_write, const void *pc)
{
    struct cell *cell = cell_at(address);
    record(cell, mask_of(address, bytes), is_write, false, pc);
    if (!is_write)
        return;
    save(cell);
    for (uint32_t i = 0; i < cell->part_count; i++)
        if (cell->parts[i].place != 0 &&
            (mask_of(cell->parts[i].offset, cell->parts[i].bytes) & mask_of(address, bytes)) != 0)
            places[cell->parts[i].place - 1].is_rewritten = true;
}

void memory_touch(uintptr_t address, size_t bytes, bool is_write, const void *pc)
{
    if (is_on_a_stack(address))
        return;
    leave_sequence();
    if (++touch_count > TOUCHES_MOST)
        interleave_fail("does not end: too many accesses");
    for (size_t left = bytes, part; left > 0; address += part, left -= part) {
        part = 8 - (address & 7);
        part = part < left ? part : left;
        touch_word(address, (uint32_t)part, is_write, pc);
    }
}

/* The part of the word that this object is; objects that overlap are one, the whole word. */
static struct part *part_at(struct cell *cell, uintptr_t address, uint32_t bytes)
{
    uint8_t offset = cell->is_mixed ? 0 : (uint8_t)(address & 7);
    uint8_t length = cell->is_mixed ? 8 : (uint8_t)bytes;
    for (uint32_t i = 0; i < cell->part_count; i++) {
        struct part *part = &cell->parts[i];
        if (part->offset == offset && part->bytes == length)
            return part;
        if (part->offset < offset + length && offset < part->offset + part->bytes) {
            cell->is_mixed = true;
            cell->part_count = 0;
            start_again();
        }
    }
    if (cell->part_count == PARTS_MOST)
        interleave_fail("the checker: too many objects in one word");
    cell->parts[cell->part_count] = (struct part){.offset = offset, .bytes = length};
    return &cell->parts[cell->part_count++];
}

static void share(struct cell *cell, struct part *part)
{
    if (place_count == PLACES_MOST)
        interleave_fail("the checker: too many shared objects");
    places[place_count] =
        (struct place){.address = cell->address + part->offset, .bytes = part->bytes};
    part->place = ++place_count;
    start_again();
}

static struct message *make_message(uint64_t value, uint32_t key)
{
    if (message_count == MESSAGES_MOST)
        interleave_fail("does not end: too many stores");
    struct message *message = &messages[message_count++];
    message->value = value;
    message->key = key;
    message->is_followed = false;
    memset(&message->view, 0, sizeof message->view);
    return message;
}

static uint64_t read_memory(uintptr_t address, uint32_t bytes)
{
    uint64_t value = 0;
    memcpy(&value, (const void *)address, bytes);
    return value;
}

/* The place of an atomic object, after others had their turn; NULL: it is this thread's alone, or
 * nobody writes it. */
static struct place *approach(uintptr_t address, uint32_t bytes, bool is_write)
{
    struct part *part = part_at(cell_at(address), address, bytes);
    if (!is_concurrent)
        return NULL;
    leave_sequence();
    if (part->execution != execution) {
        part->execution = execution;
        part->threads = 0;
        part->is_written = false;
    }
    part->threads |= (uint8_t)(1u << self);
    part->is_written |= is_write;
    if (part->place == 0) {
        if (part->is_written && (part->threads & (part->threads - 1)) != 0)
            share(cell_at(address), part);
        return NULL;
    }
    step();
    leave_sequence();
    struct place *place = &places[part->place - 1];
    if (place->execution != execution) {
        place->execution = execution;
        place->count = 0;
        place->is_rewritten = true;
    }
    if (place->is_rewritten) {
        uint32_t last = place->count == 0 ? 0 : place->stores[place->count - 1]->key;
        if (place->count == STORES_MOST)
            interleave_fail("does not end: too many stores to one object");
        place->stores[place->count++] =
            make_message(read_memory(place->address, place->bytes), last + KEY_GAP);
        place->floor = last + KEY_GAP;
        place->is_rewritten = false;
    }
    return place;
}

static uint32_t index_of(const struct place *place)
{
    return (uint32_t)(place - places);
}

static bool acquires(int order)
{
    return order == ACQUIRE || order == CONSUME || order == ACQ_REL || order == SEQ_CST;
}

static bool releases(int order)
{
    return order == RELEASE || order == ACQ_REL || order == SEQ_CST;
}

/* The oldest store that the thread may read, or write behind. */
static uint32_t floor_of(const struct place *place, int order)
{
    uint32_t at = index_of(place), floor = place->floor;
    if (floor < now[self].key[at])
        floor = now[self].key[at];
    if (order == SEQ_CST && floor < agreed.key[at])
        floor = agreed.key[at];
    return floor;
}

/* The object's part of a store's value, and the value with that part changed. */
static uint64_t low_bits(uint32_t bytes)
{
    return bytes == 8 ? UINT64_MAX : (1ull << bytes * 8) - 1;
}

static uint64_t part_of(const struct place *place, uint64_t value, uintptr_t address,
                        uint32_t bytes)
{
    return value >> (address - place->address) * 8 & low_bits(bytes);
}

static uint64_t with_part(const struct place *place, uint64_t value, uintptr_t address,
                          uint32_t bytes, uint64_t part)
{
    uint32_t shift = (uint32_t)(address - place->address) * 8;
    return (value & ~(low_bits(bytes) << shift)) | (part & low_bits(bytes)) << shift;
}

static void observe(const struct place *place, const struct message *message, int order)
{
    uint32_t at = index_of(place);
    if (now[self].key[at] < message->key)
        now[self].key[at] = message->key;
    join(acquires(order) ? &now[self] : &seen[self], &message->view);
}

static void write_memory(uintptr_t address, uint32_t bytes, uint64_t value)
{
    save(cell_at(address));
    memcpy((void *)address, &value, bytes);
}

/* Puts a store behind the one with index `before`, which it has read if `is_change`. */
static void put(struct place *place, uint32_t before, uint64_t value, int order, bool is_change)
{
    struct message *old = place->stores[before];
    bool is_last = before + 1 == place->count;
    uint32_t key =
        is_last ? old->key + KEY_GAP : old->key + (place->stores[before + 1]->key - old->key) / 2;
    if (key == old->key || place->count == STORES_MOST)
        interleave_fail("does not end: too many stores to one object");
    struct message *message = make_message(value, key);
    memmove(&place->stores[before + 2], &place->stores[before + 1],
            (place->count - before - 1) * sizeof place->stores[0]);
    place->stores[before + 1] = message;
    place->count++;
    uint32_t at = index_of(place);
    now[self].key[at] = key;
    message->view = releases(order) ? now[self] : fenced[self];
    message->view.key[at] = key;
    if (is_change) {
        old->is_followed = true;
        join(&message->view, &old->view);
    }
    if (order == SEQ_CST && agreed.key[at] < key)
        agreed.key[at] = key;
    if (is_last)
        write_memory(place->address, place->bytes, value);
    now[self].clock[self]++;
}

static void record_atomic(uintptr_t address, uint32_t bytes, bool is_write, const void *pc)
{
    record(cell_at(address), mask_of(address, bytes), is_write, true, pc);
}

static void tell(enum operation operation, int order, uintptr_t address, uint64_t value,
                 uint32_t age, const void *pc)
{
    note_event((struct event){pc, address, value, (uint8_t)self, (uint8_t)operation, (uint8_t)order,
                              (uint8_t)age});
}

uint64_t memory_load(uintptr_t address, uint32_t bytes, int order, const void *pc)
{
    struct place *place = approach(address, bytes, false);
    record_atomic(address, bytes, false, pc);
    if (place == NULL)
        return read_memory(address, bytes);
    uint32_t floor = floor_of(place, order), readable = 0;
    while (readable < place->count && place->stores[place->count - 1 - readable]->key >= floor)
        readable++;
    uint32_t age = choose_oddly(readable);
    const struct message *message = place->stores[place->count - 1 - age];
    observe(place, message, order);
    uint64_t value = part_of(place, message->value, address, bytes);
    tell(LOAD, order, address, value, age, pc);
    return value;
}

/* Which stores it may come right behind, newest first. */
static uint32_t find_gaps(const struct place *place, int order, uint32_t *gaps)
{
    uint32_t floor = floor_of(place, order), count = 0;
    for (uint32_t i = place->count - 1; i < place->count && place->stores[i]->key >= floor; i--)
        if (!place->stores[i]->is_followed)
            gaps[count++] = i;
    return count;
}

void memory_store(uintptr_t address, uint32_t bytes, uint64_t value, int order, const void *pc)
{
    struct place *place = approach(address, bytes, true);
    record_atomic(address, bytes, true, pc);
    if (place == NULL) {
        write_memory(address, bytes, value);
        return;
    }
    uint32_t gaps[STORES_MOST], count = find_gaps(place, order, gaps);
    bool is_whole = place->bytes == bytes;
    uint32_t before = gaps[choose_oddly(is_whole ? count : 1)];
    tell(STORE, order, address, value, place->count - 1 - before, pc);
    value = with_part(place, place->stores[before]->value, address, bytes, value);
    put(place, before, value, order, false);
}

static uint64_t computed(enum operation operation, uint64_t old, uint64_t operand)
{
    switch (operation) {
    case ADD:
        return old + operand;
    case SUB:
        return old - operand;
    case AND:
        return old & operand;
    case OR:
        return old | operand;
    case XOR:
        return old ^ operand;
    default:
        return operand;
    }
}

uint64_t memory_change(uintptr_t address, uint32_t bytes, enum operation operation,
                       uint64_t operand, int order, const void *pc)
{
    struct place *place = approach(address, bytes, true);
    record_atomic(address, bytes, true, pc);
    if (place == NULL) {
        uint64_t value = read_memory(address, bytes);
        write_memory(address, bytes, computed(operation, value, operand));
        return value;
    }
    uint32_t gaps[STORES_MOST], count = find_gaps(place, order, gaps);
    uint32_t before = gaps[choose_oddly(place->bytes == bytes ? count : 1)];
    const struct message *message = place->stores[before];
    uint64_t old = part_of(place, message->value, address, bytes);
    uint64_t value = computed(operation, old, operand);
    observe(place, message, order);
    tell(operation, order, address, value & low_bits(bytes), place->count - 1 - before, pc);
    put(place, before, with_part(place, message->value, address, bytes, value), order, true);
    return old;
}

/* Reads one of the stores it may: with another value than expected it fails, and else it succeeds
 * unless another change has read the same store; or fails for no reason if it is weak. */
bool memory_cas(uintptr_t address, uint32_t bytes, uint64_t *expected, uint64_t desired,
                const int orders[2], bool is_weak, const void *pc)
{
    struct place *place = approach(address, bytes, true);
    if (place == NULL) {
        uint64_t value = read_memory(address, bytes);
        bool is_done = value == *expected;
        record_atomic(address, bytes, is_done, pc);
        if (is_done)
            write_memory(address, bytes, desired);
        *expected = value;
        return is_done;
    }
    uint32_t floor = floor_of(place, orders[0]), count = 0, choices[STORES_MOST];
    for (uint32_t i = place->count - 1; i < place->count && place->stores[i]->key >= floor; i--)
        if (part_of(place, place->stores[i]->value, address, bytes) != *expected ||
            !place->stores[i]->is_followed)
            choices[count++] = i;
    uint32_t choice = choose_oddly(count + is_weak);
    bool is_spurious = choice == count;
    uint32_t at = is_spurious ? place->count - 1 : choices[choice];
    const struct message *message = place->stores[at];
    uint64_t value = part_of(place, message->value, address, bytes);
    bool is_done = value == *expected && !is_spurious;
    int order = orders[is_done ? 0 : 1];
    record_atomic(address, bytes, is_done, pc);
    observe(place, message, order);
    tell(is_done ? CAS : CAS_FAILED, order, address, is_done ? desired : value,
         place->count - 1 - at, pc);
    if (is_done)
        put(place, at, with_part(place, message->value, address, bytes, desired), order, true);
    *expected = value;
    return is_done;
}

void memory_fence(int order, const void *pc)
{
    if (!is_concurrent)
        return;
    if (order == SEQ_CST)
        step();
    if (acquires(order))
        join(&now[self], &seen[self]);
    if (order == SEQ_CST) {
        raise_keys(&now[self], &agreed);
        raise_keys(&agreed, &now[self]);
    }
    if (releases(order)) {
        fenced[self] = now[self];
        now[self].clock[self]++;
    }
    tell(FENCE, order, 0, 0, 0, pc);
}

uint64_t memory_newest(uintptr_t address, uint32_t bytes, const void *pc)
{
    struct place *place = approach(address, bytes, true);
    record_atomic(address, bytes, false, pc);
    if (place != NULL)
        observe(place, place->stores[place->count - 1], RELAXED);
    return read_memory(address, bytes);
}

void memory_fence_all(void)
{
    for (uint32_t i = 0; i < THREADS_MOST; i++) {
        join(&now[i], &seen[i]);
        join(&agreed, &now[i]);
    }
    for (uint32_t i = 0; i < THREADS_MOST; i++) {
        raise_keys(&now[i], &agreed);
        for (uint32_t j = 0; j < THREADS_MOST; j++)
            if (now[i].clock[j] < agreed.clock[j])
                now[i].clock[j] = agreed.clock[j];
        fenced[i] = now[i];
        now[i].clock[i]++;
    }
}
