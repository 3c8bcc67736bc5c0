/* SPDX-License-Identifier: MIT */
/* tests/preload/phases.c - a server whose work changes, for many cycles: what it holds at the end
 * of a cycle does not grow. If this fails, services have to be started anew each week. */
#include "program.h"

#define MIB (1ul << 20)
#define EARLY 10
#define CYCLES 28
#define LOOKS 5
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

/* The least at the end of five cycles: what is warm at one moment is a matter of chance. */
static size_t least_before(const size_t *resident, unsigned cycle)
{
    size_t least = resident[cycle - 1];
    for (unsigned i = cycle - LOOKS; i < cycle; i++)
        least = resident[i] < least ? resident[i] : least;
    return least;
}

/* With price=speed all has its place after ten. */
TEST(after_twenty_eight_cycles_no_more_is_resident_than_after_ten)
{
    time_limit(550);
    check_is_served();
    size_t resident[CYCLES];
    for (uintptr_t cycle = 1; cycle <= CYCLES; cycle++) {
        /* Each cycle is another thread's, as requests are. */
        in_thread(run_cycle, (void *)cycle);
        resident[cycle - 1] = resident_bytes();
    }
    size_t early = least_before(resident, EARLY), last = least_before(resident, CYCLES);
    check_print("after ten cycles %zu KiB, after all %zu KiB\n", early / 1024, last / 1024);
    CHECK(last <= early + early / 20 + 4 * MIB);
}
