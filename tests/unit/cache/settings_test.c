/* SPDX-License-Identifier: MIT */
/* tests/unit/cache/settings_test.c - what is read of the machine is read once, not by a small
 * process, and not behind a filter. */
#include "cache/settings.h"

#include "api/api.h"
#include "cache/gate.h"
#include "cache/registry.h"
#include "check.h"
#include "conf/conf.h"
#include "hakmem/hakmem.h"
#include "os/confine.h"
#include "os/lock.h"
#include "os/node.h"
#include "os/os.h"
#include "os/os_huge.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>

static bool were_read(void)
{
    return hak_load_relaxed(&hak_settings_were_read) != 0;
}

TEST(a_small_process_reads_nothing)
{
    hak_free(hak_malloc(4 * HAK_MIB));
    for (int i = 0; i < 500; i++)
        CHECK(hak_malloc(48) != NULL);
    CHECK(!were_read());
}

TEST(a_small_process_that_confines_itself_reads_before)
{
    hak_free(hak_malloc(1));
    CHECK(!were_read());
    hak_os_confine();
    CHECK(were_read());
}

TEST(a_program_that_forbids_the_thread_has_all_from_the_start)
{
    setenv("HAKMEM_MAINTENANCE", "off", 1);
    hak_conf_start(); /* again: programs start hakmem before main */
    hak_settings_start();
    CHECK(were_read());
}

TEST(behind_a_filter_nothing_is_read)
{
    hak_os_on_confinement(NULL); /* as before hakmem has started */
    hak_os_confine();
    void *block = hak_malloc(40 * HAK_MIB);
    CHECK(block != NULL);
    hak_settings_read();
    CHECK(!were_read());
    CHECK_EQ(hak_os_mappings_most(), 65530);
    CHECK(!hak_os_has_nodes());
    hak_free(block);
}

static void on_signal(int number)
{
    (void)number;
}

TEST(handlers_that_were_there_before_are_known_behind_it)
{
    hak_free(hak_malloc(1));
    CHECK(!hak_load_relaxed(&hak_lock_signals_matter));
    CHECK(signal(SIGUSR1, on_signal) != SIG_ERR);
    hak_os_confine();
    CHECK(hak_load_relaxed(&hak_lock_signals_matter));
}

static sem_t has_started, may_end;

static void *hold_a_heap(void *argument)
{
    hak_free(hak_malloc(100));
    sem_post(&has_started);
    sem_wait(&may_end);
    return argument;
}

static void count_open(struct heap *heap, enum heap_access access, void *count)
{
    (void)heap;
    *(unsigned *)count += access == HEAP_OPEN;
}

TEST(other_threads_heaps_are_entered_behind_it_without_the_kernels_barrier)
{
    unsigned count = 0;
    pthread_t thread;
    hak_free(hak_malloc(1));
    CHECK_EQ(sem_init(&has_started, 0, 0) | sem_init(&may_end, 0, 0), 0);
    CHECK_EQ(pthread_create(&thread, NULL, hold_a_heap, NULL), 0);
    sem_wait(&has_started);
    hak_os_confine();
    CHECK(!hak_gate_is_asymmetric);
    hak_registry_visit(count_open, &count);
    CHECK_EQ(count, 2);
    sem_post(&may_end);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}
