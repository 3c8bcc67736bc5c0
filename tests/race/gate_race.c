/* SPDX-License-Identifier: MIT */
/* tests/race/gate_race.c - the owner of a gate and strangers with a claim are never both inside. */
#include "cache/gate.h"
#include "os/os.h"
#include "racers.h"

#define OWNER_ROUNDS 1000000u
#define CLAIM_ROUNDS 400u
#define PATIENT_MS 60000u
#define MOMENTS 30000u

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

static _Atomic uint32_t round_begun;
static _Atomic uint32_t round_ended;
static _Atomic uint32_t occupant;

/* Says who is inside, and sees that nobody else says so for a while. */
static void occupy(uint32_t who)
{
    hak_store_relaxed(&occupant, who);
    for (int i = 0; i < 20; i++)
        CHECK_EQ(hak_load_relaxed(&occupant), who);
}

static void own_at_the_same_moment(struct racer *racer)
{
    (void)racer;
    for (uint32_t round = 1; round <= MOMENTS; round++) {
        for (uint32_t i = 1; hak_load_acquire(&round_begun) < round; i++)
            if (i % 256 == 0)
                sched_yield();
        hak_gate_enter(&gates[0]);
        occupy(1);
        hak_gate_leave(&gates[0]);
        hak_store_release(&round_ended, round);
    }
}

static void claim_at_the_same_moment(struct racer *racer)
{
    for (uint32_t round = 1; round <= MOMENTS; round++) {
        hak_store_release(&round_begun, round);
        for (volatile uint64_t delay = draw(racer) % 64; delay > 0; delay--) {
        }
        CHECK(hak_gate_mark(&gates[0]));
        hak_gate_barrier();
        CHECK(hak_gate_await(&gates[0], PATIENT_MS));
        occupy(2);
        hak_gate_release(&gates[0]);
        for (uint32_t i = 1; hak_load_acquire(&round_ended) < round; i++)
            if (i % 256 == 0)
                sched_yield();
    }
}

static void run_moments(void)
{
    void (*const bodies[])(struct racer *) = {own_at_the_same_moment, claim_at_the_same_moment};
    race(2, bodies);
    CHECK_EQ(hak_load_relaxed(&round_ended), MOMENTS);
}

static void run_bodies(void (*const bodies[])(struct racer *))
{
    atomic_store(&owners_at_work, 2);
    race(4, bodies);
    for (uint32_t which = 0; which < 2; which++) {
        CHECK_EQ(inside[which], OWNER_ROUNDS + atomic_load(&claims_count[which]));
        CHECK(atomic_load(&claims_count[which]) > 0);
    }
}

static void run(void)
{
    void (*const bodies[])(struct racer *) = {own, own, claim, claim};
    run_bodies(bodies);
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
    hak_gate_start();
    hak_gate_end_asymmetry();
    run();
}

static void give_up_and_claim(struct racer *racer)
{
    usleep(30000);
    hak_gate_end_asymmetry();
    CHECK(!hak_gate_is_asymmetric);
    claim(racer);
}

TEST(a_gate_whose_process_gives_the_kernels_barrier_up_excludes_all_along)
{
    void (*const bodies[])(struct racer *) = {own, own, claim, give_up_and_claim};
    hak_os_start();
    hak_gate_start();
    if (!hak_gate_is_asymmetric)
        SKIP("no membarrier here, or ThreadSanitizer");
    run_bodies(bodies);
}

TEST(the_kernels_barrier_excludes_at_the_very_same_moment)
{
    hak_os_start();
    hak_gate_start();
    if (!hak_gate_is_asymmetric)
        SKIP("no membarrier here, or ThreadSanitizer");
    run_moments();
}

TEST(fences_exclude_at_the_very_same_moment)
{
    hak_os_start();
    hak_gate_start();
    hak_gate_end_asymmetry();
    run_moments();
}
