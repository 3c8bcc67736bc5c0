/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "os/rseq.h"

#include "base/atomic.h"
#include "base/text.h"
#include "os/confine.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Older headers have none of these: include/uapi/linux/{auxvec,membarrier}.h. */
#define AUX_RSEQ_FEATURE_SIZE 27
#define FENCE_RSEQ (1 << 7)
#define REGISTER_FENCE_RSEQ (1 << 8)
/* The signature that the kernel expects before an abort handler; libc registers with it. */
#if defined(__x86_64__)
#define SIGNATURE 0x53053053u
#elif defined(__aarch64__)
#define SIGNATURE 0xd428bc00u
#else
#define SIGNATURE 0u
#endif
#if defined(__aarch64__)
#define IS_ARM64 true
#else
#define IS_ARM64 false
#endif
/* The first form of struct rseq, which every kernel knows. */
#define FIRST_BYTES 32u

/* glibc 2.35; weak: without them there is nothing to use. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

uint32_t hak_rseq_id_offset = offsetof(struct rseq_area, mm_cid);

const char *hak_rseq_meaning(uint32_t reason)
{
    static const char *const meanings[RSEQ_REASON_COUNT] = {
#define X(kind, meaning) meaning,
        HAK_RSEQ_TABLE(X)
#undef X
    };
    return reason < RSEQ_REASON_COUNT ? meanings[reason] : "";
}

enum rseq_id hak_rseq_id(uint32_t reason)
{
    if (reason != RSEQ_PROCESSOR)
        return RSEQ_ID_SLOT;
    return hak_rseq_id_offset == offsetof(struct rseq_area, mm_cid) ? RSEQ_ID_MM_CID
                                                                    : RSEQ_ID_CPU_ID;
}

const char *hak_rseq_id_name(uint32_t id)
{
    static const char *const names[RSEQ_ID_COUNT] = {
#define X(kind, name) name,
        HAK_RSEQ_ID_TABLE(X)
#undef X
    };
    return id < RSEQ_ID_COUNT ? names[id] : "";
}

static bool libc_registers(void)
{
    return &__rseq_offset != NULL && &__rseq_size != NULL && __rseq_size != 0;
}

static struct rseq_area *area(void)
{
    return (struct rseq_area *)(void *)((char *)__builtin_thread_pointer() + __rseq_offset);
}

/* No processor of this machine has a number as high, whatever is plugged in: the kernel's masks
 * have so many bits. */
static uint32_t processors_most(void)
{
    unsigned long mask[128];
    long bytes = syscall(SYS_sched_getaffinity, 0, sizeof mask, mask);
    return bytes <= 0 ? UINT32_MAX : (uint32_t)bytes * 8;
}

/* The number at *text, which is moved behind it and the dot. */
static uint32_t next_number(const char **text)
{
    uint32_t number = (uint32_t)hak_text_number(*text, 10);
    *text += strspn(*text, "0123456789");
    *text += **text == '.';
    return number;
}

bool hak_rseq_is_unproven(const char *release)
{
    uint32_t major = next_number(&release), minor = next_number(&release);
    return (major == 6 && minor >= 19) || (major == 7 && minor < 2);
}

static bool is_kernel_unproven(void)
{
    struct utsname name;
    return IS_ARM64 && (uname(&name) != 0 || hak_rseq_is_unproven(name.release));
}

enum rseq_reason hak_os_rseq_start(uint32_t ids_most, uint32_t *ids)
{
    if (!libc_registers() || (int32_t)area()->cpu_id < 0)
        return RSEQ_UNREGISTERED;
    if (hak_os_is_confined())
        return RSEQ_CONFINED;
    if (is_kernel_unproven())
        return RSEQ_KERNEL;
    int saved = errno;
    *ids = processors_most();
    errno = saved;
    if (*ids > ids_most)
        return RSEQ_PROCESSORS;
    if (getauxval(AUX_RSEQ_FEATURE_SIZE) < offsetof(struct rseq_area, unused))
        hak_rseq_id_offset = offsetof(struct rseq_area, cpu_id);
    return RSEQ_PROCESSOR;
}

/* Asked to register it again, the kernel refuses: EBUSY for the same length, EINVAL for another
 * one. That is what we want to hear. */
static bool is_registered(struct rseq_area *mine)
{
    if (hak_os_is_confined())
        return false; /* the kernel may not be asked: a slot does as well */
    int saved = errno;
    bool was_free = syscall(SYS_rseq, mine, FIRST_BYTES, 0, SIGNATURE) == 0;
    if (was_free)
        syscall(SYS_rseq, mine, FIRST_BYTES, 1, SIGNATURE);
    bool is_known = !was_free && errno != ENOSYS;
    errno = saved;
    return is_known;
}

struct rseq_area *hak_os_rseq_area(void)
{
    if (!libc_registers())
        return NULL;
    struct rseq_area *mine = area();
    return (int32_t)mine->cpu_id >= 0 && is_registered(mine) ? mine : NULL;
}

bool hak_os_rseq_fence(void)
{
    static _Atomic bool is_asked;
    if (hak_os_is_confined())
        return false;
    int saved = errno;
    bool is_done = true;
    if (!hak_load_relaxed(&is_asked)) {
        is_done = syscall(SYS_membarrier, REGISTER_FENCE_RSEQ, 0, 0) == 0;
        hak_store_relaxed(&is_asked, is_done);
    }
    is_done = is_done && syscall(SYS_membarrier, FENCE_RSEQ, 0, 0) == 0;
    errno = saved;
    return is_done;
}
