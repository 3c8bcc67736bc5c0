/* SPDX-License-Identifier: MIT */
#include "os/dwarf.h"

#include "os/rules.h"

#include <string.h>

/* Rows that DW_CFA_remember_state may put by. */
#define KEPT_MOST 3u

/* Where the caller's value of a register is. */
enum rule { RULE_SAME, RULE_UNDEFINED, RULE_AT_CFA, RULE_IS_CFA, RULE_REGISTER, RULE_EXPRESSION };

struct row {
    uint8_t rules[HAK_DWARF_REGISTERS];
    uint8_t cfa_register;
    bool is_cfa_expression;
    int32_t values[HAK_DWARF_REGISTERS]; /* an expression's: its place in the section */
    int32_t cfa_value;
};

struct piece {
    const unsigned char *at;
    const unsigned char *end;
};

/* The entry of a function in the tables. */
struct function {
    const unsigned char *base; /* expressions' places count from here */
    uint64_t code_unit;
    int64_t data_unit;
    uint64_t return_register;
    uint8_t encoding;
    bool is_signal;
    uintptr_t start;
    uint32_t pair; /* of the sorted table */
    struct piece common;
    struct piece own;
};

static uint64_t read_bytes(struct piece *piece, size_t bytes)
{
    uint64_t value = 0;
    if ((size_t)(piece->end - piece->at) < bytes) {
        piece->at = piece->end;
        return 0;
    }
    memcpy(&value, piece->at, bytes);
    piece->at += bytes;
    return value;
}

static uint64_t read_uleb(struct piece *piece)
{
    uint64_t value = 0;
    for (uint32_t shift = 0; shift < 64 && piece->at < piece->end; shift += 7) {
        uint8_t byte = *piece->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0)
            break;
    }
    return value;
}

static int64_t read_sleb(struct piece *piece)
{
    int64_t value = 0;
    for (uint32_t shift = 0; shift < 63 && piece->at < piece->end;) {
        uint8_t byte = *piece->at++;
        value |= (int64_t)((uint64_t)(byte & 0x7f) << shift);
        shift += 7;
        if ((byte & 0x80) == 0)
            return byte & 0x40 && shift < 64 ? value | (int64_t)(~(uint64_t)0 << shift) : value;
    }
    return value;
}

static size_t encoded_bytes(uint8_t encoding)
{
    switch (encoding & 7) {
    case 2:
        return 2;
    case 3:
        return 4;
    default: /* a word */
        return 8;
    }
}

/* DW_EH_PE_*: absolute or from its own place. */
static uintptr_t read_encoded(struct piece *piece, uint8_t encoding)
{
    const unsigned char *place = piece->at;
    size_t bytes = encoded_bytes(encoding);
    uint64_t value = read_bytes(piece, bytes);
    if (encoding & 8 && bytes < 8) { /* signed */
        uint32_t shift = 64 - (uint32_t)bytes * 8;
        value = (uint64_t)((int64_t)(value << shift) >> shift);
    }
    if ((encoding & 0x70) == 0x10)
        value += (uintptr_t)place;
    return value;
}

/* The entry that begins there, without its length; empty: none. */
static struct piece entry_at(const unsigned char *at)
{
    uint32_t length;
    memcpy(&length, at, sizeof length);
    if (length == UINT32_MAX)
        length = 0;
    return (struct piece){at + sizeof length, at + sizeof length + length};
}

/* The augmentation: "zR", and P, L and S between. */
static bool read_augmentation(struct piece *entry, const char *letters, struct function *function)
{
    uint64_t bytes = read_uleb(entry);
    const unsigned char *end = entry->at + bytes;
    if (bytes > (size_t)(entry->end - entry->at))
        return false;
    for (letters++; *letters != '\0'; letters++) {
        if (*letters == 'R')
            function->encoding = (uint8_t)read_bytes(entry, 1);
        else if (*letters == 'L')
            read_bytes(entry, 1);
        else if (*letters == 'P')
            read_encoded(entry, (uint8_t)read_bytes(entry, 1));
        else if (*letters == 'S')
            function->is_signal = true;
        else if (*letters != 'B') /* of arm64: return addresses are signed by the other key */
            return false;
    }
    entry->at = end;
    return true;
}

