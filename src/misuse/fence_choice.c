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

static bool parse_bytes(const char *text, size_t text_bytes, size_t *bytes)
{
    static const struct conf_row row = {.name = "fence", .kind = CONF_KIND_BYTES, .most = HAK_TIB};
    int64_t number = 0;
    bool is_right = hak_conf_parse(&row, text, text_bytes, &number);
    *bytes = (size_t)number;
    return is_right;
}

static bool parse_range(const char *text)
{
    const char *dots = strstr(text, "..");
    size_t first_bytes = dots != NULL ? (size_t)(dots - text) : strlen(text);
    const char *last = dots != NULL ? dots + 2 : text;
    return parse_bytes(text, first_bytes, &bytes_least) &&
           parse_bytes(last, strlen(last), &bytes_most) && bytes_least <= bytes_most;
}

static bool is_call(const char *text)
{
    const char *offset = strrchr(text, '+');
    if (offset == NULL || offset == text || strncmp(offset, "+0x", 3) != 0 || offset[3] == '\0')
        return false;
    return offset[3 + strspn(offset + 3, "0123456789abcdef")] == '\0';
}

static bool parse(const char *text)
{
    bytes_least = 0;
    bytes_most = SIZE_MAX;
    call = NULL;
    if (strcmp(text, "all") == 0)
        return true;
    if (!is_call(text))
        return parse_range(text);
    call = text;
    return true;
}

bool hak_fence_choice_start(void)
{
    if (!hak_conf_wants_fence())
        return false;
    if (parse(hak_conf_text(fence)))
        return true;
    hak_conf_report_file("fence", "bad value, accepted: none, all, a size, SIZE..SIZE (units K, M, "
                                  "G, T), or FILE+0xOFFSET of a call");
    return false;
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
