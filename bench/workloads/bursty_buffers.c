/* SPDX-License-Identifier: MIT */
/* bench/workloads/bursty_buffers.c - large buffers that come again after a while, or do not.
 *
 *   bursty_buffers [MODE] [ROUNDS] [LIVE_MIB] [SEED]
 *
 * Models a service with LIVE_MIB of its own that takes buffers of 1, 2, 3.1, 8 or 32 MiB, at
 * random, fills each, frees it, and waits for the next. Which setting of an allocator is right
 * depends on how it waits:
 *
 *   0  20 ms after each
 *   1  300 ms after each
 *   2  30 ms after four of five, at random, else 900 ms
 *   3  32 buffers of a quarter of the size at once, then 900 ms
 *   4  3 s after each
 *   5  one after the other: a fifth of the rounds each
 *
 * A round is a buffer and its pause, in mode 3 all buffers and their pause. One operation is a
 * buffer.
 *
 * Notes, from the start of the process on, so that memory that was prepared before main counts:
 * CPU a buffer, without what looking at memory took; page faults; what is resident in the pauses
 * beyond LIVE_MIB, on average; and what CPU and memory cost together a round, where 4 GiB kept for
 * a second cost as much as a second of a processor.
 *
 * Checked when a buffer is freed: both ends.
 */
#include "bench.h"
#include "memory.h"

#define BURST 32
#define LOOK_MS 10
#define MIB ((uint64_t)1 << 20)
/* Bytes kept for a second that cost as much as a second of a processor. */
#define CORE_SECOND_BYTES ((double)(4 * (uint64_t)1024 * MIB))

enum mode { MODE_STEADY, MODE_SLOW, MODE_MIXED, MODE_BURST, MODE_SELDOM, MODE_ALL };

static struct {
    uint64_t mode;
    uint64_t round_count;
    uint64_t live_mib;
    uint64_t seed;
} plan = {MODE_ALL, 40, 48, 42};

static const size_t sizes_bytes[] = {MIB, 2 * MIB, 3250586, 8 * MIB, 32 * MIB};

static uint32_t random_state;
static uint64_t buffer_count;
static double idle_byte_ms;
static uint64_t idle_ms;
static uint64_t look_ns; /* of CPUs, for looking */

static uint32_t draw(uint32_t bound)
{
    random_state = bench_xorshift32(random_state);
    return bench_below(random_state, bound);
}

static void sleep_ms(uint64_t ms)
{
    nanosleep(&(struct timespec){(time_t)(ms / 1000), (long)(ms % 1000) * 1000000}, NULL);
}

/* Nothing is done; what is resident is looked at. */
static void pause_ms(uint64_t ms)
{
    for (uint64_t slept_ms = 0; slept_ms < ms; slept_ms += LOOK_MS) {
        sleep_ms(LOOK_MS);
        uint64_t before_ns = bench_cpu_ns();
        uint64_t now_bytes = bench_rss_bytes();
        look_ns += bench_cpu_ns() - before_ns;
        uint64_t own_bytes = plan.live_mib * MIB;
        idle_byte_ms += now_bytes > own_bytes ? (double)(now_bytes - own_bytes) * LOOK_MS : 0;
        idle_ms += LOOK_MS;
    }
}

/* Takes so many buffers, fills them, and frees them. */
static void use_buffers(uint32_t count)
{
    void *buffers[BURST];
    size_t lengths[BURST];
    for (uint32_t i = 0; i < count; i++) {
        lengths[i] = sizes_bytes[draw(sizeof(sizes_bytes) / sizeof(*sizes_bytes))];
        if (count > 1) {
            lengths[i] /= 4;
        }
        buffers[i] = bench_take(lengths[i]);
        memset(buffers[i], (int)i + 1, lengths[i]);
        bench_mark(buffers[i], lengths[i], i);
    }
    for (uint32_t i = 0; i < count; i++) {
        bench_mark_check(buffers[i], lengths[i], i);
        free(buffers[i]);
    }
    buffer_count += count;
}

static void run_round(enum mode mode)
{
    use_buffers(mode == MODE_BURST ? BURST : 1);
    switch (mode) {
    case MODE_STEADY:
        pause_ms(20);
        break;
    case MODE_SLOW:
        pause_ms(300);
        break;
    case MODE_MIXED:
        pause_ms(draw(5) == 0 ? 900 : 30);
        break;
    case MODE_SELDOM:
        pause_ms(3000);
        break;
    default:
        pause_ms(900);
        break;
    }
}

int main(int argc, char **argv)
{
    const struct bench_argument arguments[] = {
        {"MODE", "how buffers come: 20 ms, 300 ms, 30 or 900 ms, bursts, all", &plan.mode, 0,
         MODE_ALL},
        {"ROUNDS", "buffers, or bursts", &plan.round_count, 1, UINT32_MAX},
        {"LIVE_MIB", "memory that the service has", &plan.live_mib, 1, 65536},
        {"SEED", "start of the random numbers", &plan.seed, 1, UINT32_MAX},
    };
    bench_arguments_read(argc, argv, "Large buffers that come again after a while, or do not.",
                         arguments, 4);
    random_state = (uint32_t)plan.seed;
    unsigned char *live = bench_take(plan.live_mib * MIB);
    memset(live, 1, plan.live_mib * MIB);
    uint64_t start_ns = bench_now_ns();
    for (uint64_t round = 0; round < plan.round_count; round++) {
        uint64_t part = round * MODE_ALL / plan.round_count;
        run_round((enum mode)(plan.mode == MODE_ALL ? part : plan.mode));
    }
    uint64_t elapsed_ns = bench_now_ns() - start_ns;
    uint64_t faults = bench_minor_faults(), cpu_ns = bench_cpu_ns() - look_ns;
    double kept_ms = idle_byte_ms / CORE_SECOND_BYTES;
    bench_note("cpu_per_buffer: %.3f ms", (double)cpu_ns * 1e-6 / (double)buffer_count);
    bench_note("minor_faults: %" PRIu64 " faults", faults);
    bench_note("rss_idle: %.2f MiB", idle_byte_ms / (double)idle_ms / BENCH_MIB);
    bench_note("cost_per_round: %.3f ms",
               ((double)cpu_ns * 1e-6 + kept_ms) / (double)plan.round_count);
    free(live);
    bench_report(buffer_count, elapsed_ns);
    return 0;
}
