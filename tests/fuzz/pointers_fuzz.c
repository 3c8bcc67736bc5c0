/* SPDX-License-Identifier: MIT */
/* tests/fuzz/pointers_fuzz.c - any address is classified without a fault: live blocks are hakmem's,
 * and what is outside of the window is not. */
#include "hakmem/hakmem.h"
#include "steps.h"

static struct reference reference;

/* An address near something that matters: a live block, an edge of the window, a far number. */
static uintptr_t input_address(struct input *input)
{
    uintptr_t base = (uintptr_t)hak_region.base;
    uintptr_t distance = input_below(input, 1u << 24) << input_byte(input) % 40;
    uintptr_t near = 0;
    switch (input_byte(input) % 6) {
    case 0:
        near = base;
        break;
    case 1:
        near = base + hak_load_relaxed(&hak_region.committed_bytes);
        break;
    case 2:
        near = base + hak_region.window_bytes;
        break;
    case 3:
        near = (uintptr_t)&near;
        break;
    case 4:
        if (reference.live_count > 0)
            near = (uintptr_t)reference.live[input_below(input, reference.live_count)].start;
        break;
    default:
        break;
    }
    return input_byte(input) % 2 == 0 ? near + distance : near - distance;
}

static const struct live *live_at(uintptr_t address)
{
    for (uint32_t i = 0; i < reference.live_count; i++)
        if ((uintptr_t)reference.live[i].start == address)
            return &reference.live[i];
    return NULL;
}

static void classify(uintptr_t address)
{
    const void *pointer = (const void *)address;
    uintptr_t base = (uintptr_t)hak_region.base;
    const struct live *live = live_at(address);
    int is_owned = hakmem_is_owned(pointer);
    if (live != NULL) {
        CHECK_EQ(is_owned, 1);
        CHECK_EQ(hakmem_usable_size(pointer), live->usable);
        CHECK_EQ(hakmem_heap_of(pointer), NULL);
    } else if (address < base || address - base >= hak_region.window_bytes) {
        CHECK_EQ(is_owned, 0);
    } else {
        CHECK(is_owned == 0 || is_owned == 1);
    }
    for (uint32_t i = 0; i < reference.live_count; i++)
        if (address > (uintptr_t)reference.live[i].start &&
            address < (uintptr_t)reference.live[i].start + reference.live[i].usable)
            CHECK_EQ(is_owned, 0);
}

static void step(struct input *input)
{
    uint32_t choice = input_byte(input) % 8;
    if (choice < 2)
        step_take(&reference, input, choice * 4);
    else if (choice == 2)
        step_free(&reference, input);
    else
        classify(input_address(input));
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t byte_count)
{
    struct input input = {bytes, bytes + byte_count};
    CHECK(hak_process_start());
    while (!input_is_over(&input))
        step(&input);
    for (uint32_t i = 0; i < reference.live_count; i++)
        classify((uintptr_t)reference.live[i].start);
    everything_free(&reference);
    return 0;
}
