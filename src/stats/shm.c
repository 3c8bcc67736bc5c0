/* SPDX-License-Identifier: MIT */
#include "stats/shm.h"

#include "os/output.h"
#include "os/shared.h"

#include <string.h>

#define READ_TRIES 100

static uint64_t mix(uint64_t hash, const char *text)
{
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3ull;
    return hash;
}

uint64_t hak_shm_layout(void)
{
    uint64_t hash = 0xcbf29ce484222325ull ^ sizeof(struct stats_shm);
    hash = mix(hash, HAK_PROJECT_VERSION);
#define X(name, meaning) hash = mix(hash, #name ",");
    HAK_SNAPSHOT_TABLE(X)
    HAK_STAT_GLOBAL_TABLE(X)
    HAK_STAT_TABLE(X)
    HAK_SNAPSHOT_EXACT_TABLE(X)
#undef X
#define X(rank, name, meaning) hash = mix(hash, #name ",");
    HAK_LOCK_TABLE(X)
#undef X
#define X(name, initial, least, most, meaning) hash = mix(hash, #name ",");
    HAK_POLICY_TABLE(X)
#undef X
#define X(name, unit, meaning) hash = mix(hash, #name ",");
    HAK_EVENT_TABLE(X)
#undef X
#define X(row, count, usual, second, third, fourth, what)                                          \
    hash = mix(hash, #row "," #usual "," #second "," #third "," #fourth ",");
    HAK_KNOB_TABLE(X)
#undef X
    return hash;
}

void hak_shm_publish(struct stats_shm *shm, const struct shm_page *page)
{
    uint64_t next = hak_load_relaxed(&shm->published) + 1;
    const char *from = (const char *)page;
    /* release: a reader that meets a word of a later page than its own meets a later number at its
     * end; partner is the fence in hak_shm_read */
    atomic_thread_fence(memory_order_release);
    for (size_t i = 0; i < HAK_SHM_PAGE_WORDS; i++) {
        uint64_t word;
        memcpy(&word, from + i * sizeof word, sizeof word);
        hak_store_relaxed(&shm->pages[next % 2][i], word);
    }
    /* release: partner is the acquire in hak_shm_read */
    hak_store_release(&shm->published, next);
}

bool hak_shm_read(const struct stats_shm *shm, struct shm_page *page)
{
    char *to = (char *)page;
    for (int tries = 0; tries < READ_TRIES; tries++) {
        /* acquire: partner is the release in hak_shm_publish */
        uint64_t published = hak_load_acquire(&shm->published);
        if (published == 0)
            return false;
        for (size_t i = 0; i < HAK_SHM_PAGE_WORDS; i++) {
            uint64_t word = hak_load_relaxed(&shm->pages[published % 2][i]);
            memcpy(to + i * sizeof word, &word, sizeof word);
        }
        /* acquire: partner is the fence in hak_shm_publish */
        atomic_thread_fence(memory_order_acquire);
        if (hak_load_relaxed(&shm->published) == published)
            return true;
    }
    return false;
}

static bool is_left(const struct shared_file *file, const void *context)
{
    const struct shm_head *head = file->head;
    const uint32_t *kept_pid = context;
    return head->magic == HAK_SHM_MAGIC && head->pid == file->number && head->pid != *kept_pid &&
           hak_os_shared_is_left(file, head->pid_space, head->start_ticks);
}

uint32_t hak_shm_remove_left(uint32_t kept_pid)
{
    return hak_os_shared_sweep(HAK_SHM_PATH, sizeof(struct shm_head), is_left, &kept_pid);
}