static bool read_common(const unsigned char *at, struct function *function)
{
    struct piece entry = entry_at(at);
    uint64_t id = read_bytes(&entry, 4), version = read_bytes(&entry, 1);
    const char *letters = (const char *)entry.at;
    size_t length = strnlen(letters, (size_t)(entry.end - entry.at));
    if (id != 0 || (version != 1 && version != 3) || *letters != 'z' ||
        length == (size_t)(entry.end - entry.at))
        return false;
    entry.at += length + 1;
    function->code_unit = read_uleb(&entry);
    function->data_unit = read_sleb(&entry);
    function->return_register = version == 1 ? read_bytes(&entry, 1) : read_uleb(&entry);
    if (!read_augmentation(&entry, letters, function))
        return false;
    function->common = entry;
    return function->return_register < HAK_DWARF_REGISTERS;
}

/* The entry of the function with the address, by the sorted table of .eh_frame_hdr; NULL: none. */
static const unsigned char *find_entry(const unsigned char *header, uintptr_t address,
                                       uint32_t *place)
{
    struct piece head = {header + 4, header + 4 + 16};
    if (header[0] != 1 || header[2] == 0xff || header[3] != 0x3b)
        return NULL;
    read_encoded(&head, header[1]);
    uint64_t count = read_encoded(&head, header[2]), low = 0;
    const unsigned char *table = head.at;
    int32_t pair[2];
    int64_t wanted = (int64_t)(address - (uintptr_t)header);
    while (low + 1 < count) {
        uint64_t middle = low + (count - low) / 2;
        memcpy(pair, table + middle * sizeof pair, sizeof pair);
        if (pair[0] <= wanted) {
            low = middle;
        } else {
            count = middle;
        }
    }
    if (count == 0)
        return NULL;
    memcpy(pair, table + low * sizeof pair, sizeof pair);
    *place = (uint32_t)low;
    return pair[0] <= wanted ? header + pair[1] : NULL;
}

static bool find_function(const unsigned char *header, uintptr_t address, struct function *function)
{
    const unsigned char *at = find_entry(header, address, &function->pair);
    if (at == NULL)
        return false;
    struct piece entry = entry_at(at);
    const unsigned char *place = entry.at;
    uint64_t back = read_bytes(&entry, 4);
    if (back == 0 || !read_common(place - back, function))
        return false;
    function->start = read_encoded(&entry, function->encoding);
    uintptr_t bytes = read_encoded(&entry, function->encoding & 0x0f);
    if (address - function->start >= bytes)
        return false;
    uint64_t augmentation = read_uleb(&entry);
    if (augmentation > (size_t)(entry.end - entry.at))
        return false;
    entry.at += augmentation;
    function->own = entry;
    function->base = header;
    return true;
}

static bool set_rule(struct row *row, uint64_t number, enum rule rule, int64_t value)
{
    if (number >= HAK_DWARF_REGISTERS)
        return true; /* one that nobody asks for */
    row->rules[number] = (uint8_t)rule;
    row->values[number] = (int32_t)value;
    return value == (int32_t)value;
}

static bool set_cfa(struct row *row, uint64_t number, int64_t value)
{
    row->cfa_register = (uint8_t)number;
    row->cfa_value = (int32_t)value;
    row->is_cfa_expression = false;
    return number < HAK_DWARF_REGISTERS && value == (int32_t)value;
}

/* An expression that follows: its place. */
static int64_t read_expression(struct piece *piece, const struct function *function)
{
    int64_t place = piece->at - function->base;
    uint64_t bytes = read_uleb(piece);
    bool fits = bytes <= (size_t)(piece->end - piece->at);
    piece->at = fits ? piece->at + bytes : piece->end;
    return place;
}

/* DW_CFA_*: those that say where the frame is. */
static bool run_cfa(uint8_t code, struct piece *piece, const struct function *function,
                    struct row *row)
{
    uint64_t number;
    switch (code) {
    case 0x0c: /* def_cfa */
        number = read_uleb(piece);
        return set_cfa(row, number, (int64_t)read_uleb(piece));
    case 0x0d: /* def_cfa_register */
        return set_cfa(row, read_uleb(piece), row->cfa_value);
    case 0x0e: /* def_cfa_offset */
        return set_cfa(row, row->cfa_register, (int64_t)read_uleb(piece));
    case 0x0f: /* def_cfa_expression */
        row->cfa_value = (int32_t)read_expression(piece, function);
        row->is_cfa_expression = true;
        return true;
    case 0x12: /* def_cfa_sf */
        number = read_uleb(piece);
        return set_cfa(row, number, read_sleb(piece) * function->data_unit);
    case 0x13: /* def_cfa_offset_sf */
        return set_cfa(row, row->cfa_register, read_sleb(piece) * function->data_unit);
    default:
        return false;
    }
}

