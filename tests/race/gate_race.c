/* SPDX-License-Identifier: MIT */
/* tests/race/gate_race.c - the owner of a gate and strangers with a claim are never both inside. */
#include "cache/gate.h"
#include "os/os.h"
#include "racers.h"

#define OWNER_ROUNDS 1000000u
#define CLAIM_ROUNDS 400u
#define PATIENT_MS 60000u

static struct gate gates[2];
static uint64_t inside[2]; /* plain: only exclusion makes this right */
static uint64_t mirror[2];
static _Atomic uint64_t claims_count[2];
static _Atomic uint32_t owners_at_work;

static void touch(struct racer *racer, uint32_t which)
{
    CHECK_EQ(inside[which], mirror[which]);
    inside[which]++;
    if (draw(racer) % 16 == 0)
        stumble(racer);
    mirror[which]++;
}

static void own(struct racer *racer)
{
    uint32_t which = racer->index;
    for (uint32_t i = 0; i < OWNER_ROUNDS; i++) {
        CHECK(!hak_gate_is_nested(&gates[which]));
        hak_gate_enter(&gates[which]);
        CHECK(hak_gate_is_nested(&gates[which]));
        touch(racer, which);
        hak_gate_leave(&gates[which]);
    }
    atomic_fetch_sub(&owners_at_work, 1);
}

/* Claims both gates behind one barrier, as fork does, and again while an owner is at work. */
static void claim(struct racer *racer)
{
    for (uint32_t i = 0; i < CLAIM_ROUNDS || atomic_load(&owners_at_work) > 0; i++) {
        bool is_marked[2];
        for (uint32_t which = 0; which < 2; which++)
            is_marked[which] = hak_gate_mark(&gates[which]);
        hak_gate_barrier();
        for (uint32_t which = 0; which < 2; which++) {
            if (!is_marked[which])
                continue;
            CHECK(hak_gate_await(&gates[which], PATIENT_MS));
            touch(racer, which);
            atomic_fetch_add(&claims_count[which], 1);
            hak_gate_release(&gates[which]);
        }
        stumble(racer);
    }
}

static void run(void)
{
    void (*const bodies[])(struct racer *) = {own, own, claim, claim};
    atomic_store(&owners_at_work, 2);
    race(4, bodies);
    for (uint32_t which = 0; which < 2; which++) {
        CHECK_EQ(inside[which], OWNER_ROUNDS + atomic_load(&claims_count[which]));
        CHECK(atomic_load(&claims_count[which]) > 0);
    }
}

TEST(a_gate_with_the_kernels_barrier_excludes)
{
    hak_os_start();
    hak_gate_start();
    if (!hak_gate_is_asymmetric)
        SKIP("no membarrier here, or ThreadSanitizer");
    run();
}

TEST(a_gate_with_fences_on_both_sides_excludes)
{
    hak_os_start();
    hak_gate_is_asymmetric = false;
    run();
}
