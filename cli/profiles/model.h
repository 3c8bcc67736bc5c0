/* SPDX-License-Identifier: MIT */
/* cli/profiles/model.h - a heap profile in memory, whatever it was read from.
 *
 * Owns        struct profile: sites with their values, the locations of their stacks, the modules
 *             that these lie in, and all names.
 * Invariants  names, modules, locations and lines are referred to by index and never move; name 0
 *             is empty, module 0 is none. A site's stack begins with the innermost frame, a
 *             location's lines with the innermost function inlined there. Values are estimates of
 *             what the program did, not of what was sampled, and never negative.
 * Threads     one.
 * Tests       tests/cli/profile_cli.sh, tests/fuzz/profile_fuzz.c
 */
#ifndef HAK_CLI_PROFILES_MODEL_H
#define HAK_CLI_PROFILES_MODEL_H

#include "base/compiler.h"

/* In the order of the sample types of a pprof file. */
enum value {
    VALUE_ALLOCATED_OBJECTS,
    VALUE_ALLOCATED_BYTES,
    VALUE_LIVE_OBJECTS,
    VALUE_LIVE_BYTES,
    VALUE_LIFE_NS, /* the sum of the life times of blocks that have ended */
    VALUE_COUNT
};

/* What no file may pass: a reader refuses it. */
enum {
    PROFILE_DEPTH_MOST = 1024,
    PROFILE_SITES_MOST = 1 << 20,
};

typedef uint32_t name_id;

struct module {
    uint64_t start, end; /* of the mapping */
    uint64_t offset;     /* of the file at start */
    uint64_t bias;       /* less this an address is one of the file, where has_bias */
    bool has_bias;
    name_id path;
    name_id build_id; /* in hexadecimal, or empty */
};

struct line {
    name_id function; /* empty: not known */
    name_id file;
    uint32_t number;
};

struct location {
    uint64_t address; /* of an instruction of the call: a return address less one */
    uint32_t module;
    uint32_t first_line, line_count;
};

/* In `frames`, which holds numbers of locations, innermost first. */
struct stack {
    uint32_t first_frame, depth;
};

struct site {
    struct stack stack;
    struct stack freed_by; /* its depth is 0 where that is not known */
    uint64_t values[VALUE_COUNT];
    uint64_t samples;   /* 0: not known */
    uint64_t oldest_ns; /* age of the oldest block that lives; 0: not known */
    uint64_t grown_ns;  /* since the site last grew; 0: not known */
};

struct profile {
    char wrong[256]; /* why a reader refused */
    name_id program; /* empty: not known */
    uint64_t pid;
    uint64_t period_bytes; /* one sample in so many bytes in the mean; 0: not known */
    bool is_least_period;  /* it may be more: that is what was asked for */
    uint64_t taken_ns;     /* since 1970; 0: not known */
    uint64_t duration_ns;
    uint64_t lost_sites, lost_samples;
    uint64_t unshown_sites; /* with what they hold */
    uint64_t lost_modules;  /* not 0: of code of some modules names are missing, or wrong */
    bool has_blocks;        /* else nobody counted them */
    bool has_allocated;     /* else nothing is known but what lives */
    bool has_lives;
    bool has_ages;

    struct module *modules;
    struct line *lines;
    struct location *locations;
    struct site *sites;
    uint32_t *frames;
    uint32_t module_count, line_count, location_count, site_count, frame_count;
    uint32_t module_room, line_room, location_room, site_room, frame_room;

    char *text; /* the names, each ended by a zero byte */
    size_t text_bytes, text_room;
    uint32_t *name_starts, *name_slots;
    uint32_t name_count, name_room, slot_count;
    uint32_t *address_slots; /* of profile_location */
    uint32_t address_slot_count;
};

void profile_begin(struct profile *profile);
void profile_end(struct profile *profile);

/* Keeps the reason and returns false. */
bool profile_refuse(struct profile *profile, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The name with this text; one text has one id. Control characters become '?'. */
name_id profile_name(struct profile *profile, const char *text, size_t bytes);
name_id profile_name_of(struct profile *profile, const char *text);
const char *profile_text(const struct profile *profile, name_id name);

/* Each returns the index of the new one. */
uint32_t profile_add_module(struct profile *profile, struct module module);
uint32_t profile_add_location(struct profile *profile, uint64_t address, uint32_t module);

/* The location of an address, which is in the module that it lies in: one for each address. Not for
 * profiles that have locations by profile_add_location. */
uint32_t profile_location(struct profile *profile, uint64_t address);

/* The index of the location that profile_location made of an address; UINT32_MAX: there is none. */
uint32_t profile_find_location(struct profile *profile, uint64_t address);

/* Adds a line to the newest location, or to one that has none yet. */
void profile_add_line(struct profile *profile, uint32_t location, struct line line);

struct stack profile_add_stack(struct profile *profile, const uint32_t *locations, uint32_t depth);

/* A site with these locations, innermost first, and no values; two sites may have one stack. */
struct site *profile_add_site(struct profile *profile, const uint32_t *locations, uint32_t depth);

/* Gives each location without lines one whose function is module+offset. */
void profile_name_unknown(struct profile *profile);

/* The module that an address lies in, the last one of several; 0: none. */
uint32_t profile_module_at(const struct profile *profile, uint64_t address);

/* One function of a stack: an inlined one, or that around it. */
struct frame {
    name_id function, file, module;
    uint32_t number;
    uint64_t address;
    bool is_inlined;
};

enum { FRAMES_MOST = 4 * PROFILE_DEPTH_MOST };

/* Fills `frames`, of FRAMES_MOST, innermost first, with the functions of a stack whose locations
 * all have lines; returns how many. */
uint32_t stack_frames(const struct profile *profile, struct stack stack, struct frame *frames);

/* The innermost function of Python, where the stack has one (profiles/perf_map.h); else the first
 * frame that is neither an allocator's own nor of a language's library of containers; the
 * innermost where there is no other. */
uint32_t site_origin(const struct profile *profile, const struct frame *frames, uint32_t count);

/* Adds up a value over all sites. */
uint64_t profile_sum(const struct profile *profile, enum value value);

/* Samples may be fewer than were asked for: where the sites tell, finds the period in force. */
void profile_find_period(struct profile *profile);

/* Adds without passing the largest number. */
uint64_t add_bounded(uint64_t left, uint64_t right);

/* The last part of a path. */
const char *base_name(const char *path);

/* realloc that ends the command where memory is short. */
void *grow(void *start, size_t count, size_t bytes);

#endif
