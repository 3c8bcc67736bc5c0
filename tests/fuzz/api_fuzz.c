/* SPDX-License-Identifier: MIT */
/* tests/fuzz/api_fuzz.c - sequences of malloc's family against a reference, contents checked. */
#include "process/reclaim.h"
#include "steps.h"

static struct reference reference;

static void step(struct input *input)
{
    uint32_t choice = input_byte(input) % 20;
    if (choice < 7)
        step_take(&reference, input, choice);
    else if (choice < 10)
        step_take(&reference, input, 0);
    else if (choice < 13)
        step_resize(&reference, input);
    else if (choice < 17)
        step_free(&reference, input);
    else if (choice == 17)
        step_refused(input);
    else if (choice == 18)
        hak_thread_flush();
    else
        hak_reclaim_trim(input_bytes(input));
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t byte_count)
{
    struct input input = {bytes, bytes + byte_count};
    while (!input_is_over(&input))
        step(&input);
    reference_check_overlap(&reference);
    own_heap_check();
    everything_free(&reference);
    return 0;
}
