/* SPDX-License-Identifier: MIT */
/* tests/fuzz/faults_fuzz.c - the kernel refuses memory calls by a schedule; blocks stay intact, and
 * afterwards nothing is refused. */
#include "os/os_fault.h"
#include "process/reclaim.h"
#include "steps.h"

static struct reference reference;

static void step(struct input *input)
{
    uint32_t choice = input_byte(input) % 24;
    if (choice < 7)
        step_take(&reference, input, choice);
    else if (choice < 10)
        step_resize(&reference, input);
    else if (choice < 15)
        step_free(&reference, input);
    else if (choice < 18)
        hak_os_fault_every(input_byte(input) % 20);
    else if (choice == 18)
        hak_store_relaxed(&hak_os_fault.loses_targets, input_byte(input) & 1);
    else if (choice < 21)
        hak_reclaim_purge_all();
    else if (choice == 21)
        hak_thread_flush();
    else
        hak_reclaim_tick();
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t byte_count)
{
    struct input input = {bytes, bytes + byte_count};
    CHECK(hak_process_start());
    CHECK(hak_thread_cache() != NULL);
    hak_reclaim_purge_all(); /* so that this input meets the kernel */
    reference.may_fail = true;
    while (!input_is_over(&input))
        step(&input);
    hak_os_fault_every(0);
    reference.may_fail = false;
    static const unsigned char malloc_of_100k[] = {0, 162, 1};
    input = (struct input){malloc_of_100k, malloc_of_100k + sizeof malloc_of_100k};
    step(&input);
    reference_check_overlap(&reference);
    own_heap_check();
    everything_free(&reference);
    return 0;
}