/* Those that say where a register is. */
static bool run_register(uint8_t code, struct piece *piece, const struct function *function,
                         struct row *row)
{
    uint64_t number = read_uleb(piece);
    switch (code) {
    case 0x05: /* offset_extended */
        return set_rule(row, number, RULE_AT_CFA, (int64_t)read_uleb(piece) * function->data_unit);
    case 0x07: /* undefined */
        return set_rule(row, number, RULE_UNDEFINED, 0);
    case 0x08: /* same_value */
        return set_rule(row, number, RULE_SAME, 0);
    case 0x09: /* register */
        return set_rule(row, number, RULE_REGISTER, (int64_t)read_uleb(piece));
    case 0x10: /* expression */
        return set_rule(row, number, RULE_EXPRESSION, read_expression(piece, function));
    case 0x11: /* offset_extended_sf */
        return set_rule(row, number, RULE_AT_CFA, read_sleb(piece) * function->data_unit);
    case 0x14: /* val_offset */
        return set_rule(row, number, RULE_IS_CFA, (int64_t)read_uleb(piece) * function->data_unit);
    default:
        return false;
    }
}

struct rows {
    struct row now;
    struct row first; /* after the common instructions */
    struct row kept[KEPT_MOST];
    uint32_t kept_count;
    uintptr_t address; /* from which the next instructions are true */
};

static void restore(struct rows *rows, uint64_t number)
{
    if (number >= HAK_DWARF_REGISTERS)
        return;
    rows->now.rules[number] = rows->first.rules[number];
    rows->now.values[number] = rows->first.values[number];
}

/* Those that keep and restore; false: it is none of them. */
static bool run_state(uint8_t code, struct piece *piece, struct rows *rows, bool *is_right)
{
    *is_right = true;
    switch (code) {
    case 0x00: /* nop */
    case 0x2d: /* arm64: the return address is signed from here on, or no more */
        return true;
    case 0x2e: /* GNU_args_size */
        read_uleb(piece);
        return true;
    case 0x06: /* restore_extended */
        restore(rows, read_uleb(piece));
        return true;
    case 0x0a: /* remember_state */
        *is_right = rows->kept_count < KEPT_MOST;
        if (*is_right)
            rows->kept[rows->kept_count++] = rows->now;
        return true;
    case 0x0b: /* restore_state */
        *is_right = rows->kept_count > 0;
        if (*is_right)
            rows->now = rows->kept[--rows->kept_count];
        return true;
    default:
        return false;
    }
}

/* Those that move on; false: it is none of them. */
static bool run_advance(uint8_t code, struct piece *piece, const struct function *function,
                        struct rows *rows)
{
    if (code == 0x01) /* set_loc */
        rows->address = read_encoded(piece, function->encoding);
    else if (code >= 0x02 && code <= 0x04) /* advance_loc1, 2, 4 */
        rows->address += read_bytes(piece, (size_t)1 << (code - 2)) * function->code_unit;
    else if (code >> 6 == 1) /* advance_loc */
        rows->address += (code & 0x3f) * function->code_unit;
    else
        return false;
    return true;
}

/* Runs the instructions that are true of the address. */
static bool run(struct piece piece, const struct function *function, struct rows *rows,
                uintptr_t address)
{
    bool is_right = true;
    while (piece.at < piece.end && is_right) {
        uint8_t code = *piece.at++;
        if (run_advance(code, &piece, function, rows)) {
            if (rows->address > address)
                break;
        } else if (code >> 6 == 2) { /* offset */
            is_right = set_rule(&rows->now, code & 0x3f, RULE_AT_CFA,
                                (int64_t)read_uleb(&piece) * function->data_unit);
        } else if (code >> 6 == 3) { /* restore */
            restore(rows, code & 0x3f);
        } else if (run_state(code, &piece, rows, &is_right)) {
            continue;
        } else if ((code >= 0x0c && code <= 0x0f) || code == 0x12 || code == 0x13) {
            is_right = run_cfa(code, &piece, function, &rows->now);
        } else {
            is_right = run_register(code, &piece, function, &rows->now);
        }
    }
    return is_right;
}

/* DW_OP_*: breg, plus_uconst and deref, the words of signal frames. */
static bool evaluate(const struct dwarf_frame *frame, const unsigned char *at, uintptr_t *value)
{
    struct piece piece = {at, at + 16};
    uint64_t bytes = read_uleb(&piece);
    piece.end = piece.at + bytes;
    *value = 0;
    while (piece.at < piece.end) {
        uint8_t code = *piece.at++;
        if (code >= 0x70 && code < 0x70 + 32 && code - 0x70u < HAK_DWARF_REGISTERS)
            *value = frame->registers[code - 0x70] + (uintptr_t)read_sleb(&piece);
        else if (code == 0x23)
            *value += read_uleb(&piece);
        else if (code != 0x06 || !frame->read(*value, value))
            return false;
    }
    return true;
}

