/* SPDX-License-Identifier: MIT */
/* tests/fuzz/threads_fuzz.c - schedules of threads that come, go and hand blocks to one another.
 *
 * An input is a list of rounds. A round says which of the threads act, one after the other as the
 * rounds go, or several at once, and what each of them does; the next round begins when all have
 * done it. So an input whose rounds have one thread each is an interleaving that repeats exactly.
 */
#include "fuzz.h"
#include "hakmem/hakmem.h"
#include "parcel.h"
#include "process/reclaim.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#define WORKERS 4u
#define SLOTS 32u
#define ROUNDS_MOST 400u

enum action { MAKE, GIVE, RESIZE, FLUSH, PURGE, IDLE, TRIM, END };

struct order {
    enum action action;
    uint32_t slot;
    size_t bytes;
};

struct worker {
    pthread_t thread;
    bool is_running;
    sem_t go;
    struct order order;
};

static struct worker workers[WORKERS];
static sem_t done;
static _Atomic(struct parcel *) slots[SLOTS];

static void parcel_give(struct parcel *parcel)
{
    if (parcel != NULL)
        parcel_check(parcel, parcel->bytes);
    hak_free(parcel);
}

static void parcel_make(const struct order *order)
{
    struct parcel *parcel = hak_malloc(order->bytes);
    CHECK(parcel != NULL);
    parcel_fill(parcel, order->bytes, order->bytes ^ order->slot);
    parcel_give(atomic_exchange(&slots[order->slot], parcel));
}

static void parcel_resize(const struct order *order)
{
    struct parcel *parcel = atomic_exchange(&slots[order->slot], NULL);
    if (parcel == NULL)
        return;
    size_t old_bytes = parcel->bytes;
    parcel = hak_realloc(parcel, order->bytes);
    CHECK(parcel != NULL);
    parcel_check(parcel, old_bytes < order->bytes ? old_bytes : order->bytes);
    parcel_fill(parcel, order->bytes, order->bytes);
    parcel_give(atomic_exchange(&slots[order->slot], parcel));
}

static void act(const struct order *order)
{
    switch (order->action) {
    case MAKE:
        parcel_make(order);
        break;
    case GIVE:
        parcel_give(atomic_exchange(&slots[order->slot], NULL));
        break;
    case RESIZE:
        parcel_resize(order);
        break;
    case FLUSH:
        hak_thread_flush();
        break;
    case PURGE:
        hak_reclaim_purge_all();
        break;
    case IDLE:
        hakmem_thread_idle();
        break;
    case TRIM:
        hak_reclaim_trim(order->bytes);
        break;
    case END:
        break;
    }
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    bool is_over = false;
    while (!is_over) {
        while (sem_wait(&worker->go) != 0) {
        }
        act(&worker->order);
        is_over = worker->order.action == END; /* behind the post the order is the next one */
        sem_post(&done);
    }
    return NULL;
}

static struct order input_order(struct input *input)
{
    static const enum action actions[] = {MAKE, MAKE, MAKE,   MAKE,  MAKE,  GIVE, GIVE, GIVE,
                                          GIVE, GIVE, RESIZE, FLUSH, PURGE, IDLE, TRIM, END};
    struct order order = {.action = actions[input_byte(input) % 16]};
    order.slot = input_byte(input) % SLOTS;
    if (order.action == MAKE || order.action == RESIZE)
        order.bytes = sizeof(struct parcel) + input_bytes(input) % (512 * HAK_KIB);
    return order;
}

static void worker_send(struct worker *worker, struct order order)
{
    worker->order = order;
    if (!worker->is_running) {
        worker->is_running = true;
        CHECK_EQ(pthread_create(&worker->thread, NULL, work, worker), 0);
    }
    sem_post(&worker->go);
}

/* Waits for those of the mask, and joins those that were told to end. */
static void workers_await(uint32_t mask)
{
    for (int i = 0; i < __builtin_popcount(mask); i++)
        while (sem_wait(&done) != 0) {
        }
    for (uint32_t i = 0; i < WORKERS; i++) {
        if ((mask >> i & 1) == 0 || workers[i].order.action != END)
            continue;
        CHECK_EQ(pthread_join(workers[i].thread, NULL), 0);
        workers[i].is_running = false;
    }
}

static void round_run(struct input *input)
{
    uint32_t byte = input_byte(input);
    uint32_t mask = byte < 160 ? 1u << byte % WORKERS : byte % (1u << WORKERS);
    for (uint32_t i = 0; i < WORKERS; i++)
        if ((mask >> i & 1) != 0)
            worker_send(&workers[i], input_order(input));
    workers_await(mask);
}

__attribute__((constructor)) static void semaphores_make(void)
{
    sem_init(&done, 0, 0);
    for (uint32_t i = 0; i < WORKERS; i++)
        sem_init(&workers[i].go, 0, 0);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t byte_count)
{
    struct input input = {bytes, bytes + byte_count};
    for (uint32_t i = 0; i < ROUNDS_MOST && !input_is_over(&input); i++)
        round_run(&input);
    uint32_t running = 0;
    for (uint32_t i = 0; i < WORKERS; i++) {
        if (!workers[i].is_running)
            continue;
        running |= 1u << i;
        worker_send(&workers[i], (struct order){.action = END});
    }
    workers_await(running);
    for (uint32_t i = 0; i < SLOTS; i++)
        parcel_give(atomic_exchange(&slots[i], NULL));
    own_heap_check();
    return 0;
}
