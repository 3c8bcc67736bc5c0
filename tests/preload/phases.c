/* SPDX-License-Identifier: MIT */
/* tests/preload/phases.c - a server whose work changes, for twenty cycles: what it holds at the end
 * of a cycle does not grow. If this fails, services have to be started anew each week. */
#include "program.h"

#define MIB (1ul << 20)
#define CYCLES 20
#define PHASES 4
#define SLOTS 30000

static void *slots[SLOTS];

/* Each phase has sizes of its own. */
static size_t size_in(int phase, unsigned *state)
{
    static const size_t most[PHASES] = {200, 3000, 900, 6000};
    return 1 + next_random(state) % most[phase];
}

/* One in fifty blocks outlives its phase, as sessions and caches do. */
static void run_phase(int phase, unsigned *state)
{
    for (int i = 0; i < 3 * SLOTS; i++) {
        unsigned at = next_random(state) % SLOTS;
        size_t bytes = size_in(phase, state);
        free(slots[at]);
        slots[at] = malloc(bytes);
        CHECK(slots[at] != NULL);
        memset(slots[at], 1, bytes);
    }
    for (int i = 0; i < SLOTS; i++)
        if (i % 50 != 0) {
            free(slots[i]);
            slots[i] = NULL;
        }
}

static void *run_cycle(void *cycle)
{
    unsigned state = (unsigned)(uintptr_t)cycle;
    for (int phase = 0; phase < PHASES; phase++)
        run_phase(phase, &state);
    return NULL;
}

TEST(after_twenty_cycles_no_more_is_resident_than_after_two)
{
    time_limit(250);
    check_is_served();
    size_t second = 0, last = 0;
    for (uintptr_t cycle = 1; cycle <= CYCLES; cycle++) {
        /* Each cycle is another thread's, as requests are. */
        in_thread(run_cycle, (void *)cycle);
        last = resident_bytes();
        if (cycle == 2)
            second = last;
    }
    check_print("second cycle %zu KiB, last %zu KiB\n", second / 1024, last / 1024);
    CHECK(last <= second + second / 20 + 4 * MIB);
}
