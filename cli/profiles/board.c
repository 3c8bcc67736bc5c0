/* SPDX-License-Identifier: MIT */
#include "profiles/board.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const uint64_t ns_a_ms = 1000000;

bool is_board(const void *bytes, size_t byte_count)
{
    uint64_t magic = HAK_BOARD_MAGIC;
    return byte_count >= sizeof magic && memcmp(bytes, &magic, sizeof magic) == 0;
}

static uint64_t less(uint64_t left, uint64_t right)
{
    return left > right ? left - right : 0;
}

static uint64_t bounded_product(uint64_t left, uint64_t right)
{
    uint64_t product;
    return __builtin_mul_overflow(left, right, &product) ? UINT64_MAX : product;
}

static void read_module(struct profile *profile, const struct board_module *from)
{
    char digits[2 * HAK_BOARD_BUILD_ID_BYTES + 1] = "";
    uint32_t bytes = from->build_id_bytes;
    for (uint32_t i = 0; i < bytes && i < HAK_BOARD_BUILD_ID_BYTES; i++)
        snprintf(digits + (size_t)i * 2, 3, "%02x", from->build_id[i]);
    profile_add_module(profile,
                       (struct module){.start = from->start,
                                       .end = from->end,
                                       .offset = from->file_offset,
                                       .bias = from->bias,
                                       .has_bias = true,
                                       .path = profile_name(profile, from->path, sizeof from->path),
                                       .build_id = profile_name_of(profile, digits)});
}

/* The locations of a site's stack; returns how many. */
static uint32_t read_stack(struct profile *profile, const struct board_site *from,
                           uint32_t stack[HAK_BOARD_FRAMES])
{
    uint32_t depth = 0;
    while (depth < from->frame_count && depth < HAK_BOARD_FRAMES) {
        uint64_t address = from->frames[depth] - (from->frames[depth] > 0);
        stack[depth++] = profile_location(profile, address);
    }
    return depth;
}

/* The stack that freed a sample of the site last. */
static struct stack read_freeing(struct profile *profile, const struct profile_board *board,
                                 const struct board_site *from)
{
    uint32_t stack[HAK_BOARD_FRAMES], depth = 0;
    uint64_t site = hak_load_relaxed(&from->freed_by);
    if (site != 0 && site < HAK_BOARD_SITES &&
        hak_load_relaxed(&board->sites[site].state) == BOARD_READY)
        depth = read_stack(profile, &board->sites[site], stack);
    return profile_add_stack(profile, stack, depth);
}

static void read_site(struct profile *profile, const struct profile_board *board,
                      const struct board_site *first, const struct board_site *from,
                      uint64_t now_ms)
{
    uint32_t stack[HAK_BOARD_FRAMES];
    uint32_t depth = read_stack(profile, from, stack);
    struct stack freed_by = read_freeing(profile, board, from);
    struct site *site = profile_add_site(profile, stack, depth);
    site->freed_by = freed_by;
    site->values[VALUE_ALLOCATED_OBJECTS] = hak_load_relaxed(&from->allocated_count);
    site->values[VALUE_ALLOCATED_BYTES] = hak_load_relaxed(&from->allocated_bytes);
    site->values[VALUE_LIVE_OBJECTS] =
        less(site->values[VALUE_ALLOCATED_OBJECTS], hak_load_relaxed(&first->freed_count));
    site->values[VALUE_LIVE_BYTES] =
        less(site->values[VALUE_ALLOCATED_BYTES], hak_load_relaxed(&first->freed_bytes));
    site->values[VALUE_LIFE_NS] = bounded_product(hak_load_relaxed(&from->life_us), 1000);
    site->samples = hak_load_relaxed(&from->samples);
    uint64_t oldest_ms = hak_load_relaxed(&from->oldest_ms);
    uint64_t last_ms = hak_load_relaxed(&from->last_ms);
    site->oldest_ns = oldest_ms == 0 ? 0 : less(now_ms, oldest_ms) * ns_a_ms;
    site->grown_ns = last_ms == 0 ? 0 : less(now_ms, last_ms) * ns_a_ms;
}

/* The last moment that the board tells of. */
static uint64_t last_moment(const struct profile_board *board)
{
    uint64_t last_ms = hak_load_relaxed(&board->head.refreshed_ms);
    for (uint32_t i = 0; i < HAK_BOARD_SITES; i++) {
        uint64_t site_ms = hak_load_relaxed(&board->sites[i].last_ms);
        last_ms = site_ms > last_ms ? site_ms : last_ms;
    }
    return last_ms;
}

static uint32_t least(uint64_t number, uint32_t most)
{
    return number < most ? (uint32_t)number : most;
}

bool board_read(struct profile *profile, const struct profile_board *first,
                const struct profile_board *board, uint64_t now_ms)
{
    const struct board_head *head = &board->head;
    if (head->version != HAK_BOARD_VERSION || head->layout != hak_board_layout() ||
        head->file_bytes != sizeof *board)
        return profile_refuse(profile, "is of another version of hakmem");
    if (now_ms == 0)
        now_ms = last_moment(board);
    uint64_t since_ms = hak_load_relaxed(&head->sampling_ms);
    profile->program = profile_name(profile, head->name, sizeof head->name);
    profile->pid = head->pid;
    profile->period_bytes = hak_load_relaxed(&head->mean_bytes);
    profile->taken_ns = (head->start_unix_ms + less(now_ms, head->start_ms)) * ns_a_ms;
    profile->duration_ns = since_ms == 0 ? 0 : less(now_ms, since_ms) * ns_a_ms;
    profile->lost_sites = hak_load_relaxed(&head->dropped.sites_full);
    profile->lost_samples = hak_load_relaxed(&head->dropped.untracked);
    profile->unshown_sites = hak_load_relaxed(&head->unshown_count);
    profile->lost_modules = hak_load_relaxed(&head->dropped.modules_full);
    profile->has_blocks = true;
    profile->has_allocated = profile->has_lives = profile->has_ages = true;
    uint32_t modules = least(hak_load_relaxed(&head->module_count), HAK_BOARD_MODULES);
    for (uint32_t i = 0; i < modules; i++)
        if (hak_load_relaxed(&first->modules[i].state) == BOARD_READY)
            read_module(profile, &board->modules[i]);
    uint32_t sites = least(hak_load_relaxed(&head->site_count), HAK_BOARD_SITES);
    for (uint32_t i = 0; i < sites; i++)
        if (hak_load_relaxed(&first->sites[i].state) == BOARD_READY &&
            hak_load_relaxed(&board->sites[i].allocated_count) > 0)
            read_site(profile, board, &first->sites[i], &board->sites[i], now_ms);
    profile_find_period(profile);
    return true;
}
