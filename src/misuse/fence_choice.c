/* SPDX-License-Identifier: MIT */
#include "misuse/fence_choice.h"

#include "base/bits.h"
#include "conf/conf.h"
#include "os/module.h"

#include <string.h>

/* Calls that are cached with their result. */
#define CALLS 4096u
#define PLACE_BYTES 300u

static size_t bytes_least, bytes_most;
static const char *call;                   /* FILE+OFFSET; NULL: all */
static _Atomic uintptr_t looked_up[CALLS]; /* twice the address, and 1 if it is the one */

bool hak_fence_choice_start(void)
{
    struct conf_fence fence;
    const char *text = hak_conf_text(fence);
    if (!hak_conf_wants_fence() || !hak_conf_parse_fence(text, strlen(text), &fence))
        return false;
    bytes_least = fence.bytes_least;
    bytes_most = fence.bytes_most;
    call = fence.is_call ? text : NULL;
    return true;
}

bool hak_fence_names_bytes(size_t bytes)
{
    return bytes >= bytes_least && bytes <= bytes_most;
}

/* "/usr/bin/server+0x1f" is named by that, by "server+0x1f", not by "erver+0x1f". */
static bool is_named(const char *place, size_t bytes)
{
    size_t call_bytes = strlen(call);
    return bytes >= call_bytes && memcmp(place + bytes - call_bytes, call, call_bytes) == 0 &&
           (bytes == call_bytes || *call == '/' || place[bytes - call_bytes - 1] == '/');
}

static bool look_up(uintptr_t address)
{
    char place[PLACE_BYTES];
    struct text text = {.start = place, .bytes = sizeof place};
    const uintptr_t addresses[] = {address - 1, 0};
    hak_os_module_add(&text, addresses, 1);
    return is_named(place, text.used);
}

static bool is_the_call(uintptr_t address)
{
    _Atomic uintptr_t *slot = &looked_up[hak_bit_mix(address) % CALLS];
    uintptr_t known = hak_load_relaxed(slot);
    if (known / 2 != address) {
        known = address * 2 + look_up(address);
        hak_store_relaxed(slot, known);
    }
    return (known & 1) != 0;
}

bool hak_fence_names_calls(const struct guarded_trace *trace)
{
    if (call == NULL)
        return true;
    for (uint32_t i = 0; i < HAK_GUARDED_FRAMES && trace->addresses[i] != 0; i++)
        if (is_the_call(trace->addresses[i]))
            return true;
    return false;
}
