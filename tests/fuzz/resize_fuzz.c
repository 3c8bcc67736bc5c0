/* SPDX-License-Identifier: MIT */
/* tests/fuzz/resize_fuzz.c - a few blocks, from a byte to 64 MiB, that grow, shrink, move and are
 * aligned; what they keep is checked, and that what they are is what they say they are. */
#include "hakmem/hakmem.h"
#include "process/reclaim.h"
#include "steps.h"

#define BLOCKS 6u
#define BYTES_MOST (64 * HAK_MIB)

static struct reference reference;

/* Around the edges of size classes, spans, superslabs and moved pages. */
static size_t edge_bytes(struct input *input)
{
    static const size_t edges[] = {
        8, 128, 4096, 128 * HAK_KIB, HAK_GRANULE_BYTES, HAK_MIB, HAK_SUPERSLAB_BYTES, 16 * HAK_MIB};
    size_t edge = edges[input_below(input, sizeof edges / sizeof *edges)];
    size_t times = 1 + input_below(input, 4);
    size_t distance = input_below(input, 5) * input_below(input, 4096);
    size_t bytes = edge * times;
    return input_byte(input) % 2 == 0 ? bytes + distance : bytes > distance ? bytes - distance : 1;
}

static void resize(struct input *input, uint32_t index)
{
    size_t bytes = edge_bytes(input);
    const struct live *live = &reference.live[index];
    block_check(live->start, live->usable, live->usable, live->seed);
    unsigned char *block = hak_realloc(live->start, bytes);
    CHECK(block != NULL);
    struct live old = reference_remove(&reference, index);
    block_check(block, old.bytes < bytes ? old.bytes : bytes, old.usable, old.seed);
    reference_add(&reference, block, bytes, bytes <= 8 ? 8 : 16);
    CHECK_EQ(hakmem_is_owned(block), 1);
    CHECK(hakmem_good_size(bytes) >= bytes);
}

static void step(struct input *input)
{
    uint32_t choice = input_byte(input) % 8;
    uint32_t index = (uint32_t)input_below(input, BLOCKS);
    if (index >= reference.live_count) {
        size_t bytes = edge_bytes(input);
        size_t alignment = choice < 4 ? 16 : (size_t)16 << input_byte(input) % 21;
        void *block = choice < 4 ? hak_malloc(bytes) : hak_aligned_alloc(alignment, bytes);
        CHECK(block != NULL);
        reference_add(&reference, block, bytes, bytes <= 8 && choice < 4 ? 8 : alignment);
    } else if (choice == 0) {
        hak_free(live_remove(&reference, index).start);
    } else if (choice == 1) {
        hak_reclaim_purge_all();
    } else {
        resize(input, index);
    }
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t byte_count)
{
    struct input input = {bytes, bytes + byte_count};
    for (int steps = 0; steps < 64 && !input_is_over(&input); steps++)
        step(&input);
    reference_check_overlap(&reference);
    everything_free(&reference);
    own_heap_check();
    return 0;
}