static bool find_cfa(const struct dwarf_frame *frame, const struct function *function,
                     const struct row *row, uintptr_t *cfa)
{
    if (row->is_cfa_expression)
        return evaluate(frame, function->base + row->cfa_value, cfa);
    *cfa = frame->registers[row->cfa_register] + (uintptr_t)(intptr_t)row->cfa_value;
    return true;
}

/* The caller's value of a register. */
static bool find_value(const struct dwarf_frame *frame, const struct function *function,
                       const struct row *row, uint32_t number, uintptr_t cfa, uintptr_t *value)
{
    intptr_t offset = row->values[number];
    *value = frame->registers[number];
    switch (row->rules[number]) {
    case RULE_AT_CFA:
        return frame->read(cfa + (uintptr_t)offset, value);
    case RULE_IS_CFA:
        *value = cfa + (uintptr_t)offset;
        return true;
    case RULE_REGISTER:
        if ((uint32_t)offset >= HAK_DWARF_REGISTERS)
            return false;
        *value = frame->registers[offset];
        return true;
    case RULE_EXPRESSION:
        return evaluate(frame, function->base + offset, value) && frame->read(*value, value);
    default:
        return true;
    }
}

static bool apply(struct dwarf_frame *frame, const struct function *function, const struct row *row)
{
    uintptr_t cfa, values[HAK_DWARF_REGISTERS];
    uint32_t back = (uint32_t)function->return_register;
    if (row->rules[back] == RULE_UNDEFINED || !find_cfa(frame, function, row, &cfa))
        return false;
    for (uint32_t i = 0; i < HAK_DWARF_REGISTERS; i++)
        if (!find_value(frame, function, row, i, cfa, &values[i]))
            return false;
    if (row->rules[HAK_DWARF_STACK_POINTER] == RULE_SAME)
        values[HAK_DWARF_STACK_POINTER] = cfa;
    memcpy(frame->registers, values, sizeof values);
    frame->address = values[back];
    frame->is_interrupted = function->is_signal;
    return true;
}

/* The row as a rule to keep; false: it is not simple. */
static bool make_rule(const struct function *function, const struct row *row,
                      struct frame_rule *rule)
{
    *rule = (struct frame_rule){.frame_offset = row->cfa_value,
                                .frame_register = row->cfa_register,
                                .return_register = (uint8_t)function->return_register};
    rule->is_outermost = row->rules[function->return_register] == RULE_UNDEFINED;
    if (row->is_cfa_expression || function->is_signal)
        return rule->is_outermost;
    for (uint32_t i = 0; i < HAK_DWARF_REGISTERS; i++) {
        int32_t words = row->values[i] / (int32_t)sizeof(uintptr_t);
        if (row->rules[i] == RULE_SAME || row->rules[i] == RULE_UNDEFINED)
            continue;
        if (row->rules[i] != RULE_AT_CFA || i == HAK_DWARF_STACK_POINTER ||
            rule->count == HAK_RULE_REGISTERS || words != (int16_t)words ||
            row->values[i] % (int32_t)sizeof(uintptr_t) != 0)
            return false;
        rule->registers[rule->count] = (uint8_t)i;
        rule->words[rule->count++] = (int16_t)words;
    }
    return true;
}

/* A call may be a function's last instruction: what follows it is another function's. */
static uintptr_t looked_up(const struct dwarf_frame *frame)
{
    return frame->address - !frame->is_interrupted;
}

bool hak_dwarf_covers(const struct dwarf_frame *frame, const unsigned char *header)
{
    struct function function = {0};
    return find_function(header, looked_up(frame), &function);
}

bool hak_dwarf_step(struct dwarf_frame *frame, const unsigned char *header)
{
    uintptr_t address = looked_up(frame);
    struct frame_rule rule;
    if (hak_rules_find(header, address, &rule))
        return hak_rules_apply(frame, &rule);
    struct function function = {0};
    struct rows rows = {0};
    if (!find_function(header, address, &function))
        return false;
    rows.address = function.start;
    if (!run(function.common, &function, &rows, UINTPTR_MAX))
        return false;
    rows.first = rows.now;
    rows.address = function.start;
    if (!run(function.own, &function, &rows, address))
        return false;
    if (make_rule(&function, &rows.now, &rule))
        hak_rules_keep(&(struct rule_source){header, address, function.pair}, &rule);
    return apply(frame, &function, &rows.now);
}
